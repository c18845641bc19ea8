# SPDX-License-Identifier: Apache-2.0
"""The process of one trial, forked by the fork server: one loop, one MCP client, one trial.

Contract: it says its phases and ``ready`` on its channel, waits there for ``go``, leaves its
attempt as ``attempt.json`` in the trial directory by an atomic rename, and exits.
"""

from __future__ import annotations

import asyncio
import socket
import time
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from envkit.sandbox import ledger, session
from envkit.sandbox.prepare import Prepared
from envkit.trial.record import write_attempt
from envkit.trial.rehearsal import rehearse
from envkit.trial.request import TrialRequest
from envkit.trial.run import run_trial

_WARM: Final = (
    "harbor.agents.nop",
    "harbor.agents.oracle",
    "harbor.trial.regrade",
    "harbor.trial.single_step",
    "harbor.verifier.verifier",
    "envkit.agent.replay",
    "envkit.sandbox.local",
)


def warm() -> None:
    """Import what every trial needs and run one that is nowhere, before the first fork."""
    for name in _WARM:
        import_module(name)
    rehearse()


def main(spec: dict[str, Any], sock: socket.socket) -> None:
    """Run the trial that ``spec`` describes; called in the forked child, which exits after it.

    Not by ``asyncio.run``: that would wait for operations that were abandoned at their deadline.
    """
    asyncio.new_event_loop().run_until_complete(_main(spec, sock))


async def _main(spec: dict[str, Any], sock: socket.socket) -> None:
    request = TrialRequest.from_dict(spec["request"])
    mine = session.Session(Path(spec["stage"]))
    if spec["prepared"]:
        mine.prepared[request.task_dir.resolve()] = Prepared.from_dict(spec["prepared"])
    channel = mine.connect(sock)
    session.adopt(mine)

    async def hold() -> None:
        channel.tell("up")
        if spec["hold"]:
            await mine.go.wait()
        with book.during("turn"):  # training waits for cores as well; for the barrier it does not
            await mine.turn(0)

    def tell_phase(name: str) -> None:
        channel.tell("phase", phase=name, cpu_s=time.process_time())

    book = ledger.begin(tell_phase, request.budgets)
    attempt = await run_trial(request, book, hold)
    write_attempt(request.trials_dir / request.trial_name, attempt)
