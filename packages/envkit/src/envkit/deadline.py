# SPDX-License-Identifier: Apache-2.0
"""A named time budget for every operation on the outside world.

`deadline` bounds a block, `within` an awaitable that may not even let itself be cancelled.
Both raise `DeadlineExceeded` with the operation and its seconds, which says whose time ran out. A
bare `TimeoutError` leaves neither: Harbor would rename it to the timeout of its own phase and take
the reward for a valid one.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from envkit.fault import EnvkitError

_log = logging.getLogger("envkit.deadline")


class DeadlineExceeded(EnvkitError):
    """An operation did not finish in its time. Not a ``TimeoutError``, on purpose."""

    def __init__(self, op: str, seconds: float) -> None:
        super().__init__(op, seconds)
        self.op = op
        """Name of the operation; those of `Budgets` are known to `envkit.fault`."""
        self.seconds = seconds
        """The time it was given, in seconds."""

    def __str__(self) -> str:
        return f"{self.op} did not finish within {self.seconds:g} s"


@dataclass(frozen=True, slots=True, kw_only=True)
class Budgets:
    """Seconds each operation may take, and why."""

    download_s: float = 300.0
    """100 MB at 0.4 MB/s: an image layer over a slow link, not a stalled one."""
    start_s: float = 120.0
    """A remote provider's cold start with an image pull; a local box takes under 0.1 s."""
    stop_s: float = 30.0
    """Docker gives a container 10 s to end before it kills it; twice that and some."""
    exec_s: float = 600.0
    """An oracle's whole solution is one command, as long as a verifier's; whoever knows better
    gives a command its own limit."""
    transfer_s: float = 120.0
    """The whole of a world's documents, 100 MB, into a box over 1 MB/s."""
    gateway_start_s: float = 30.0
    """A forked gateway need only fork; a cold one imports for 2.2 s, and on 2 cores many wait their
    turn."""
    mcp_connect_s: float = 30.0
    """Connecting took 18 s at the p99 with 300 clients in one process; the SDK sets no bound."""
    mcp_list_s: float = 30.0
    """A list is one small answer; what delays it is the same crowd as at connect."""
    mcp_call_s: float = 270.0
    """An agent may give its command 240 s, and a tool says so itself when its time is up: this
    only catches a server that does not."""
    mcp_close_s: float = 5.0
    """Closing is a courtesy to a server that is killed next."""
    generate_s: float = 600.0
    """A whole answer of an engine that does not stream, 16 k tokens at 30 tokens/s; of one that
    streams, the first token: a queue as long as that."""
    generate_idle_s: float = 60.0
    """Between tokens of a stream, which is never cut while it goes on: a weight update or the
    prefill of another's long prompt holds it up for seconds."""
    engine_start_s: float = 600.0
    """A server of an engine took 37 s for a small model; reading large weights takes minutes."""
    engine_stop_s: float = 15.0
    """Its requests are over by then; what does not end kindly in this time is killed."""
    judge_s: float = 120.0
    """One criterion: a long prompt, a short answer. The peer's hour hides an outage."""
    verify_s: float = 600.0
    """Harbor's own default for a verifier."""
    setup_s: float = 360.0
    """Harbor's own default for the setup of an agent."""
    hook_s: float = 30.0
    """A hook writes a record or a metric; a slower one must not hold up trials."""


DEFAULT_BUDGETS = Budgets()
"""The budgets of a trial that sets none."""


@asynccontextmanager
async def deadline(op: str, seconds: float) -> AsyncGenerator[None]:
    """Bound a block that lets itself be cancelled.

    Raises DeadlineExceeded when the time is up, and also in place of a bare ``TimeoutError`` that
    the block lets out: whatever waited inside, this operation did not finish in its time.
    """
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError as error:
        raise DeadlineExceeded(op, seconds) from error


async def within[T](op: str, seconds: float, awaitable: Awaitable[T]) -> T:
    """Wait for an awaitable, and come back on time whatever it does.

    It is cancelled when its time is up or the caller is cancelled, and abandoned with a warning if
    it does not obey: `asyncio.timeout` would wait for it without bound. One that ends cancelled
    while nobody cancelled the caller raises EnvkitError, owned by nobody: a ``CancelledError`` here
    would pass for a stopped run.
    """
    task = asyncio.ensure_future(awaitable)
    try:
        done, _ = await asyncio.wait({task}, timeout=seconds)
    except asyncio.CancelledError:
        abandon(op, task)
        raise
    if not done:
        abandon(op, task)
        raise DeadlineExceeded(op, seconds)
    try:
        return task.result()
    except asyncio.CancelledError as error:
        raise EnvkitError(f"{op} was cancelled from within") from error
    except TimeoutError as error:
        raise DeadlineExceeded(op, seconds) from error


def abandon[T](op: str, task: "asyncio.Future[T]") -> None:
    """Cancel what nobody waits for any more, and log what it still comes to after that."""
    if task.done():
        _ = task.cancelled() or task.exception()
    else:
        task.cancel()
        task.add_done_callback(lambda done: _report(op, done))


def _report[T](op: str, task: "asyncio.Future[T]") -> None:
    """Take what an abandoned operation still came to, so that it is not lost in silence."""
    if task.cancelled():
        return
    error = task.exception()
    _log.warning("%s ended after its deadline: %s", op, "done" if error is None else repr(error))
