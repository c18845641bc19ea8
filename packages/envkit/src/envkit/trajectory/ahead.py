# SPDX-License-Identifier: Apache-2.0
"""Doing the next pieces of work on other cores as well as on this one.

Contract: results come in the order of the pieces, at most two a core ahead of the one taken last;
whoever stops taking them stops the work. Who waits for a piece works meanwhile, so that there is
one thread fewer than cores.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice

from envkit.trajectory.arrow import pa


def in_order[P, R](work: Callable[[P], Sequence[R]], pieces: Sequence[P]) -> Iterator[R]:
    """Everything that the pieces come to; what one raises is raised in its turn."""
    cores = min(int(pa.cpu_count()), len(pieces))
    if cores < 2:
        for piece in pieces:
            yield from work(piece)
        return
    pool = ThreadPoolExecutor(cores - 1, thread_name_prefix="trajectories")
    try:
        left = iter(pieces)
        ahead = deque(_Ahead(each, pool.submit(work, each)) for each in islice(left, 2 * cores))
        while ahead:
            while not ahead[0].future.done() and _help(work, ahead):
                pass
            done = ahead.popleft().future.result()
            ahead.extend(_Ahead(each, pool.submit(work, each)) for each in islice(left, 1))
            yield from done
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


@dataclass(slots=True)
class _Ahead[P, R]:
    piece: P
    future: Future[Sequence[R]]


def _help[P, R](work: Callable[[P], Sequence[R]], ahead: deque[_Ahead[P, R]]) -> bool:
    """Do the first piece that nobody has begun; False where there is none."""
    mine = next((each for each in ahead if each.future.cancel()), None)
    if mine is None:
        return False
    mine.future = Future()
    try:
        mine.future.set_result(work(mine.piece))
    except Exception as error:  # whatever it is: it is raised again in its turn
        mine.future.set_exception(error)
    return True
