# SPDX-License-Identifier: Apache-2.0
"""A crew that has gone, under the event loop that Ray's actors have."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from envkit.crew.client import open_crew
from envkit.crew.types import CrewLost, CrewOptions, TrialOrder

pytestmark = pytest.mark.trainer

CREW = """\
import socket, sys
from envkit.crew.lines import Hello, Ready, line

with socket.socket(socket.AF_UNIX) as other:
    other.connect(sys.argv[1])
    other.sendall(line(Hello(version="0")))
    other.recv(1 << 20)
    ready = Ready(
        run_token="t", pid=1, version="0", store="", rows=0, cut_off=(), resumable={},
        tokenizer_digest="", template_digest="", template_family="", tasks={},
    )
    other.sendall(line(ready))
    if sys.argv[2] == "stays":
        sys.stdin.read()
"""
ORDER = TrialOrder(trial_id="a", group_id="g", sample=0, task="t", engine="http://127.0.0.1:9")


@pytest.mark.parametrize("ends", ["dies", "stays"])
def test_a_trial_that_is_begun_after_its_crew_has_gone_says_so(tmp_path: Path, ends: str) -> None:
    """uvloop answers a write to a line that is closed with a RuntimeError, which none expects."""
    import uvloop

    (tmp_path / "crew.py").write_text(CREW)
    program = tmp_path / "python"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} {tmp_path}/crew.py "$4" {ends}\n')
    program.chmod(0o755)
    options = CrewOptions(python=program, root=tmp_path / "root", tasks=(), agent={})

    async def work() -> None:
        async with open_crew(options) as crew:
            if ends == "dies":
                with pytest.raises(CrewLost):
                    await anext(crew.events())
                for _ in range(3):  # the first one may still be taken by a socket nobody reads
                    with pytest.raises(CrewLost):
                        await crew.begin(ORDER)
        with pytest.raises(CrewLost):
            await crew.begin(ORDER)

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(work())
