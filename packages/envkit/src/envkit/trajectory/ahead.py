# SPDX-License-Identifier: Apache-2.0
"""Doing the next pieces of work on other cores while this one is used.

Contract: results come in the order of the pieces, at most two a core ahead of the one taken last;
whoever stops taking them stops the work.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice

from envkit.trajectory.arrow import pa


def in_order[P, R](work: Callable[[P], Sequence[R]], pieces: Sequence[P]) -> Iterator[R]:
    """Everything that the pieces come to; what one raises is raised in its turn."""
    cores: int = pa.cpu_count()
    if min(cores, len(pieces)) < 2:
        for piece in pieces:
            yield from work(piece)
        return
    pool = ThreadPoolExecutor(cores, thread_name_prefix="trajectories")
    try:
        left = iter(pieces)
        ahead = deque[Future[Sequence[R]]](
            pool.submit(work, piece) for piece in islice(left, 2 * cores)
        )
        while ahead:
            done = ahead.popleft().result()
            ahead.extend(pool.submit(work, piece) for piece in islice(left, 1))
            yield from done
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
