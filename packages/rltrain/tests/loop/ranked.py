# SPDX-License-Identifier: Apache-2.0
"""What ranks of a test do; found by their names in processes of their own."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from rltrain.policy.ranks import all_of, joined
from rltrain.refused import Refused


def meet(place: Path) -> int:
    """Tell each other who they are; the first leaves what it heard. A status that is no fault."""
    with joined() as rank:
        heard = all_of(f"rank {rank}")
        if rank == 0:
            (place / "heard").write_text(", ".join(heard), "utf-8")
    return 130


def refuse(place: Path) -> int:
    """The second does not like what it is given; the others wait for it."""
    del place
    with joined() as rank:
        if rank == 1:
            raise Refused("policy.path: nothing there")
        all_of(None)
    return 0


def die(place: Path) -> int:
    """The second is killed, as by a machine that runs out of memory."""
    del place
    with joined() as rank:
        all_of(None)
        if rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        all_of(None)
    return 0


def impatient(place: Path) -> int:
    """Somebody does not want to wait for the step to end."""
    del place
    with joined():
        all_of(None)
        raise KeyboardInterrupt
