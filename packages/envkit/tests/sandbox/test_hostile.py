# SPDX-License-Identifier: Apache-2.0
"""What agent code can see and reach of its gateway, its grading and its neighbours: nothing.

One real trial probes from inside its box while another lives beside it; see `probing_agent`.
"""

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from envkit.sandbox.availability import availability
from envkit.sandbox.lodging import GATEWAY_LIMITS
from envkit.sandbox.session import _KEPT  # pyright: ignore[reportPrivateUsage]

from ..trial.tiny import ORDINARY, Ran, launcher, lend_parts, make_task, run_trials, spec

pytestmark = pytest.mark.integration

SETTINGS = {
    "HARBOR_TELEMETRY",
    "LITELLM_LOCAL_MODEL_COST_MAP",
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
}
"""What the fork server sets itself."""

OWN_DOOR = re.compile(r"/proc/self/fd/\d+/python")
"""Address, on the other side, of the socket through which a box's python3 asks for a warm one."""

IN_TESTS = "mark-of-the-tests-4f1c"
IN_SOLUTION = "mark-of-the-solution-9be2"
IN_ENVIRONMENT = "mark-of-a-key-7d03"
"""Each is put together at run time from here only: what finds it has found the task's own files."""


@pytest.fixture(scope="module")
def probed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Ran, dict[str, Any]]:
    """The run, and what its probing agent found."""
    here = availability()
    if not here.ok:
        pytest.skip(f"missing tool: {here.line()}")
    if os.geteuid() != 0:
        pytest.skip("not run: needs root")
    place = tmp_path_factory.mktemp("hostile")
    prober = make_task(place / "tasks", "prober", ORDINARY)
    (prober / "tests/notes.txt").write_text(IN_TESTS)
    (prober / "solution/notes.txt").write_text(IN_SOLUTION)
    marks = json.dumps([IN_TESTS, IN_SOLUTION, IN_ENVIRONMENT])
    (prober / "solution/marks.json").write_text(marks)
    neighbour = make_task(place / "tasks", "neighbour", ORDINARY)
    with pytest.MonkeyPatch.context() as patch:
        lend_parts(patch)
        patch.setenv("SOME_API_KEY", IN_ENVIRONMENT)
        ran = run_trials(
            launcher(place / "out", concurrency=2, barrier=True),
            [
                spec(neighbour, place / "out", agent="probing_agent:NeighbourAgent"),
                spec(prober, place / "out", agent="probing_agent:ProbingAgent"),
            ],
        )
    return ran, json.loads((place / "out/prober__000/agent/probe.json").read_text())


@pytest.fixture
def inside(probed: tuple[Ran, dict[str, Any]]) -> dict[str, Any]:
    """What code in the agent's box found."""
    return probed[1]["inside"]


@pytest.fixture
def gateway(probed: tuple[Ran, dict[str, Any]]) -> dict[str, Any]:
    """What the host sees of the gateway's process, with its ``/proc`` status."""
    return {**probed[1]["host"], "status": probed[1]["status"]}


def test_the_probed_gateway_answers_on_and_both_trials_are_valid(probed: Any) -> None:
    for record in probed[0].records.values():
        assert (record.reward, record.reward_valid, len(record.attempts)) == (1.0, True, 1)
    assert probed[0].leftovers == []


# --- from inside the agent's box ---


def test_agent_code_sees_its_own_processes_only(inside: dict[str, Any]) -> None:
    assert set(inside["visible"]) <= set(range(1, 60))
    assert not [command for command in inside["commands"] if "sleep\x001234567" in command]
    assert not [command for command in inside["commands"] if "envkit.sandbox" in command]


def test_agent_code_can_signal_its_own_processes_only(inside: dict[str, Any]) -> None:
    assert set(inside["signalable"]) <= set(inside["visible"])
    assert inside["gateway"] == "ESRCH"


def test_agent_code_can_neither_read_nor_trace_process_1(inside: dict[str, Any]) -> None:
    assert inside["process 1"] == ["EACCES", "EACCES"]


def test_agent_code_finds_nothing_of_its_grading(inside: dict[str, Any]) -> None:
    listed = inside["listed"]
    assert listed.pop("/.apps_data") == "ENOENT"
    assert [listed.pop(path) for path in ("/logs/verifier", "/tests", "/solution")] == [[], [], []]
    assert set(listed.values()) == {"ENOENT"}


def test_agent_code_cannot_reach_the_gateways_sockets(inside: dict[str, Any]) -> None:
    assert inside["port"] == "ECONNREFUSED"
    assert inside["data"] == "ENOENT"
    assert inside["stage"] == "ENOENT"
    assert inside["open ports"] == []
    assert all(OWN_DOOR.fullmatch(*name) for name in inside["unix sockets"] if name)
    assert inside["interfaces"] == ["lo"]


def test_agent_code_never_sees_a_token(probed: Any, inside: dict[str, Any]) -> None:
    token = probed[1]["known"]["token"]
    assert not [text for text in inside["environments"] if token in text]
    assert not [text for text in inside["commands"] if token in text]


def test_agent_code_finds_nothing_of_another_trial(inside: dict[str, Any]) -> None:
    assert inside["secrets"] == []


def test_agent_code_cannot_make_namespaces_in_which_it_would_be_root(
    inside: dict[str, Any],
) -> None:
    assert inside["new namespaces"] == "ENOSPC"
    assert inside["after unshare"] == ["ENOENT", "ESRCH", "ENOENT"]


def test_agent_code_has_no_descriptor_but_its_own(inside: dict[str, Any]) -> None:
    assert inside["descriptors"][:3] == ["0", "1", "2"]


# --- from the agent's seat, with its token ---


def test_the_agents_tools_do_not_leave_the_filesystem(probed: Any) -> None:
    for path, ok, text in probed[1]["files"]:
        assert not ok, path
        assert "inbox" not in text
        assert "ENVKIT_RUN" not in text


def test_data_is_not_served_on_the_agents_socket(probed: Any) -> None:
    requests: dict[str, int] = probed[1]["requests"]
    assert {status for name, status in requests.items() if name.endswith("with token")} <= {404}
    assert {status for name, status in requests.items() if name.endswith("without")} <= {401}
    assert probed[1]["from the host"] == 200


# --- the gateway's own process, seen from the host ---


def test_the_gateway_has_no_capability_and_can_gain_none(gateway: dict[str, Any]) -> None:
    status = gateway["status"]
    assert {status[f"Cap{name}"] for name in ("Inh", "Prm", "Eff", "Bnd", "Amb")} == {"0" * 16}
    assert status["NoNewPrivs"] == "1"


def test_the_gateway_lives_in_namespaces_of_its_own(gateway: dict[str, Any]) -> None:
    assert gateway["same namespaces"] == []
    assert gateway["interfaces"] == ["lo"]


def test_the_gateway_is_in_the_control_groups_of_its_box(gateway: dict[str, Any]) -> None:
    groups = [line for line in gateway["cgroup"].splitlines() if "envkit-" in line]
    if not groups:
        pytest.skip("not run: no control group can be made here")
    assert all(line.endswith("-gateway") for line in groups), groups
    assert any(":memory:" in line or line.startswith("0::") for line in groups)


def test_what_an_agent_writes_through_its_gateway_cannot_use_up_the_gateway(
    gateway: dict[str, Any],
) -> None:
    if gateway["memory limit"] == 0:
        pytest.skip("not run: no control group can be made here")
    written_mib = 256  # the storage of the tiny task's box: its pages are charged to the writer
    assert gateway["memory limit"] >> 20 >= written_mib + GATEWAY_LIMITS.memory_mib


def test_the_gateway_cannot_be_traced_by_its_own_user(gateway: dict[str, Any]) -> None:
    user = int(gateway["status"]["Uid"].split()[0])
    if user == 0:
        pytest.skip("not run: envkit does not run as root here")
    assert gateway["owner"] == 0


def test_the_gateway_holds_no_text_of_its_task_no_key_and_no_others_token(
    probed: Any, gateway: dict[str, Any]
) -> None:
    assert len(probed[1]["own token in memory"]) == 1  # what is there is found
    assert probed[1]["secrets in memory"] == []
    names = {entry.partition("=")[0] for entry in gateway["environ"]} - {""}
    assert names <= {*_KEPT, "ENVKIT_RUN", *SETTINGS}


def test_the_gateway_sees_its_world_and_nothing_of_the_host(gateway: dict[str, Any]) -> None:
    assert gateway["sees"] == ["/.apps_data/mail/secret.txt"]


def test_the_gateway_keeps_no_descriptor_of_the_fork_server(gateway: dict[str, Any]) -> None:
    kinds = {link.split(":")[0] for link in gateway["descriptors"]}
    files = {link for link in gateway["descriptors"] if link.startswith("/")}
    assert kinds - {link.split(":")[0] for link in files} <= {"socket", "pipe", "anon_inode"}
    assert {Path(link).name for link in files} <= {"gateway.log", "null", "memfd:journal (deleted)"}
