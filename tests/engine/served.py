# SPDX-License-Identifier: Apache-2.0
"""A vLLM server for a block that is not a coroutine."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from envkit.agent.engine.serve import Served, ServeOptions, serving

CONTEXT_TOKENS = 8192


def exact(model: Path, python: Path) -> ServeOptions:
    """In float32 and without a prefix cache, so that what is scored again can be equal."""
    return ServeOptions(
        model=model,
        python=python,
        context_tokens=CONTEXT_TOKENS,
        dtype="float32",
        prefix_cache=False,
        eager=True,
    )


@contextmanager
def served(options: ServeOptions, log: Path) -> Iterator[Served]:
    """Serve inside the block; the end of the log is printed when it fails."""
    with asyncio.Runner() as runner:
        server = serving(options, log)
        try:
            yield runner.run(server.__aenter__())
        except BaseException:
            print(log.read_text("utf-8", "replace")[-4000:] if log.exists() else "no log")
            raise
        finally:
            runner.run(server.__aexit__(None, None, None))
