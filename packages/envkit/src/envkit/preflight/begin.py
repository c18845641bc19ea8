# SPDX-License-Identifier: Apache-2.0
"""From the options to a run that can begin here: its place, its plan, what of it is done.

Contract: whatever stands in the way of it raises `EnvkitError`, and what a killed run did is moved
only once nothing does.
"""

from __future__ import annotations

import secrets
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from envkit.fault import HarnessError, SandboxUnavailable
from envkit.preflight.again import (
    check_unchanged,
    failed_trials,
    only,
    rerun,
    resumed,
    to_keep,
)
from envkit.preflight.asked import Asked, as_asked, read_asked, write_asked
from envkit.preflight.chaos.command import arm
from envkit.preflight.levels import plans_of, whole
from envkit.preflight.options import Options, levels_of, request
from envkit.preflight.past import NOTHING, Past, take_up
from envkit.preflight.place import Place, open_place, release, reopen_place
from envkit.preflight.plan import KNOWN_ENVS, make_plan
from envkit.preflight.types import Plan

COMMAND: Final = "preflight"


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """Where a run begins, and from what."""

    options: Options
    place: Place
    run_token: str
    resumes: Asked | None = None
    """The same run, as it was asked for when it began."""
    rerun_of: Path | None = None
    """The directory of another run, of which only ``trials`` are run again."""
    trials: frozenset[str] = frozenset()
    concurrency: int | None = None
    """Where it is not that of the options, which the ids come from."""


def begin(options: Options) -> Start:
    """Takes the place of a run; of one that was killed, once nothing of it lives any more."""
    if options.resume and options.rerun_failed:
        raise HarnessError("--resume and --rerun-failed: a run goes on, or is another; name one")
    if options.resume:
        return _resume(options, options.resume)
    token = secrets.token_hex(8)
    if options.rerun_failed:
        asked = read_asked(options.rerun_failed, COMMAND)
        failed = failed_trials(options.rerun_failed, asked)
        return Start(
            options=rerun(options, options.given, asked),
            place=open_place(_other(options), token),
            run_token=token,
            rerun_of=options.rerun_failed.resolve(),
            trials=failed,
            concurrency=options.concurrency if "concurrency" in options.given else None,
        )
    return Start(options=options, place=open_place(options.report_dir, token), run_token=token)


def _resume(options: Options, root: Path) -> Start:
    asked = read_asked(root, COMMAND)
    if options.report_dir and options.report_dir.resolve() != root.resolve():
        raise HarnessError(
            f"--report {options.report_dir}: the run goes on in {root}; leave it out"
        )
    place = reopen_place(root)
    try:
        before = resumed(options, options.given, asked)
        _check_resumable(root, before)
        bury(asked.run_token)
    except BaseException:
        release(place)
        raise
    return Start(
        options=before,
        place=place,
        run_token=asked.run_token,
        resumes=asked,
        rerun_of=asked.rerun_of,
        trials=frozenset(asked.trials),
        concurrency=asked.concurrency,
    )


def _check_resumable(root: Path, options: Options) -> None:
    """Raises HarnessError where half a run and its other half are not the run."""
    if options.ramp:
        raise HarnessError(
            f"--resume {root}: a ramp measures whole levels, so it is not resumed; "
            f"run it anew with --ramp {options.ramp}"
        )
    if options.chaos:
        raise HarnessError(
            f"--resume {root}: what was struck as the run was killed would be struck twice, so a "
            f"run with --chaos is not resumed; run it anew with --chaos {options.chaos}"
        )


def bury(run_token: str) -> None:
    """Removes what a killed run left, before its token is used again."""
    from envkit.sandbox.reaper import reap_run

    if left := reap_run(run_token):
        raise HarnessError(
            f"{left[0].kind} {left[0].what}: left by the killed run, and cannot be removed by "
            "this user; end it, then resume"
        )


def _other(options: Options) -> Path | None:
    """Where a run of what failed goes: never over the run it is of."""
    mine, other = options.report_dir, options.rerun_failed
    if mine and other and mine.resolve() == other.resolve():
        raise HarnessError(f"--report {mine}: holds the run whose failed trials these are")
    return mine


def plan_of(start: Start) -> tuple[Plan, tuple[Plan, ...]]:
    """The trials of a run; of a ramp, those of each level too."""
    plan = make_plan(request(start.options, start.place.trials, start.run_token))
    plan = replace(plan, chaos=start.options.chaos)
    at = levels_of(start.options)
    levels = plans_of(plan, at, start.options.repeat) if at and plan.specs else ()
    plan = whole(plan, levels) if levels else plan
    if start.rerun_of is not None:
        plan, levels = only(plan, start.trials, start.rerun_of), ()
    return replace(plan, concurrency=start.concurrency) if start.concurrency else plan, levels


def past_of(start: Start, plan: Plan) -> Past:
    """What is done of a run; of a new one nothing, and what was asked is kept first."""
    root, asked = start.place.root, as_asked(plan, to_keep(start.options), COMMAND)
    if start.resumes is None:
        write_asked(root, asked)
        return NOTHING
    check_unchanged(root, start.resumes, asked)
    try:
        return take_up(root, start.place.trials, plan)
    except OSError as error:
        raise HarnessError(f"{error.filename}: {error.strerror}; cannot be moved aside") from error


def armed(start: Start, plan: Plan) -> Path | None:
    """Where it stands what strikes which trial; None where nothing does."""
    rules = start.options.chaos
    if rules is None:
        return None
    root = start.place.root if start.place.asked_for else None
    return arm(rules, plan, root)


def check_machine(env: str) -> None:
    """Raises EnvkitError, with the fix, where no trial in this environment can run here."""
    _check_boxes(env)
    _check_cache(env)


def _check_boxes(env: str) -> None:
    """Raises SandboxUnavailable, with the fix, where the local boxes cannot be made."""
    if env != "local":
        return
    from envkit.sandbox import availability

    boxes = availability()
    if not boxes.ok:
        raise SandboxUnavailable(boxes.line())


def _check_cache(env: str) -> None:
    """Raises HarnessError where nothing could be built that the trials of our boxes share."""
    if env not in KNOWN_ENVS:
        return
    from envkit.sandbox.prepare import cache_directory

    cache = cache_directory()
    for part in (cache / "roots", cache / "worlds"):
        try:
            part.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=part):
                pass
        except OSError as error:
            raise HarnessError(
                f"{part}: the cache cannot be written: {error.strerror}; "
                "name a directory that this user can write in ENVKIT_CACHE"
            ) from error
