# SPDX-License-Identifier: Apache-2.0
"""The command line: flags to calls, no logic.

Contract: exit 0 when what was checked holds, 1 when it does not, 2 when it could not be done, 130
when interrupted. What a user can set right is one line on standard error, never a traceback; where
``--json`` was asked for, standard output holds one document in that case too. Only what a command
needs is imported, when it runs: ``envkit audit`` works without the extras.
"""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from envkit import __version__
from envkit.cli_audit import audit
from envkit.cli_edge import edge, named
from envkit.cli_proxy import proxy
from envkit.cli_run import run
from envkit.usage import USAGE_ERROR, misused

app = typer.Typer(
    name="envkit",
    help="Trustworthy agent environments: preflight before a run, audit after it.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(audit)
app.command()(run)
app.command()(proxy)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"envkit {__version__}")
        raise typer.Exit(0)


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Trustworthy agent environments: preflight before a run, audit after it."""


FIELDS: Final = {"directory": "source", "report": "report_dir"}
"""Parameters of ``preflight`` that ``Options`` has under another name."""


@app.command()
def preflight(
    context: typer.Context,
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", help="A task, or a directory of tasks.")
    ] = Path("tasks/"),
    agent: Annotated[
        str,
        typer.Option(
            help="replay (the oracle's calls over MCP), oracle, nop, model, or module:Class."
        ),
    ] = "replay",
    concurrency: Annotated[int, typer.Option(min=1, help="Trials that live at once.")] = 6,
    repeat: Annotated[
        int | None,
        typer.Option(min=1, help="Samples of each task. Default: fill the concurrency once."),
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first tasks, by name.")] = None,
    max_fault_rate: Annotated[
        str, typer.Option(metavar="PCT", help="Share of attempts that may fault, in percent.")
    ] = "0.5",
    env: Annotated[
        str,
        typer.Option(help="local, unsafe-process (no isolation, for debugging), or module:Class."),
    ] = "local",
    agent_arg: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE", help="For model or an agent module:Class; may be repeated."
        ),
    ] = None,
    engine: Annotated[
        str, typer.Option(metavar="URL", help="Of --agent model: its engine, or vllm:DIR.")
    ] = "",
    model: Annotated[
        str, typer.Option(metavar="NAME", help="Of --agent model: what the engine calls it.")
    ] = "",
    tokenizer: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Of --agent model: its tokenizer and chat template."),
    ] = None,
    engine_python: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Interpreter that has vLLM, for --engine vllm:DIR."),
    ] = None,
    env_arg: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="For an environment module:Class, the same way."),
    ] = None,
    think_time: Annotated[
        str,
        typer.Option(
            metavar="SPEC",
            help="Pause before calls: recorded, recorded*0.1, lognormal:MEDIAN_S,SIGMA or seconds.",
        ),
    ] = "",
    hold: Annotated[
        float,
        typer.Option(
            metavar="SECONDS",
            help="Let each trial sit idle for so long; its servers must still answer then.",
        ),
    ] = 0.0,
    grade_twice: Annotated[
        bool,
        typer.Option(
            "--grade-twice",
            help="Grade every trial twice; the same must come out. With --repeat one a task is.",
        ),
    ] = False,
    starts_per_s: Annotated[
        float | None,
        typer.Option(metavar="N", help="Trials that begin a second, at most. Default: 25."),
    ] = None,
    turns: Annotated[
        int | None,
        typer.Option(
            min=0,
            metavar="N",
            help="Trials that work at once; the furthest goes first. 0 for all. Default: 4 a core.",
        ),
    ] = None,
    seed: Annotated[
        int, typer.Option(help="Seeds the jitter of starts and retries, and what is drawn.")
    ] = 0,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the report as one JSON document.")
    ] = False,
    report: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Keep the trials, report.json and report.html here."),
    ] = None,
    resume: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Go on with a run that was killed, as it was asked."),
    ] = None,
    rerun_failed: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Run again what failed in an earlier run, and only that."),
    ] = None,
    ramp: Annotated[
        str | None,
        typer.Option(
            metavar="N,N,...",
            help="The same tasks at each of these concurrencies, and where more gives no more.",
        ),
    ] = None,
    baseline: Annotated[
        Path | None,
        typer.Option(metavar="REPORT", help="Say what got slower or worse since this report."),
    ] = None,
    max_slowdown: Annotated[
        str | None,
        typer.Option(
            metavar="PCT", help="With --baseline: fail on what is worse, beyond chance, than this."
        ),
    ] = None,
    estimate: Annotated[
        str | None,
        typer.Option(
            metavar="RUN",
            help="Say what a run of steps=N,prompts=N,samples=N would take: hours, sandbox-hours.",
        ),
    ] = None,
    junit: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write JUnit XML: a test case a trial.")
    ] = None,
    markdown: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write Markdown, for a pull request.")
    ] = None,
    quarantine: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the tasks not to be trained on, for trainers."),
    ] = None,
    chaos: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Inject these faults, below what judges them."),
    ] = None,
    score_chaos: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Score a --chaos run by its --report; run nothing."),
    ] = None,
) -> None:
    """Run the tasks at training concurrency and say whether they can be trained on.

    Exit codes: 0 pass, 1 gate breached, 2 could not run, 130 interrupted (partial report).
    """
    with edge("run"):
        from envkit.preflight.command import preflight as run
        from envkit.preflight.options import Options
        from envkit.trial.policy import absolute

        code = run(
            Options(
                source=directory,
                agent=agent,
                env=env,
                concurrency=concurrency,
                repeat=repeat,
                limit=limit,
                max_fault_rate=max_fault_rate,
                seed=seed,
                think_time=think_time,
                hold=hold,
                grade_twice=grade_twice,
                starts_per_s=starts_per_s,
                turns=turns,
                agent_arg=tuple(agent_arg or ()),
                engine=absolute(engine),
                model=model,
                tokenizer=tokenizer,
                engine_python=engine_python,
                env_arg=tuple(env_arg or ()),
                as_json=as_json,
                report_dir=report,
                resume=resume,
                rerun_failed=rerun_failed,
                ramp=ramp,
                baseline=baseline,
                max_slowdown=max_slowdown,
                estimate=estimate,
                junit=junit,
                markdown=markdown,
                quarantine=quarantine,
                chaos=chaos,
                score_chaos=score_chaos,
                given=named(context, FIELDS),
            )
        )
        raise typer.Exit(code)


@app.command()
def show(
    path: Annotated[
        Path,
        typer.Argument(
            metavar="PATH",
            help="A run, a store or segment of trajectories, a trial, or a preflight's report.",
        ),
    ],
    name: Annotated[
        str | None,
        typer.Option("--id", metavar="ID", help="One trajectory, by its id or a part of it."),
    ] = None,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Write its page here as well.")
    ] = None,
    tokenizer: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="The model's tokenizer, where the run has no copy of it."),
    ] = None,
    full: Annotated[bool, typer.Option("--full", help="Cut no text, however long.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Show trajectories, one of them turn by turn, or the report of an earlier preflight.

    Exit codes: 0 it was shown, whatever it says, 2 there is nothing to show.
    """
    with edge("run"):
        from envkit.cli_show import show as run

        run(path, html, name=name, tokenizer=tokenizer, full=full, as_json=as_json)


@app.command()
def lint(
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", help="A task, or a directory of tasks.")
    ] = Path("tasks/"),
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the problems as one JSON document.")
    ] = False,
) -> None:
    """Check task directories without running them.

    Exit codes: 0 no errors (warnings are shown), 1 errors, 2 no task to check.
    """
    with edge("run"):
        from envkit.cli_lint import lint as run

        raise typer.Exit(run(directory, as_json=as_json))


@app.command()
def serve(
    world: Annotated[
        Path, typer.Argument(metavar="WORLD", help="A world, or a directory of documents.")
    ],
    servers: Annotated[
        str, typer.Option(help="Which servers, by comma: filesystem, code, pdf.")
    ] = "filesystem,pdf",
    stdio: Annotated[
        bool, typer.Option("--stdio", help="Speak MCP over standard input and output.")
    ] = False,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Serve HTTP on 127.0.0.1 at this port.")
    ] = 8000,
) -> None:
    """Serve a world's documents over MCP, for an agent on this machine.

    Agent code runs unconfined here: name the server `code` only for a world you trust.
    """
    with edge("servers"):
        from envkit.cli_serve import serve as run

        run(world, servers, stdio=stdio, port=port)


@app.command()
def doctor(
    reap: Annotated[
        bool, typer.Option("--reap", help="Remove what killed runs left behind.")
    ] = False,
    trials: Annotated[
        int, typer.Option("--for", metavar="N", min=1, help="Trials that are to live at once.")
    ] = 1,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the findings as one JSON document.")
    ] = False,
) -> None:
    """Say what works on this machine, and what to install or raise.

    Exit codes: 0 trials can run and nothing is left over (warnings are shown), 1 otherwise.
    """
    with edge("run"):
        from envkit.cli_doctor import doctor as run

        raise typer.Exit(run(trials=trials, as_json=as_json, reap=reap))


def main() -> None:
    """Entry point of the ``envkit`` script.

    A defect of ours shows its traceback and exits 2: 1 would say that something was checked.
    """
    try:
        code = app(prog_name="envkit", standalone_mode=False)
    except USAGE_ERROR as error:
        code = _misused(error, sys.argv[1:])
    except Exception:
        traceback.print_exc()
        code = 2
    sys.exit(code)


def _misused(error: Exception, words: Sequence[str]) -> int:
    """A wrong command line, on one line, and as a document where one was asked for."""
    line = misused(error, "envkit")
    if line is not None and "--json" in words:
        print(json.dumps(_refusal(words[0], line), indent=2))
    return 2


def _refusal(command: str, line: str) -> dict[str, Any]:
    """The document of a command that could not begin."""
    if command in ("preflight", "run"):
        from envkit.preflight.report import could_not_run
        from envkit.preflight.report_json import to_json

        return to_json(could_not_run([line]))
    return {"schema": f"envkit.{command}/1", "error": line}
