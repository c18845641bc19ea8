# SPDX-License-Identifier: Apache-2.0
"""``envkit run``: flags to a call, no logic."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from envkit.cli_edge import edge, named


def run(
    context: typer.Context,
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", help="A task, or a directory of tasks.")
    ] = Path("tasks/"),
    engine: Annotated[
        str,
        typer.Option(metavar="URL", help="The engine, or vllm:DIR to start vLLM for a model."),
    ] = "",
    tokenizer: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Tokenizer and chat template. Default: of vllm:DIR."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where the run goes; a new directory.")
    ] = None,
    model: Annotated[
        str, typer.Option(metavar="NAME", help="What the engine calls it. Default: its first.")
    ] = "",
    engine_python: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Interpreter that has vLLM.")
    ] = None,
    engine_arg: Annotated[
        list[str] | None, typer.Option(metavar="ARG", help="More for vLLM; may be repeated.")
    ] = None,
    samples: Annotated[int, typer.Option(min=1, help="Trials of each task.")] = 1,
    concurrency: Annotated[int, typer.Option(min=1, help="Trials that live at once.")] = 6,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first tasks, by name.")] = None,
    toolbelt: Annotated[
        str, typer.Option(help="mcp (the world's tools) or code (a shell and files, no server).")
    ] = "mcp",
    final_answer_tool: Annotated[
        bool, typer.Option("--final-answer-tool", help="The model answers by a call.")
    ] = False,
    todo_tool: Annotated[
        bool, typer.Option("--todo-tool", help="Give it a list of what is to do.")
    ] = False,
    toolbelt_tools: Annotated[
        bool, typer.Option("--toolbelt-tools", help="It finds and takes its tools itself.")
    ] = False,
    temperature: Annotated[
        float | None, typer.Option(min=0.0, help="Of sampling. Default: 1.")
    ] = None,
    top_p: Annotated[float | None, typer.Option(min=0.0, max=1.0, help="Default: 1.")] = None,
    top_k: Annotated[int | None, typer.Option(min=0, help="0 for all, the default.")] = None,
    min_p: Annotated[float | None, typer.Option(min=0.0, max=1.0, help="Default: 0.")] = None,
    top_logprobs: Annotated[
        int | None, typer.Option(min=0, help="Alternatives that each token is kept with.")
    ] = None,
    context_tokens: Annotated[
        int | None, typer.Option(min=1, help="Of an episode. Default: what the engine takes.")
    ] = None,
    turns_cap: Annotated[
        int | None, typer.Option(min=0, help="Turns of an episode; 0 for all. Default: 100.")
    ] = None,
    tool_calls: Annotated[
        int | None, typer.Option(min=0, help="Calls of an episode; 0 for all, the default.")
    ] = None,
    tokens_per_turn: Annotated[
        int | None, typer.Option(min=0, help="0 for all. Default: 16384.")
    ] = None,
    own_s: Annotated[
        float | None,
        typer.Option(
            min=0.0,
            metavar="SECONDS",
            help="Of the model's own time, without waiting. Default: what the task says.",
        ),
    ] = None,
    tool_result_tokens: Annotated[
        int | None, typer.Option(min=0, help="Shown of one result. Default: 10000.")
    ] = None,
    repairs: Annotated[
        int | None,
        typer.Option(min=0, help="Turns that are told what of them cannot be read. Default: 5."),
    ] = None,
    nudge_ratio: Annotated[
        float | None,
        typer.Option(
            min=0.0, max=1.0, help="Free context at which the model is told, once. Default: 0.2."
        ),
    ] = None,
    evaluation: Annotated[
        bool, typer.Option("--evaluation", help="No nudge; all else is as in training.")
    ] = False,
    agent_arg: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="More of the agent's, such as family=qwen3."),
    ] = None,
    env: Annotated[
        str,
        typer.Option(help="local, unsafe-process (no isolation, for debugging), or module:Class."),
    ] = "local",
    env_arg: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="For an environment module:Class."),
    ] = None,
    at_work: Annotated[
        int | None,
        typer.Option(
            min=0, metavar="N", help="Trials that work at once; 0 for all. Default: 4 a core."
        ),
    ] = None,
    starts_per_s: Annotated[
        float | None,
        typer.Option(metavar="N", help="Trials that begin a second, at most. Default: 25."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seeds the jitter of starts and retries.")] = 0,
    events: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Add a line of JSON for each trial once it is stored."),
    ] = None,
    resume: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Go on with a run that was killed, as it was asked."),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the report as one JSON document.")
    ] = False,
) -> None:
    """Run a model on tasks and store its trajectories.

    Exit codes: 0 all trials ended and are stored, 1 something is wrong with the tasks or no reward
    is valid, 2 could not run, 130 interrupted (go on with --resume).
    """
    with edge("run"):
        from envkit.run.command import rollouts
        from envkit.run.options import Options
        from envkit.trial.policy import absolute

        code = rollouts(
            Options(
                source=directory,
                out=out,
                engine=absolute(engine),
                model=model,
                tokenizer=tokenizer,
                engine_python=engine_python,
                engine_arg=tuple(engine_arg or ()),
                samples=samples,
                concurrency=concurrency,
                limit=limit,
                env=env,
                env_arg=tuple(env_arg or ()),
                toolbelt=toolbelt,
                final_answer_tool=final_answer_tool,
                todo_tool=todo_tool,
                toolbelt_tools=toolbelt_tools,
                temperature=temperature,
                top_p=top_p,
                top_k=top_k,
                min_p=min_p,
                top_logprobs=top_logprobs,
                context_tokens=context_tokens,
                turns_cap=turns_cap,
                tool_calls=tool_calls,
                tokens_per_turn=tokens_per_turn,
                own_s=own_s,
                tool_result_tokens=tool_result_tokens,
                repairs=repairs,
                nudge_ratio=nudge_ratio,
                evaluation=evaluation,
                agent_arg=tuple(agent_arg or ()),
                at_work=at_work,
                starts_per_s=starts_per_s,
                seed=seed,
                as_json=as_json,
                events=events,
                resume=resume,
                given=named(context, {"directory": "source"}),
            )
        )
        raise typer.Exit(code)
