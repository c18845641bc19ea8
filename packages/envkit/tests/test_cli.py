# SPDX-License-Identifier: Apache-2.0
"""The command line as a user meets it: help, one clear line for each mistake, exit codes."""

import asyncio
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from envkit import __version__, cli

TASKS = Path(__file__).parents[3] / "tasks"
COMMANDS = ("preflight", "run", "proxy", "show", "audit", "lint", "serve", "doctor")
METAVAR = re.compile(
    r"(PCT|NAME=VALUE|NAME|URL|DIR|REPORT|FILE|RUN|SECONDS|SPEC|N|N,N,\.\.\.|<.*>|-h)( .*)?"
)
WIDE = {"COLUMNS": "100", "TERM": "dumb", "NO_COLOR": "1"}

PREFLIGHT_OPTIONS = """\
--agent replay (the oracle's calls over MCP), oracle, nop, model, or module:Class. [default: replay]
--concurrency Trials that live at once. [default: 6]
--repeat Samples of each task. Default: fill the concurrency once.
--limit Only the first tasks, by name.
--max-fault-rate Share of attempts that may fault, in percent. [default: 0.5]
--env local, unsafe-process (no isolation, for debugging), or module:Class. [default: local]
--agent-arg For model or an agent module:Class; may be repeated.
--engine Of --agent model: its engine, or vllm:DIR.
--model Of --agent model: what the engine calls it.
--tokenizer Of --agent model: its tokenizer and chat template.
--engine-python Interpreter that has vLLM, for --engine vllm:DIR.
--env-arg For an environment module:Class, the same way.
--think-time Pause before calls: recorded, recorded*0.1, lognormal:MEDIAN_S,SIGMA or seconds.
--hold Let each trial sit idle for so long; its servers must still answer then. [default: 0.0]
--grade-twice Grade every trial twice; the same must come out. With --repeat one a task is.
--starts-per-s Trials that begin a second, at most. Default: 25.
--turns Trials that work at once; the furthest goes first. 0 for all. Default: 4 a core.
--seed Seeds the jitter of starts and retries, and what is drawn. [default: 0]
--json Print the report as one JSON document.
--report Keep the trials, report.json and report.html here.
--resume Go on with a run that was killed, as it was asked.
--rerun-failed Run again what failed in an earlier run, and only that.
--ramp The same tasks at each of these concurrencies, and where more gives no more.
--baseline Say what got slower or worse since this report.
--max-slowdown With --baseline: fail on what is worse, beyond chance, than this.
--estimate Say what a run of steps=N,prompts=N,samples=N would take: hours, sandbox-hours.
--junit Write JUnit XML: a test case a trial.
--markdown Write Markdown, for a pull request.
--quarantine Write the tasks not to be trained on, for trainers.
--chaos Inject these faults, below what judges them.
--score-chaos Score a --chaos run by its --report; run nothing.
"""


def envkit(*words: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", "from envkit.cli import main; main()", *words],
        capture_output=True,
        cwd=cwd,
        env={**os.environ, **WIDE},
        text=True,
        timeout=60,
        check=False,
    )


def options_of(command: str) -> dict[str, str]:
    """Option → its help, from the help screen, however the frame around it is drawn."""
    shown: dict[str, str] = {}
    name = ""
    text = CliRunner().invoke(cli.app, [command, "--help"], env=WIDE).output
    for line in text.splitlines():
        cells = re.split(r"\s{2,}", re.sub("[│╭╮╰╯─|+]", " ", line).strip())
        if cells[0].startswith("--"):
            name, cells = cells[0], cells[1:]
            shown[name] = ""
            cells = [c for c in cells if not METAVAR.fullmatch(c)]
        if name and line.startswith(("│", "|")):
            shown[name] = f"{shown[name]} {' '.join(cells)}".strip()
        else:
            name = ""
    return shown


def test_the_options_of_preflight_are_as_documented() -> None:
    shown = options_of("preflight")
    shown.pop("--help")
    assert "".join(f"{name} {text}\n" for name, text in shown.items()) == PREFLIGHT_OPTIONS


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_its_purpose(command: str) -> None:
    result = CliRunner().invoke(cli.app, [command, "--help"], env=WIDE)
    assert result.exit_code == 0
    assert f"envkit {command}" in result.output or f"{command} [OPTIONS]" in result.output


def test_the_help_lists_every_command() -> None:
    output = CliRunner().invoke(cli.app, ["--help"], env=WIDE).output
    assert [command for command in COMMANDS if command not in output] == []


def test_version_is_the_packages() -> None:
    done = envkit("--version")
    assert (done.returncode, done.stdout) == (0, f"envkit {__version__}\n")


MISTAKES = {
    "preflight-missing": (["preflight", "nowhere"], "nowhere: no such directory"),
    "preflight-empty": (["preflight", "empty"], "empty: no task"),
    "preflight-file": (["preflight", "file"], "file: no such directory"),
    "preflight-broken": (["preflight", "broken"], "task.toml: "),
    "preflight-agent": (["preflight", "broken", "--agent", "gpt"], "--agent gpt: use replay"),
    "preflight-module": (["preflight", "broken", "--agent", "no.such:A"], "no module no.such"),
    "preflight-env": (["preflight", "broken", "--env", "vm"], "--env vm: use local"),
    "preflight-rate": (["preflight", "broken", "--max-fault-rate", "many"], "not a percentage"),
    "preflight-rate-over": (["preflight", "broken", "--max-fault-rate", "101%"], "0 to 100"),
    "preflight-think": (["preflight", "broken", "--think-time", "fast"], "--think-time fast: use"),
    "preflight-hold": (["preflight", "broken", "--hold", "nan"], "--hold nan: not seconds"),
    "preflight-starts": (["preflight", "broken", "--starts-per-s", "0"], "not above 0"),
    "preflight-arg": (["preflight", "broken", "--agent-arg", "a=1"], "only module:Class"),
    "preflight-score": (["preflight", "--score-chaos", "full"], "no plan of a chaos run"),
    "preflight-ramp": (["preflight", "broken", "--ramp", "64,8"], "write for example 8,64,256"),
    "preflight-ramp-too": (
        ["preflight", "broken", "--ramp", "1,2", "--concurrency", "2"],
        "a ramp names its own",
    ),
    "preflight-baseline": (["preflight", "broken", "--baseline", "file"], "file: is no JSON"),
    "preflight-baseline-none": (["preflight", "broken", "--baseline", "x"], "x: No such file"),
    "preflight-slower": (["preflight", "broken", "--max-slowdown", "5"], "add --baseline REPORT"),
    "preflight-estimate": (["preflight", "broken", "--estimate", "9"], "write for example steps="),
    "preflight-junit": (["preflight", "broken", "--junit", "no/x"], "its directory is not there"),
    "preflight-markdown": (["preflight", "broken", "--markdown", "full"], "full: is a directory"),
    "preflight-list": (["preflight", "broken", "--quarantine", "no/x"], "--quarantine no/x: its"),
    "preflight-report": (["preflight", "broken", "--report", "full"], "full: holds files"),
    "preflight-report-file": (["preflight", "broken", "--report", "file"], "file: "),
    "lint-missing": (["lint", "nowhere"], "nowhere: no such directory"),
    "lint-empty": (["lint", "empty"], "empty: no task"),
    "audit-missing": (["audit", "nowhere"], "nowhere: no such directory"),
    "serve-missing": (["serve", "nowhere"], "nowhere: no such directory"),
    "serve-servers": (["serve", "empty", "--servers", "telnet"], "unknown server 'telnet'"),
    "serve-no-server": (["serve", "empty", "--servers", ","], "--servers: none is named"),
    "serve-code": (["serve", "empty", "--servers", "code"], "code_execution_server: empty is"),
    "serve-code-too": (["serve", "empty", "--servers", "pdf,code"], "read-only, where it has no"),
    "serve-world": (["serve", "bw"], "envkit: bw/world.toml: "),
    "usage-value": (["preflight", "--concurrency", "0"], "Invalid value for '--concurrency': "),
    "usage-type": (["preflight", "--seed", "x"], "Invalid value for '--seed': "),
    "usage-option": (["lint", "--nonsense"], "No such option: --nonsense"),
    "usage-audit": (["audit", "empty", "--nonsense"], "see envkit audit --help"),
    "usage-extra": (["doctor", "now"], "(now); see envkit doctor --help"),
    "usage-command": (["preflite"], "No such command 'preflite'"),
}


@pytest.fixture
def mistakes(tmp_path: Path) -> Path:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("mine")
    broken = tmp_path / "broken"
    (broken / "bad").mkdir(parents=True)
    (broken / "bad" / "task.toml").write_text("[agent\n")
    (broken / "bad" / "instruction.md").write_text("x")
    (tmp_path / "bw").mkdir()
    (tmp_path / "bw" / "world.toml").write_text("= 5")
    return tmp_path


@pytest.mark.parametrize(("words", "line"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_said_clearly_without_a_traceback_and_exits_2(
    mistakes: Path, words: list[str], line: str
) -> None:
    done = envkit(*words, cwd=mistakes)
    assert done.returncode == 2
    assert line in done.stderr
    problems = 3 if line == "task.toml: " else 1
    assert len(done.stderr.splitlines()) == problems
    assert "Traceback" not in done.stderr + done.stdout
    assert done.stdout == ""


def test_no_command_at_all_shows_the_help() -> None:
    done = envkit()
    assert done.returncode == 2
    assert [command for command in COMMANDS if command not in done.stdout + done.stderr] == []


JSON_MISTAKES = [
    ["preflight", "nowhere"],
    ["preflight", "empty"],
    ["preflight", "broken", "--concurrency", "0"],
    ["preflight", "broken", "--nonsense"],
    ["preflight", "broken", "--report", "full"],
    ["lint", "nowhere"],
    ["lint", "empty"],
    ["lint", "broken", "--nonsense"],
    ["audit", "nowhere"],
    ["audit", "empty"],
    ["audit", "empty", "--fail-over", "x"],
    ["audit", "empty", "--nonsense"],
    ["preflight", "--resume", "empty"],
    ["preflight", "--rerun-failed", "nowhere"],
    ["doctor", "--nonsense"],
    ["doctor", "--for", "0"],
]


@pytest.mark.parametrize("words", JSON_MISTAKES, ids=" ".join)
def test_json_is_one_document_also_for_a_mistake(mistakes: Path, words: list[str]) -> None:
    done = envkit(*words, "--json", cwd=mistakes)
    assert done.returncode == 2
    assert json.loads(done.stdout)["schema"] == f"envkit.{words[0]}/1"
    assert len(done.stderr.splitlines()) <= 1


@pytest.mark.parametrize("command", ["preflight", "lint", "audit"])
def test_a_directory_that_may_not_be_read_is_one_line_and_one_document(
    mistakes: Path, command: str
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        # Once as we are: what is imported on the way may lie where nobody may look.
        assert CliRunner().invoke(cli.app, [command, folder, "--json"]).exit_code == 2
        with nobody(Path(folder)):
            result = CliRunner().invoke(cli.app, [command, folder, "--json"])
    assert result.exit_code == 2, result.output
    assert "Permission denied" in result.stdout
    assert json.loads(result.stdout)["schema"] == f"envkit.{command}/1"


@contextlib.contextmanager
def nobody(folder: Path) -> Generator[None]:
    """This process without the right to list ``folder``."""
    folder.chmod(0o000)
    as_root = os.geteuid() == 0
    if as_root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if as_root:
            os.seteuid(0)
        folder.chmod(0o700)


def test_json_is_one_document_also_when_nothing_could_run(mistakes: Path) -> None:
    done = envkit("preflight", "broken", "--json", cwd=mistakes)
    report = json.loads(done.stdout)
    assert done.returncode == 2
    assert report["verdict"] == "COULD_NOT_RUN"
    assert "task.toml" in report["why"][0]
    assert done.stderr == ""


CACHES = ["file/cache", "/proc/no-such-cache", "file", "dir-with-file-for-roots"]


@pytest.mark.parametrize("cache", CACHES)
@pytest.mark.parametrize("env", ["local", "unsafe-process"])
def test_a_cache_that_cannot_be_written_stops_the_run_before_its_first_trial(
    mistakes: Path, monkeypatch: Any, cache: str, env: str
) -> None:
    (mistakes / "dir-with-file-for-roots").mkdir()
    (mistakes / "dir-with-file-for-roots" / "roots").write_text("")
    monkeypatch.setenv("ENVKIT_CACHE", str(mistakes / cache))
    done = envkit("preflight", str(TASKS), "--env", env, cwd=mistakes)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert f"{mistakes / cache}/roots: the cache cannot be written: " in line
    assert line.endswith("in ENVKIT_CACHE")


def test_the_report_directory_of_a_run_that_could_not_start_says_why(mistakes: Path) -> None:
    assert envkit("preflight", "broken", "--report", "new", cwd=mistakes).returncode == 2
    assert "COULD_NOT_RUN" in (mistakes / "new" / "report.json").read_text()
    assert "COULD NOT RUN" in (mistakes / "new" / "report.html").read_text()


def test_a_missing_extra_is_one_line_that_names_the_command(mistakes: Path) -> None:
    code = (
        "import sys; sys.modules['mcp'] = None; sys.modules['harbor'] = None\n"
        "from envkit.cli import main; main()"
    )
    for words, extra in ((["serve", "empty"], "servers"), (["preflight", str(TASKS)], "run")):
        done = subprocess.run(
            [sys.executable, "-c", code, *words],
            capture_output=True, cwd=mistakes, text=True, timeout=60, check=False,
        )  # fmt: skip
        assert done.returncode == 2, done.stderr
        assert f"is not installed; run: pip install 'envkit[{extra}]'" in done.stderr
        assert len(done.stderr.strip().splitlines()) == 1


def test_what_a_preflight_runs_again_is_told_by_its_report_alone(mistakes: Path) -> None:
    code = (
        "import asyncio, sys; from typer.testing import CliRunner; from envkit import cli\n"
        "CliRunner().invoke(cli.app, ['preflight', 'nowhere'])\n"
        "from envkit.fault import Phase, SandboxDied; from envkit.retry import Backoff, retry\n"
        "errors = [SandboxDied('once')]\n"
        "async def work():\n"
        "    if errors: raise errors.pop()\n"
        "backoff = Backoff(first_s=0.01)\n"
        "asyncio.run(retry(work, phase=Phase.RUN, idempotent=True, backoff=backoff))\n"
        "print(len(errors))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True, cwd=mistakes, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.stdout, done.stderr) == ("0\n", "")


def test_lint_prints_each_problem_and_counts_them(mistakes: Path) -> None:
    done = envkit("lint", "broken", cwd=mistakes)
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    assert any(line.startswith("error broken/bad/task.toml: ") for line in lines)
    assert re.fullmatch(r"1 task: \d+ errors?, \d+ warnings?", lines[-1])


def test_lint_json_lists_the_same_problems(mistakes: Path) -> None:
    done = envkit("lint", "broken", "--json", cwd=mistakes)
    report = json.loads(done.stdout)
    assert report["schema"] == "envkit.lint/1"
    assert report["errors"] == sum(p["severity"] == "error" for p in report["problems"]) > 0


def test_the_tasks_of_this_repository_have_no_lint_errors() -> None:
    if not TASKS.is_dir():
        pytest.skip("not run: the repository's tasks are absent")
    assert envkit("lint", str(TASKS)).returncode == 0


def test_a_defect_of_ours_is_loud_and_does_not_look_like_a_breached_gate() -> None:
    code = (
        "from envkit import cli\n"
        "def broken(**_): raise RuntimeError('a defect')\n"
        "cli.app = broken\n"
        "cli.main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 2
    assert "RuntimeError: a defect" in done.stderr


def json_of(*words: str) -> dict[str, Any]:
    return json.loads(envkit("preflight", str(TASKS), *words, "--json").stdout)


@pytest.mark.integration
@pytest.mark.parametrize(("agent", "reward"), [("replay", 1.0), ("oracle", 1.0), ("nop", 0.0)])
def test_preflight_of_this_repositorys_tasks_passes(agent: str, reward: float) -> None:
    report = json_of("--agent", agent, "--concurrency", "2", "--repeat", "1")
    assert report["verdict"] == "PASS", report["why"]
    assert report["rewards"]["mean"] == reward
    assert (report["peak_live"], report["trials"], report["attempts"]) == (2, 8, 8)
    assert not any(report["leaks"].values())


@pytest.mark.integration
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_preflight_still_reports_and_exits_130(
    tmp_path: Path, sent: signal.Signals
) -> None:
    words = ["preflight", str(TASKS), "--concurrency", "2", "--json", "--report", "r"]
    with subprocess.Popen(
        [sys.executable, "-c", "from envkit.cli import main; main()", *words],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as run:  # fmt: skip
        try:
            assert run.stderr is not None
            assert "fits" in run.stderr.readline()
            run.send_signal(sent)
            out, err = run.communicate(timeout=60)
        finally:
            run.kill()
    assert run.returncode == 130, err
    assert json.loads(out)["verdict"] == "INTERRUPTED"
    assert json.loads((tmp_path / "r" / "report.json").read_text()) == json.loads(out)


@pytest.mark.integration
def test_serve_answers_on_loopback_until_it_is_interrupted(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x")
    with subprocess.Popen(
        [sys.executable, "-c", "from envkit.cli import main; main()", "serve", ".", "--port", "0"],
        cwd=tmp_path, stderr=subprocess.PIPE, text=True,
    ) as server:  # fmt: skip
        try:
            assert server.stderr is not None
            line = server.stderr.readline()
            assert re.match(r"http://127\.0\.0\.1:\d+/mcp/  Authorization: Bearer \S{20,}", line)
            server.send_signal(signal.SIGINT)
            assert server.wait(timeout=20) == 130
        finally:
            server.kill()


@pytest.mark.integration
def test_a_world_is_served_over_stdio_as_a_copy_that_ends_with_the_server(tmp_path: Path) -> None:
    mcp = pytest.importorskip("mcp", reason="not run: mcp is not installed")
    stdio = pytest.importorskip("mcp.client.stdio", reason="not run: mcp is not installed")
    (world,) = (path.parent for path in sorted((TASKS / "worlds").glob("*/world.toml"))[:1])
    words = ["-c", "from envkit.cli import main; main()", "serve", str(world), "--stdio"]

    async def ask() -> tuple[list[str], bool]:
        server = stdio.StdioServerParameters(
            command=sys.executable, args=words, env={**os.environ, "TMPDIR": str(tmp_path)}
        )
        async with asyncio.timeout(60), mcp.Client(stdio.stdio_client(server)) as client:
            tools = [tool.name for tool in (await client.list_tools()).tools]
            written = await client.call_tool(
                "filesystem_server_write_file", {"file_path": "/note.txt", "content": "mine"}
            )
            return tools, written.is_error

    tools, failed = asyncio.run(ask())
    assert {name.split("_server_")[0] for name in tools} == {"filesystem", "pdf"}
    assert not failed
    assert list(tmp_path.glob("mcp-world-*")) == []
