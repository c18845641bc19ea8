# SPDX-License-Identifier: Apache-2.0
"""``envkit proxy``: flags to a call, no logic."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from envkit.cli_edge import edge


def proxy(
    engine: Annotated[str, typer.Option(metavar="URL", help="Of the engine that samples.")],
    tokenizer: Annotated[
        Path, typer.Option(metavar="DIR", help="The model's tokenizer and chat template.")
    ],
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="Where trajectories go; gone on with if it exists.")
    ],
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Serve on 127.0.0.1 at this port; 0 for any.")
    ] = 8100,
    model: Annotated[
        str, typer.Option(metavar="NAME", help="What the engine calls it. Default: its first.")
    ] = "",
    family: Annotated[
        str, typer.Option(help="Of the chat template, where it is not to be found out.")
    ] = "",
    template: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A chat template in place of the directory's."),
    ] = None,
    template_arg: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="For the template; may be repeated."),
    ] = None,
    task: Annotated[
        str, typer.Option(metavar="NAME", help="Of conversations whose client names none.")
    ] = "proxy",
    harness: Annotated[
        str, typer.Option(metavar="NAME", help="What to call the harness in trajectories.")
    ] = "",
    temperature: Annotated[float, typer.Option(min=0.0, help="Where a client names none.")] = 1.0,
    idle_s: Annotated[
        float,
        typer.Option(min=1.0, metavar="SECONDS", help="After which a conversation is over."),
    ] = 1800.0,
    conversations: Annotated[int, typer.Option(min=1, help="That are open at once.")] = 1024,
) -> None:
    """Serve a model to harnesses that speak OpenAI's protocol, and store what it sampled.

    Exit codes: 0 all is stored, 1 something is not, 2 could not begin.
    """
    with edge("run"):
        from envkit.preflight.load import args_of
        from envkit.proxy.command import Options
        from envkit.proxy.command import proxy as run
        from envkit.trajectory.types import Sampling

        code = run(
            Options(
                engine=engine,
                tokenizer=tokenizer,
                out=out,
                model=model,
                port=port,
                family=family,
                template=str(template or ""),
                variables=args_of("--template-arg", tuple(template_arg or ()), True),
                task=task,
                harness=harness,
                idle_s=idle_s,
                conversations=conversations,
                sampling=Sampling(temperature=temperature),
            )
        )
        raise typer.Exit(code)
