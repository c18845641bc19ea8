# SPDX-License-Identifier: Apache-2.0
"""``rltrain tiny-policy``: flags to a call, progress while it runs, one line where it cannot."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from rltrain.cli_edge import edge


def tiny_policy(
    out: Annotated[Path, typer.Argument(metavar="OUT", help="Directory to make it in.")],
    transcripts: Annotated[
        Path,
        typer.Option(
            metavar="DIR",
            help="What to learn from: the --report of an envkit preflight --agent replay.",
        ),
    ],
    family: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Template family: qwen3, qwen3_xml, glm, llama3, hermes; may be repeated. "
            "Default: qwen3.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seeds the weights and what is drawn.")] = 0,
    steps: Annotated[
        int, typer.Option(min=1, help="Supervised steps for each family; 150 take a minute.")
    ] = 150,
    batch: Annotated[int, typer.Option(min=1, help="Transcripts a step.")] = 3,
    phrases: Annotated[
        bool, typer.Option("--phrases", help="Let tokens be whole phrases: short prompts.")
    ] = False,
    mistakes: Annotated[
        float | None,
        typer.Option(
            min=0.0,
            max=1.0,
            metavar="SHARE",
            help="Teach the tasks too, with so many calls left out, and arguments and words of "
            "answers taken from another task. Default: right calls, and any answer.",
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print what was made as one JSON document.")
    ] = False,
) -> None:
    """Make a policy of a million parameters that calls tools and guesses answers."""
    with edge("name an OUT that can be made"):
        from rltrain.tiny.make import TinyOptions, make

        families = tuple(family or ("qwen3",))
        options = TinyOptions(
            out=out,
            transcripts=transcripts,
            families=families,
            seed=seed,
            steps=steps,
            batch=batch,
            phrases=phrases,
            mistakes=mistakes,
        )
        with _progress(steps * len(families)) as told:
            made = make(options, told)
        _show(asdict(made), out, as_json)


def _show(made: dict[str, Any], out: Path, as_json: bool) -> None:
    if as_json:
        print(json.dumps({"directory": str(out), **made}))
        return
    print(
        f"{out}: {made['parameters']:,} parameters, {made['vocabulary']:,} tokens, "
        f"{made['steps']} steps, loss {made['loss']:.2f} nats a transcript"
    )


@contextmanager
def _progress(steps: int) -> Generator[Callable[[int, float], None]]:
    """A bar on standard error; nothing where that is no terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task("training", total=steps)

        def told(step: int, loss: float) -> None:
            progress.update(task, completed=step, description=f"training, loss {loss:.2f}")

        yield told
