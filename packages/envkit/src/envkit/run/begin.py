# SPDX-License-Identifier: Apache-2.0
"""From the options to a run that can begin here: its place, its plan, what of it is done.

Contract: whatever stands in the way of it raises `EnvkitError`, and nothing of a run is ever
written over.
"""

from __future__ import annotations

import contextlib
import secrets
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from envkit.fault import HarnessError
from envkit.preflight.again import check_unchanged, resumed, to_keep
from envkit.preflight.asked import RUN_NAME, Asked, as_asked, read_asked, write_asked
from envkit.preflight.begin import bury
from envkit.preflight.outputs import check_outputs
from envkit.preflight.past import NOTHING, Past, take_up
from envkit.preflight.place import MARK, Place, open_place, release, reopen_place
from envkit.preflight.plan import make_plan
from envkit.preflight.types import Plan
from envkit.run.options import Options, request

COMMAND: Final = "run"
STORE: Final = "trajectories"
"""The store, under the run's directory."""
ANEW: Final = frozenset({"engine", "engine_python", "engine_arg"})
"""Where the engine is found may be said again: it may have been started anew elsewhere."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """Where a run begins, and from what."""

    options: Options
    place: Place
    run_token: str
    resumes: Asked | None = None
    made: bool = False
    """Its directory was not there before."""


def begin(options: Options) -> Start:
    """Takes the place of a run; of one that was killed, once nothing of it lives any more."""
    check_outputs({"events": options.events})
    if options.resume:
        return _resume(options, options.resume)
    if options.out is None:
        raise HarnessError("name the directory of the run with --out DIR")
    if any((options.out / name).exists() for name in (RUN_NAME, STORE)):
        raise HarnessError(
            f"--out {options.out}: holds a run; go on with it by --resume, or name another"
        )
    token, made = secrets.token_hex(8), not options.out.exists()
    place = open_place(options.out, token)
    return Start(options=options, place=place, run_token=token, made=made)


def leave(start: Start) -> None:
    """Takes the directory of a run that was refused away again, unless there is something in it."""
    if start.resumes is None and not (start.place.root / RUN_NAME).exists():
        with contextlib.suppress(OSError):
            start.place.trials.rmdir()
            (start.place.root / MARK).unlink()
            if start.made:
                start.place.root.rmdir()


def plan_of(start: Start) -> Plan:
    """The trials of the run."""
    return make_plan(request(start.options, start.place.trials, start.run_token))


def past_of(start: Start, plan: Plan, model_digest: str = "") -> tuple[Asked, Past]:
    """What was asked, and what of it is done; of a new run nothing, and what was asked is kept."""
    root, asked = start.place.root, as_asked(plan, to_keep(start.options), COMMAND)
    if start.resumes is None:
        asked = replace(asked, model_digest=model_digest)
        write_asked(root, asked)
        return asked, NOTHING
    check_unchanged(root, start.resumes, asked)
    try:
        return asked, take_up(root, start.place.trials, plan)
    except OSError as error:
        raise HarnessError(f"{error.filename}: {error.strerror}; cannot be moved aside") from error


def _resume(options: Options, root: Path) -> Start:
    asked = read_asked(root, COMMAND)
    if options.out and options.out.resolve() != root.resolve():
        raise HarnessError(f"--out {options.out}: the run goes on in {root}; leave it out")
    place = reopen_place(root)
    try:
        before = resumed(options, options.given - ANEW, asked)
        anew = {name: getattr(options, name) for name in ANEW & options.given}
        bury(asked.run_token)
    except BaseException:
        release(place)
        raise
    return Start(
        options=replace(before, **anew), place=place, run_token=asked.run_token, resumes=asked
    )
