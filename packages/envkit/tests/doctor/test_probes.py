# SPDX-License-Identifier: Apache-2.0
"""Each probe, on machines that are not this one."""

import platform
import resource
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from envkit.doctor import (
    bubblewrap,
    cgroups,
    clock,
    gateways,
    interpreter,
    keys,
    namespaces,
    programs,
    room,
)
from envkit.doctor.clock import Reading
from envkit.doctor.types import Finding, Machine, Status
from envkit.fault import SandboxUnavailable
from envkit.sandbox.availability import Availability, judge_gateways
from envkit.sandbox.userns import blockers

from .conftest import CONTAINER, HARDENED, UBUNTU, VERSION_1, Programs, says

type Make = Callable[..., Machine]

NO_BOX = Availability(ok=False, problem="bubblewrap cannot make a box (EPERM)", fix="run: it")


def one(findings: Iterable[Finding]) -> Finding:
    (found,) = findings
    return found


# --- user namespaces -----------------------------------------------------------------------------


def test_an_ubuntu_that_restricts_namespaces_says_so_and_how_to_lift_it(machine: Make) -> None:
    found = one(namespaces.examine(machine(UBUNTU), False))
    assert found.status is Status.FAIL
    assert "AppArmor" in found.text
    assert found.fix == "run: sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"


def test_a_container_without_namespaces_names_its_seccomp_filter(machine: Make) -> None:
    found = one(namespaces.examine(machine(CONTAINER), False))
    assert found.status is Status.FAIL
    assert "seccomp" in found.text
    assert "--privileged" in found.fix


def test_a_container_of_its_administrator_is_not_said_to_be_filtered(machine: Make) -> None:
    status = "CapEff:\t000001ffffffffff\nSeccomp:\t2\n"
    found = one(namespaces.examine(machine({**CONTAINER, "proc/self/status": status}), False))
    assert "seccomp" not in found.text
    assert "container" in found.text


def test_every_setting_that_blocks_is_named_with_its_own_fix(machine: Make) -> None:
    found = list(namespaces.examine(machine(HARDENED), False))
    assert [each.fix.rpartition(" ")[2] for each in found] == [
        "user.max_user_namespaces=100000",
        "kernel.unprivileged_userns_clone=1",
    ]


def test_a_refusal_that_nothing_explains_is_still_a_finding(machine: Make) -> None:
    found = one(namespaces.examine(machine(VERSION_1), False))
    assert found.status is Status.FAIL
    assert "nothing that can be read" in found.text


def test_what_does_not_bind_is_told_and_no_fault(machine: Make) -> None:
    found = one(namespaces.examine(machine(UBUNTU), True))
    assert found.status is Status.OK
    assert "although AppArmor" in found.text
    assert found.fix == ""


def test_namespaces_are_tried_apart_from_a_bubblewrap_that_is_absent(machine: Make) -> None:
    can = Programs({"unshare --user": says("")})
    assert one(namespaces.examine(machine(VERSION_1, can), False)).status is Status.OK
    cannot = Programs({"unshare --user": says("Operation not permitted", 1)})
    assert one(namespaces.examine(machine(UBUNTU, cannot), False)).status is Status.FAIL


def test_nothing_blocks_where_nothing_can_be_read(tmp_path: Path) -> None:
    assert blockers(tmp_path / "proc", tmp_path) == []


# --- control groups ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("files", "kind", "why"),
    [
        (UBUNTU, "version 2", "memory and pids not delegated here"),
        (CONTAINER, "version 2", "pids not delegated here"),
        (VERSION_1, "version 1", "cannot be written"),
        (HARDENED, "none", "nothing is mounted"),
        ({**UBUNTU, **VERSION_1}, "versions 1 and 2", "cannot be written"),
    ],
    ids=["ubuntu", "container", "version 1", "none", "both"],
)
def test_the_kind_of_control_groups_and_why_they_cannot_be_used(
    machine: Make, files: dict[str, str], kind: str, why: str
) -> None:
    found = one(cgroups.examine(machine(files), 0))
    assert found.status is Status.WARN
    assert found.text.startswith(f"{kind}; ")
    assert why in found.text
    assert "rlimits" in found.text
    assert found.fix


def test_control_groups_that_can_be_made_are_good(machine: Make) -> None:
    found = one(cgroups.examine(machine(VERSION_1), 1))
    assert (found.status, found.fix) == (Status.OK, "")
    assert "made in version 1" in found.text


# --- room ----------------------------------------------------------------------------------------


def test_what_so_many_trials_need_stands_beside_what_there_is(machine: Make) -> None:
    found = {each.name: each for each in room.examine(machine(UBUNTU), 100_000)}
    memory = found["memory"]
    assert memory.status is Status.FAIL
    assert "23,437 MiB free" in memory.text
    assert "100000 trials at once need" in memory.text
    assert memory.fix
    assert found["room"].status is Status.FAIL
    assert found["room"].needed_for == "100000 trials at once"


def test_one_trial_fits_where_hundreds_do_not(machine: Make) -> None:
    tight = {**UBUNTU, "proc/meminfo": "MemAvailable: 4000000 kB\n"}
    few = {each.name: each for each in room.examine(machine(tight), 1)}
    many = {each.name: each for each in room.examine(machine(tight), 550)}
    assert few["memory"].status is Status.OK
    assert many["memory"].status is Status.FAIL
    assert few["memory"].fix == ""


@pytest.mark.parametrize(
    ("limits", "shown"),
    [
        ((1024, 4096), "soft limit 1024, hard 4096"),
        ((1024, resource.RLIM_INFINITY), "soft limit 1024, hard none"),
    ],
)
def test_limits_of_this_process_are_shown_soft_and_hard(
    machine: Make, limits: tuple[int, int], shown: str
) -> None:
    def limit(_: int) -> tuple[int, int]:
        return limits

    found = {each.name: each for each in room.examine(machine(UBUNTU, limit=limit), 1)}
    assert shown in found["open files"].text


def test_the_fix_of_a_limit_of_this_process_counts_what_is_used(machine: Make) -> None:
    used, soft = 40, resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    files = {f"proc/self/fd/{n}": "" for n in range(used)}
    found = {each.name: each for each in room.examine(machine({**UBUNTU, **files}), soft)}
    need = int(found["open files"].text.rpartition(" ")[2].replace(",", ""))
    assert found["open files"].status is Status.FAIL
    assert f"ulimit -n {need + used}," in found["open files"].fix


def test_the_limit_of_our_own_group_binds_before_the_machines_memory(machine: Make) -> None:
    own = "sys/fs/cgroup/user.slice/user-1000.slice/session-1.scope"
    limited = {f"{own}/memory.max": str(900 << 20), f"{own}/memory.current": "0"}
    found = {each.name: each for each in room.examine(machine({**UBUNTU, **limited}), 550)}
    assert "900 MiB free" in found["memory"].text
    assert "memory.max" in found["memory"].text
    assert "container" in found["memory"].fix


def test_a_directory_that_fills_up_is_named(machine: Make, tmp_path: Path) -> None:
    found = {each.name: each for each in room.examine(machine(UBUNTU), 1, {"cache": tmp_path})}
    assert str(tmp_path) in found["cache: disk"].text


# --- clock ---------------------------------------------------------------------------------------

BEGIN = Reading(wall=1_790_000_000.0, monotonic=50.0)


def later(wall_s: float, monotonic_s: float = 0.2) -> Reading:
    return Reading(wall=BEGIN.wall + wall_s, monotonic=BEGIN.monotonic + monotonic_s)


def test_a_clock_that_runs_as_it_should_is_good() -> None:
    findings = list(clock.judge(BEGIN, later(0.2), "UTC (UTC+00:00)"))
    assert [each.status for each in findings] == [Status.OK, Status.OK]
    assert "2026-09-21" in findings[0].text
    assert "UTC+00:00" in findings[0].text


@pytest.mark.parametrize("wall_s", [0.3, 0.1, -5.0, 3600.0])
def test_a_clock_that_steps_or_runs_at_another_rate_is_a_warning(wall_s: float) -> None:
    _, rate = clock.judge(BEGIN, later(wall_s), "UTC")
    assert rate.status is Status.WARN
    assert rate.fix


def test_a_clock_from_before_this_program_existed_fails() -> None:
    first, second = (Reading(wall=at, monotonic=at) for at in (100.0, 100.2))
    now, _ = clock.judge(first, second, "UTC")
    assert now.status is Status.FAIL
    assert "1970" in now.text


def test_this_machines_clocks_are_read_close_together() -> None:
    findings = list(clock.examine(wait=lambda _: None))
    assert findings[0].status is Status.OK


# --- bubblewrap ----------------------------------------------------------------------------------


@pytest.fixture
def bwrap(tmp_path: Path) -> Path:
    path = tmp_path / "bwrap"
    path.write_text("")
    return path


def test_a_bubblewrap_is_told_by_version_and_abilities(machine: Make, bwrap: Path) -> None:
    answers = Programs(
        {"bwrap --version": says("bubblewrap 0.11.0\n"), "bwrap --help": says("--overlay-src SRC")}
    )
    here = machine(UBUNTU, answers)
    program, box = bubblewrap.examine(here, Availability(ok=True), lambda: bwrap)
    assert (program.status, box.status) == (Status.OK, Status.OK)
    assert "bubblewrap 0.11.0, can overlay, not setuid" in program.text
    bwrap.chmod(0o4755)
    program, _ = bubblewrap.examine(here, Availability(ok=True), lambda: bwrap)
    assert "setuid root" in program.text


def test_a_bubblewrap_that_is_too_old_is_named_beside_what_to_install(machine: Make) -> None:
    def absent() -> Path:
        raise SandboxUnavailable("no bubblewrap with overlays on this machine")

    old = Programs({"bwrap --version": says("bubblewrap 0.8.0")})
    program, box = bubblewrap.examine(machine(UBUNTU, old), NO_BOX, absent)
    assert program.status is Status.FAIL
    assert "/usr/bin/bwrap is bubblewrap 0.8.0" in program.text
    assert "pip install 'envkit[run]'" in program.fix
    assert (box.status, box.text, box.fix) == (Status.FAIL, NO_BOX.problem, NO_BOX.fix)


def test_a_kernel_without_the_calls_of_gateways_is_found_with_its_fix() -> None:
    old = judge_gateways("mount_setattr: Function not implemented", "5.10.0")
    found = one(gateways.examine(old))
    assert (found.status, found.text, found.fix) == (Status.FAIL, old.problem, old.fix)
    assert one(gateways.examine(judge_gateways("", "6.1.0"))).status is Status.OK


# --- programs ------------------------------------------------------------------------------------


def by_name(findings: Iterable[Finding]) -> dict[str, Finding]:
    return {each.name: each for each in findings}


def test_programs_that_are_absent_are_no_fault(machine: Make) -> None:
    found = by_name(programs.examine(machine(UBUNTU)))
    assert {name: each.status for name, each in found.items()} == dict.fromkeys(
        ("Docker", "LibreOffice", "Chromium"), Status.INFO
    )
    assert all(each.fix and each.needed_for for each in found.values())


def test_programs_that_work_are_told_by_version(machine: Make) -> None:
    answers = Programs({
        "docker version": says("28.1.1\n"),
        "docker compose": says("2.35.0\n"),
        "soffice": says("LibreOffice 25.2\n"),
        "chromium": says("a wrapper's complaint\nChromium 140.0\n"),
    })  # fmt: skip
    found = by_name(programs.examine(machine(UBUNTU, answers)))
    assert {each.status for each in found.values()} == {Status.OK}
    assert "daemon 28.1.1" in found["Docker"].text
    assert found["Docker Compose"].text == "2.35.0"
    assert found["Chromium"].text.endswith("Chromium 140.0")


@pytest.mark.parametrize(
    ("said", "status", "fix"),
    [
        ("no answer within 5 s", None, "systemctl start docker"),
        ("Cannot connect to the Docker daemon at unix:///x", 1, "systemctl start docker"),
        ("permission denied while trying to connect", 1, "usermod -aG docker"),
    ],
)
def test_a_docker_whose_daemon_does_not_answer_is_a_warning(
    machine: Make, said: str, status: int | None, fix: str
) -> None:
    answers = Programs(
        {"docker version": says(said, status), "docker compose": says("unknown command", 1)}
    )
    found = by_name(programs.examine(machine(UBUNTU, answers)))
    assert found["Docker"].status is found["Docker Compose"].status is Status.WARN
    assert said in found["Docker"].text
    assert fix in found["Docker"].fix


# --- keys ----------------------------------------------------------------------------------------


def test_keys_are_named_and_never_shown(machine: Make) -> None:
    secret = "sk-very-secret"
    env = {"OPENAI_API_KEY": secret, "HF_TOKEN": f" {secret}", "PATH": "/bin"}
    found = one(keys.examine(machine({}, env=env)))
    assert found.status is Status.INFO
    assert found.text == "set: HF_TOKEN, OPENAI_API_KEY"
    assert secret not in repr(found)


def test_no_key_is_no_fault(machine: Make) -> None:
    assert one(keys.examine(machine({}))).status is Status.INFO


def test_a_key_that_is_empty_or_half_of_a_pair_is_a_warning(machine: Make) -> None:
    env = {"MODAL_TOKEN_ID": "x", "OPENAI_API_KEY": ""}
    _, *wrong = keys.examine(machine({}, env=env))
    assert [each.status for each in wrong] == [Status.WARN, Status.WARN]
    assert wrong[0].text == "OPENAI_API_KEY is set and empty"
    assert wrong[1].text == "MODAL_TOKEN_ID is set without MODAL_TOKEN_SECRET"


# --- envkit --------------------------------------------------------------------------------------


def test_extras_that_trials_need_fail_and_others_are_told() -> None:
    found = by_name(interpreter.examine(lambda package: package not in ("harbor", "modal")))
    assert found["[run]"].status is Status.FAIL
    assert found["[run]"].fix == "pip install 'envkit[run]'"
    assert found["[modal]"].status is Status.INFO
    assert found["[servers]"].status is Status.OK


def test_another_system_is_told_what_works_on_it() -> None:
    first = next(interpreter.examine(lambda _: True, "Darwin"))
    assert first.status is Status.FAIL
    assert "envkit audit" in first.fix
    assert platform.python_version() in first.text
