# SPDX-License-Identifier: Apache-2.0
"""Runs that go on from an earlier one: the same options, and which of its trials.

Contract: ``--resume`` changes nothing of what was asked, and refuses an option that would.
``--rerun-failed`` is a run of its own with the ids of the earlier one; an option given beside it
replaces the earlier one's, because what was wrong may have been that. What was injected into the
earlier run is not injected again.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import orjson
from pydantic import TypeAdapter

from envkit.fault import HarnessError
from envkit.preflight.asked import Asked, difference
from envkit.preflight.types import Plan

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

OWN: Final = frozenset(
    {"as_json", "report_dir", "resume", "rerun_failed", "given", "out", "events"}
    | {"baseline", "max_slowdown", "estimate", "junit", "markdown", "quarantine", "score_chaos"}
)
"""Options that say how a command is run, and not what: each command has its own."""

IDS: Final = frozenset({"source", "concurrency", "repeat", "limit", "ramp"})
"""Options that decide which trials there are."""


def to_keep(options: DataclassInstance) -> dict[str, Any]:
    """The options of a run, JSON-ready, as another process in another directory needs them."""
    values = {
        field.name: str(value.resolve()) if isinstance(value, Path) else value
        for field in fields(options)
        if field.name not in OWN
        for value in (getattr(options, field.name),)
    }
    return orjson.loads(orjson.dumps(values))


def resumed[T: DataclassInstance](options: T, given: Iterable[str], asked: Asked) -> T:
    """The options of a run that goes on.

    Raises:
        HarnessError: an option was given that differs from the run's, or none is known of it.
    """
    before = _before(options, asked)
    now = to_keep(options)
    for name in sorted(set(given) - OWN):
        if now.get(name) != asked.options.get(name):
            raise HarnessError(
                f"{_flag(name)} {now.get(name)}: the run has {asked.options.get(name)}, and goes "
                "on as it was asked; leave the option out, or start a run of its own"
            )
    return before


def rerun[T: DataclassInstance](options: T, given: Iterable[str], asked: Asked) -> T:
    """The options of a run of what failed: the earlier run's but for its chaos, and what was given.

    Raises:
        HarnessError: an option was given that would make other trials of them.
    """
    chosen = set(given) - OWN
    if fixed := sorted(chosen & IDS - {"concurrency"}):
        raise HarnessError(
            f"{_flag(fixed[0])}: the trials are those that failed; leave the option out"
        )
    new = {name: getattr(options, name) for name in chosen if name != "concurrency"}
    return replace(_before(options, asked), **({"chaos": None} | new))


def check_unchanged(root: Path, before: Asked, now: Asked) -> None:
    """Raises HarnessError where what a run would go on with is no longer what it began with."""
    if changed := difference(before, now):
        raise HarnessError(
            f"{root}: {changed} since the run began; start a run of its own, or --rerun-failed"
        )


def failed_trials(root: Path, asked: Asked) -> frozenset[str]:
    """Ids of the trials that failed in an earlier run, from its report.

    Raises:
        HarnessError: the run has no report, or nothing in it failed.
    """
    path = root / "report.json"
    try:
        report = orjson.loads(path.read_bytes())
        of_it = report.get("run_token") == asked.run_token
        failed = frozenset(str(trial["trial"]) for trial in report["failed"])
    except FileNotFoundError:
        of_it, failed = False, frozenset[str]()
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise HarnessError(f"{path}: not a report of envkit preflight ({error!r})") from error
    if not of_it:
        line = shlex.join(["envkit", "preflight", "--resume", str(root)])
        raise HarnessError(f"{root}: the run has no report yet; first: {line}")
    if not failed:
        raise HarnessError(f"{root}: no trial of it failed; there is nothing to run again")
    return failed


def only(plan: Plan, trials: frozenset[str], root: Path) -> Plan:
    """A plan of these trials alone.

    Raises:
        HarnessError: one of them is no longer planned.
    """
    specs = tuple(spec for spec in plan.specs if spec.trial_id in trials)
    broken = tuple(task for task in plan.broken if task.trial_id in trials)
    if lost := sorted(trials - {each.trial_id for each in (*specs, *broken)}):
        raise HarnessError(f"{root}: there is no trial {lost[0]} any more; start a run of its own")
    return replace(plan, specs=specs, broken=broken, rerun_of=root)


def _before[T: DataclassInstance](options: T, asked: Asked) -> T:
    """The options that a run was started with, and this command's own."""
    own = {name: getattr(options, name) for name in OWN if hasattr(options, name)}
    try:
        return TypeAdapter(type(options)).validate_python({**asked.options, **own})
    except ValueError as error:
        raise HarnessError(
            f"the run was asked for by envkit {asked.envkit}, whose options this one does not "
            "know; start the run anew"
        ) from error


def _flag(name: str) -> str:
    return "DIR" if name == "source" else f"--{name.replace('_', '-')}"
