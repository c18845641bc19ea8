# SPDX-License-Identifier: Apache-2.0
# pyright: basic, reportMissingImports=false
"""Several ranks on this machine, as processes of their own.

Contract: whoever is asked to stop stops all of them, and so does the end of this process. A rank
that is refused or that dies ends the others; the first line that a rank had to say is told.
Several machines are torchrun's: ``torchrun … -m rltrain fit …`` makes each process one rank.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import torch
from torch.multiprocessing.spawn import ProcessExitedException, ProcessRaisedException

from rltrain.policy.ranks import MEETING
from rltrain.refused import Refused

REFUSED: Final = 2
INTERRUPTED: Final = 130
SPAWN: Final = "torch.multiprocessing.spawn"
SAID: Final = "said-{}"
"""File of a rank that was refused."""


def launched(ranks: int, run: Callable[..., int], *words: Any) -> int:
    """Call ``run(*words)`` in so many new processes; their exit status.

    ``run`` must be found by its name; it gives the exit status of its rank.

    Raises:
        Refused: a rank was; its line.
    """
    logging.getLogger(SPAWN).setLevel(logging.ERROR)  # it says whom it ends
    with tempfile.TemporaryDirectory(prefix="rltrain-ranks-") as holder:
        place = Path(holder)
        context = torch.multiprocessing.start_processes(
            _rank, (ranks, place, run, words), ranks, join=False, start_method="spawn"
        )
        before = _passed_on(context.processes)
        try:
            while not context.join():
                pass
        except ProcessExitedException as error:
            return _failed(place, error)
        except ProcessRaisedException as error:
            sys.stderr.write(str(error))
            return 1
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
    return 0


def _passed_on(processes: list[Any]) -> dict[int, Any]:
    """Ctrl-C comes to all of a terminal's processes by itself; SIGTERM to this one alone."""

    def passed_on(number: int, _: object) -> None:
        for each in processes:
            if each.is_alive():
                os.kill(each.pid, number)

    return {
        signal.SIGINT: signal.signal(signal.SIGINT, signal.SIG_IGN),
        signal.SIGTERM: signal.signal(signal.SIGTERM, passed_on),
    }


def _failed(place: Path, error: ProcessExitedException) -> int:
    for said in sorted(place.glob(SAID.format("*"))):
        raise Refused(said.read_text("utf-8"))
    if error.signal_name is None:
        return error.exit_code
    line = f"rltrain: rank {error.error_index} was ended by {error.signal_name}; --resume goes on"
    print(line, file=sys.stderr)
    return 1


def _rank(
    number: int, ranks: int, place: Path, run: Callable[..., int], words: tuple[Any, ...]
) -> None:
    os.environ |= {
        "RANK": str(number),
        "LOCAL_RANK": str(number),
        "WORLD_SIZE": str(ranks),
        MEETING: f"file://{place / 'meeting'}",
    }
    torch.set_num_threads(max(1, (os.cpu_count() or 1) // ranks))
    try:
        status = run(*words)
    except Refused as error:
        (place / SAID.format(number)).write_text(str(error), "utf-8")
        status = REFUSED
    except KeyboardInterrupt:  # which whoever started this process takes for a good end
        status = INTERRUPTED
    sys.exit(status)
