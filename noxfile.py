# SPDX-License-Identifier: Apache-2.0
# /// script
# requires-python = ">=3.12"
# dependencies = ["nox[uv]>=2025.5"]
# ///
"""Everything a developer runs: ``python -m nox -s demo | fit-demo | tests | mutants | bench``.

Environments are made by uv from the interpreter that runs nox, live under ``.nox/`` and are only
touched when a constraints file or a ``pyproject.toml`` changed. ``tests`` runs all of its parts, or
those named: ``python -m nox -s tests -- unit``; each part prints its seconds. Parts go in two lanes
side by side, and say what they have to say once they are over. The last line counts what passed,
failed and was skipped; a skip whose reason is not in ``constraints/allowed-skips.txt`` fails the
run, so that a missing tool cannot pass for a green test.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import shutil
import subprocess
import sys
import threading
import time
import xml.etree.ElementTree as ET
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import nox
from nox.command import CommandFailed

ROOT = Path(__file__).resolve().parent
CACHE = ROOT / ".nox"
HARBOR_MINORS = ("0.25", "0.26")
NEWEST_HARBOR = HARBOR_MINORS[-1]
HARBOR_TESTS = tuple(
    f"packages/envkit/tests/{path}"
    for path in (
        "agent/test_recording.py",
        "agent/test_replay.py",
        "agent/toolbelt/test_code.py",
        "crew",
        "fault",
        "preflight/chaos/test_order.py",
        "preflight/chaos/test_strikes.py",
        "preflight/test_launcher.py",
        "sandbox/test_guard.py",
        "task/test_harbor_reads_our_tasks.py",
        "task/test_keys.py",
        "task/test_load.py",
        "trajectory/test_atif.py",
        "trial",
    )
)
"""Where envkit touches Harbor; these also run against each older minor."""
EVERYTHING = ("-e", "packages/envkit[run]", "-e", "packages/rltrain")
TRAINER_PINS = "constraints/environment-r.txt"
ELSEWHERE = " and ".join(f"not {marker}" for marker in ("packaging", "engine", "trainer"))
"""What a part that only needs the developer's environment leaves to the others."""
OURS = ("packages", "tests", "tasks", "benchmarks", "docs", "noxfile.py")
LINT = (
    ("ruff", "check", *OURS),
    ("ruff", "format", "--check", *OURS),
    ("lint-imports", "--no-cache", "pyproject.toml"),
    ("codespell", "README.md", "AGENTS.md", ".ci", "constraints", *OURS),
)
"""The same commands run before every commit: .pre-commit-config.yaml."""
TEST_TIMEOUT_S = 600  # one test; a hang must fail its part, not the whole run

ENVIRONMENT = {
    "HARBOR_TELEMETRY": "0",
    "HF_HUB_OFFLINE": "1",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "PYRIGHT_PYTHON_IGNORE_WARNINGS": "1",
    "PYTHONDONTWRITEBYTECODE": None,  # where set, all of vLLM is compiled anew by every process
    "UV_PYTHON_DOWNLOADS": "never",
    "UV_SYSTEM_CERTS": "true",  # an index behind a company's own certificate
}

_lane = threading.local()
"""Where the programs of a lane write, where there is more than one."""
_making = threading.Lock()
"""One environment is made at a time."""

nox.options.default_venv_backend = "none"
nox.options.sessions = ["tests"]


# --- environments -------------------------------------------------------------------------------


def uv(session: nox.Session, *arguments: str) -> None:
    """Run the uv that came with ``nox[uv]``."""
    command = (sys.executable, "-m", "uv", *arguments)
    session.run(*command, env=ENVIRONMENT, external=True, log=False)


def constraints(harbor: str = NEWEST_HARBOR) -> str:
    return f"constraints/harbor-{harbor}.txt"


def fingerprint(requirements: Sequence[str]) -> str:
    """What an environment was made from; a change of any of it makes the environment anew."""
    sources = sorted([*ROOT.glob("constraints/*.txt"), *ROOT.glob("packages/*/pyproject.toml")])
    parts = [sys.version, sys.base_prefix, str(ROOT), *requirements]
    parts += [path.read_text("utf-8") for path in [ROOT / "pyproject.toml", *sources]]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def environment(session: nox.Session, place: Path, requirements: Sequence[str]) -> Path:
    """An environment at ``place`` holding ``requirements``; returns its folder of programs."""
    stamp, wanted = place / "made-from", fingerprint(requirements)
    with _making:
        if not stamp.exists() or stamp.read_text("utf-8") != wanted:
            print(f"making {place.relative_to(ROOT)}", flush=True)
            uv(session, "venv", "--clear", "--quiet", "--python", sys.executable, str(place))
            python = str(place / "bin" / "python")
            uv(session, "pip", "install", "--quiet", "--python", python, *requirements)
            stamp.write_text(wanted, "utf-8")
    return place / "bin"


def developer_environment(session: nox.Session, harbor: str = NEWEST_HARBOR) -> Path:
    pins = ("-c", constraints(harbor), "-b", constraints(harbor))
    return environment(session, CACHE / f"dev-{harbor}", ["--group", "dev", *EVERYTHING, *pins])


def trainer_environment(session: nox.Session) -> Path:
    """torch, vLLM and rltrain: all that is in it is pinned, as no resolver takes it together."""
    ours = ("-e", "packages/envkit", "-e", "packages/rltrain", "-b", constraints())
    return environment(session, CACHE / "trainer", ["--no-deps", "-r", TRAINER_PINS, *ours])


def program(session: nox.Session, folder: Path, *command: str, **settings: str) -> None:
    """Run a program of an environment with that environment first on PATH."""
    path = os.pathsep.join([str(folder), os.environ.get("PATH", os.defpath)])
    env = {**ENVIRONMENT, **settings, "PATH": path, "VIRTUAL_ENV": str(folder.parent)}
    words = (str(folder / command[0]), *command[1:])
    log = getattr(_lane, "log", None)
    if log is None:
        session.run(*words, env=env, external=True)
    else:
        session.run(*words, env=env, external=True, stdout=log, stderr=subprocess.STDOUT)


# --- counting what ran ----------------------------------------------------------------------------


@dataclass(kw_only=True)
class Tally:
    """What every part of a run left behind."""

    passed: int = 0
    failed: int = 0
    skips: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    """(test, reason)"""
    seconds: dict[str, float] = field(default_factory=dict[str, float])
    """by part"""

    def read(self, report: Path) -> None:
        """Add a JUnit report of pytest."""
        for case in ET.parse(report).getroot().iter("testcase"):
            skip = case.find("skipped")
            if case.find("failure") is not None or case.find("error") is not None:
                self.failed += 1
            elif skip is not None:
                test = f"{case.get('classname')}::{case.get('name')}"
                self.skips.append((test, skip.get("message") or "no reason given"))
            else:
                self.passed += 1

    def add(self, other: Tally) -> None:
        """Put a lane's beside one's own."""
        self.passed += other.passed
        self.failed += other.failed
        self.skips += other.skips
        self.seconds |= other.seconds

    def line(self) -> str:
        return f"{self.passed} passed, {self.failed} failed, {len(self.skips)} skipped"


def allowed_skips(text: str) -> tuple[str, ...]:
    """The reasons in an allowed-skips file, without its comments."""
    lines = (line.strip() for line in text.splitlines())
    return tuple(line for line in lines if line and not line.startswith("#"))


def forbidden_skips(
    skips: Sequence[tuple[str, str]], allowed: tuple[str, ...]
) -> list[tuple[str, str]]:
    """The skips whose reason starts with none of the allowed ones."""
    return [(test, reason) for test, reason in skips if not reason.startswith(allowed or ("\0",))]


def check(session: nox.Session, tally: Tally, folder: Path, *command: str) -> None:
    """One program that must exit 0; counts as one test."""
    try:
        program(session, folder, *command)
    except CommandFailed:
        tally.failed += 1
    else:
        tally.passed += 1


def pytest(
    session: nox.Session,
    tally: Tally,
    folder: Path,
    name: str,
    marker: str,
    *paths: str,
    **settings: str,
) -> None:
    """Run the tests with ``marker`` and count them; a run that breaks off counts as a failure."""
    report = CACHE / "reports" / f"{name}.xml"
    report.parent.mkdir(parents=True, exist_ok=True)
    report.unlink(missing_ok=True)
    options = ["-q", "-m", marker, f"--junitxml={report}", f"--timeout={TEST_TIMEOUT_S}"]
    failed_before = tally.failed
    try:
        program(session, folder, "pytest", *options, *paths, **settings)
        broke = False
    except CommandFailed:
        broke = True
    if report.exists():
        tally.read(report)
    if broke and tally.failed == failed_before:
        tally.failed += 1


# --- the parts of `tests` -------------------------------------------------------------------------


def lint(session: nox.Session, tally: Tally) -> None:
    folder = developer_environment(session)
    for command in LINT:
        check(session, tally, folder, *command)


def types(session: nox.Session, tally: Tally) -> None:
    folder = developer_environment(session)
    check(session, tally, folder, "pyright", "--pythonpath", str(folder / "python"))


def unit(session: nox.Session, tally: Tally) -> None:
    folder = developer_environment(session)
    pytest(session, tally, folder, "unit", f"not integration and {ELSEWHERE}")


def integration(session: nox.Session, tally: Tally) -> None:
    folder = developer_environment(session)
    pytest(session, tally, folder, "integration", f"integration and {ELSEWHERE}")


def harbor(session: nox.Session, tally: Tally) -> None:
    """The tests that touch Harbor, against each older minor we support."""
    paths = [path for path in HARBOR_TESTS if (ROOT / path).exists()]
    for minor in HARBOR_MINORS[:-1]:
        folder = developer_environment(session, minor)
        pytest(session, tally, folder, f"harbor-{minor}", ELSEWHERE, *paths)


def trainer(session: nox.Session, tally: Tally) -> None:
    """What needs torch."""
    folder = trainer_environment(session)
    one = {"OMP_NUM_THREADS": "1"}  # threads that wait for each other wait long beside another lane
    pytest(session, tally, folder, "trainer", "trainer", "packages/rltrain/tests", **one)


def engine(session: nox.Session, tally: Tally) -> None:
    """What samples from vLLM, which is served from the trainer's environment."""
    served_by = {"ENVKIT_TEST_ENGINE_PYTHON": str(trainer_environment(session) / "python")}
    folder = developer_environment(session)
    pytest(session, tally, folder, "engine", "engine", "tests/engine", **served_by)


def build(session: nox.Session, tally: Tally) -> None:
    """Both wheels, each installed alone."""
    pytest(session, tally, developer_environment(session), "build", "packaging", "tests/packaging")


PARTS: dict[str, Callable[[nox.Session, Tally], None]] = {
    part.__name__: part for part in (lint, types, unit, integration, harbor, trainer, engine, build)
}


LANES = (("integration", "harbor", "build", "trainer"), ("lint", "types", "unit", "engine"))
"""Parts that go one after the other; the lanes take about as long as each other."""


@contextmanager
def timed(tally: Tally, name: str) -> Generator[None]:
    print(f"== {name}", flush=True)
    start = time.monotonic()
    yield
    tally.seconds[name] = time.monotonic() - start
    print(f"== {name}: {tally.seconds[name]:.1f} s", flush=True)


def lane(session: nox.Session, names: Sequence[str], *, alone: bool) -> Tally:
    """Run parts one after the other; what they write comes once each is over, unless alone."""
    tally = Tally()
    for name in names:
        if alone:
            with timed(tally, name):
                PARTS[name](session, tally)
            continue
        log = CACHE / "reports" / f"{name}.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        with timed(tally, name), log.open("w+", encoding="utf-8") as _lane.log:
            PARTS[name](session, tally)
            _lane.log.seek(0)
            print(f"== what {name} said\n{_lane.log.read()}", end="", flush=True)
    return tally


def chosen_parts(names: Sequence[str]) -> list[str]:
    """The parts named, or all of them; an unknown name is a one-line error."""
    unknown = [name for name in names if name not in PARTS]
    if unknown:
        message = f"no part {', '.join(unknown)}; the parts are {', '.join(PARTS)}"
        raise ValueError(message)
    return list(names) or list(PARTS)


def summary(tally: Tally, forbidden: Sequence[tuple[str, str]]) -> str:
    """The closing lines: seconds by part, every skip with its reason, the count."""
    lines = [f"{name:<12} {seconds:7.1f} s" for name, seconds in tally.seconds.items()]
    lines += [f"skipped: {test}: {reason}" for test, reason in tally.skips]
    lines += [f"not allowed to be skipped: {test}: {reason}" for test, reason in forbidden]
    return "\n".join([*lines, tally.line()])


@nox.session
def tests(session: nox.Session) -> None:
    """Everything that must pass: lint, types, unit, integration, harbor, trainer, engine, build."""
    try:
        names = chosen_parts(session.posargs)
    except ValueError as error:
        session.error(str(error))
    lanes = [[name for name in each if name in names] for each in LANES]
    lanes = [each for each in lanes if each]
    began, tally = time.monotonic(), Tally()
    with ThreadPoolExecutor(len(lanes)) as pool:
        alone = len(lanes) == 1
        for done in [pool.submit(lane, session, each, alone=alone) for each in lanes]:
            tally.add(done.result())
    tally.seconds["all"] = time.monotonic() - began
    allowed = allowed_skips((ROOT / "constraints/allowed-skips.txt").read_text("utf-8"))
    forbidden = forbidden_skips(tally.skips, allowed)
    tally.failed += len(forbidden)
    atexit.register(print, summary(tally, forbidden), flush=True)  # after nox's own last line
    if tally.failed:
        session.error(f"{tally.failed} failed")


# --- the other sessions ---------------------------------------------------------------------------


@nox.session
def demo(session: nox.Session) -> None:
    """Preflight tasks/ in real sandboxes, audit what it recorded, say where the reports are."""
    pins = ("-c", constraints(), "-b", constraints())
    folder = environment(session, CACHE / "demo", ["-e", "packages/envkit[run]", *pins])
    reports = ROOT / "envkit-reports" / "demo"
    audited = reports.with_name("demo-audit")
    for old in (reports, audited):
        shutil.rmtree(old, ignore_errors=True)
    program(session, folder, "envkit", "preflight", "tasks", "--report", str(reports))
    program(session, folder, "envkit", "audit", str(reports), "--report", str(audited))
    print(f"\nreports: {reports / 'report.html'}\n         {audited / 'audit.html'}", flush=True)


@nox.session(name="fit-demo")
def fit_demo(session: nox.Session) -> None:
    """Make a small policy, train it on tasks/tiny while it is sampled, and say whether it rose.

    A shorter one with a learning rate of 0 follows unless ``-- --no-control``: nothing may rise.
    """
    trials = ("-e", "packages/envkit[run]", "-c", constraints(), "-b", constraints())
    boxes, trainer = environment(session, CACHE / "demo", trials), trainer_environment(session)
    place = ROOT / "envkit-reports" / "fit-demo"
    shutil.rmtree(place, ignore_errors=True)
    recorded, policy = str(place / "recorded"), str(place / "policy")
    record = ("--agent", "replay", "--repeat", "1", "--report", recorded)
    program(session, boxes, "envkit", "preflight", "tasks/tiny", *record)
    warm = ("--phrases", "--mistakes", "0.35", "--batch", "16", "--steps", "180")
    program(session, trainer, "rltrain", "tiny-policy", policy, "--transcripts", recorded, *warm)
    runs: dict[str, tuple[str, ...]] = {"trained": ()}
    if "--no-control" not in session.posargs:
        short = ("run.steps=5", "evaluate.passes=4", "optimizer.learning_rate=0")
        runs["control"] = tuple(word for each in short for word in ("--set", each))
    for name, settings in runs.items():
        run = str(place / name)
        given = ("--policy", policy, "--tasks", "tasks/tiny", "--out", run, *settings)
        python = ("--environment-python", str(boxes / "python"))
        program(session, trainer, "rltrain", "fit", "tiny-cpu", *given, *python)
        program(session, trainer, "rltrain", "report", run)
    for name in runs:
        program(session, trainer, "rltrain", "status", str(place / name))
    print(f"\nreport: {place / 'trained' / 'report.html'}", flush=True)


@nox.session
def dev(session: nox.Session) -> None:
    """.venv with both packages editable and every developer tool."""
    pins = ("-c", constraints(), "-b", constraints())
    groups = ("--group", "dev", "--group", "docs")
    folder = environment(session, ROOT / ".venv", [*groups, *EVERYTHING, *pins])
    print(f"source {folder / 'activate'}", flush=True)


@nox.session
def bench(session: nox.Session) -> None:
    """Run benchmarks by name: ``python -m nox -s bench -- audit``; without a name, list them."""
    known = sorted(path.stem for path in (ROOT / "benchmarks").glob("*.py"))
    if not session.posargs or session.posargs[0] not in known:
        session.error(f"name one of: {', '.join(known) or 'none yet'}")
    name, *arguments = session.posargs
    program(session, developer_environment(session), "python", f"benchmarks/{name}.py", *arguments)


@nox.session
def mutants(session: nox.Session) -> None:
    """Break our code where traps lie, one at a time; a test must see each. Rules may be named."""
    words = ("-m", "tests.mutants.run", *session.posargs)
    program(session, developer_environment(session), "python", *words)


@nox.session
def docs(session: nox.Session) -> None:
    """Build the documentation site into site/; a broken link or reference fails."""
    pins = ("-c", constraints(), "-b", constraints())
    requirements = ["--group", "docs", "-e", "packages/envkit", "-e", "packages/rltrain", *pins]
    folder = environment(session, CACHE / "docs", requirements)
    program(session, folder, "mkdocs", "build", "--strict", "--quiet", NO_MKDOCS_2_WARNING="true")
    print(f"Site: {ROOT / 'site' / 'index.html'}", flush=True)


@nox.session(name="constraints")
def pin(session: nox.Session) -> None:
    """Write the constraints files anew from today's index, without its address."""
    plain = ("--no-header", "--no-annotate", "--no-emit-index-url", "--no-emit-find-links")
    sources = ("packages/envkit/pyproject.toml", "packages/rltrain/pyproject.toml")
    wanted = ("--extra", "run", "--group", "dev", "--group", "docs", *sources)
    for minor in HARBOR_MINORS:
        limit = CACHE / f"harbor-{minor}.in"
        limit.parent.mkdir(exist_ok=True)
        limit.write_text(f"harbor=={minor}.*\n", "utf-8")
        target = ("--output-file", constraints(minor), "--constraints", str(limit))
        ours = ("--no-emit-package", "envkit")
        kind = ("--quiet", "--upgrade", "--universal", "--python-version", "3.12")
        uv(session, "pip", "compile", *kind, *plain, *ours, *target, *wanted)
