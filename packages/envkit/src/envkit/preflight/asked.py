# SPDX-License-Identifier: Apache-2.0
"""What a run was asked to do, kept as ``run.json`` before its first trial.

Contract: a run is resumed only as it was asked: the same options, the same trials, tasks and
worlds of the same content. Whatever differs is named in one line, and nothing is touched.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

import orjson
from pydantic import TypeAdapter

from envkit import __version__
from envkit.durable import write_durably
from envkit.fault import EnvkitError, HarnessError
from envkit.preflight.types import Plan
from envkit.task import load_task
from envkit.task.digest import tree_digest

RUN_NAME: Final = "run.json"
SCHEMA: Final = "envkit.run/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One run as it was asked for."""

    run_token: str
    options: Mapping[str, Any]
    """The command line, JSON-ready, with absolute paths."""
    trials: tuple[str, ...]
    """Ids, in the order of the plan, those of broken tasks last."""
    concurrency: int
    tasks: Mapping[str, str]
    """Directory of each task, broken ones too, and the digest of its content and its world's."""
    rerun_of: Path | None = None
    """The directory of the run whose failed trials these are."""
    envkit: str = field(default=__version__)
    command: str = "preflight"
    """Of envkit, which alone can take it up again."""
    model_digest: str = ""
    """Of the weights that its engine sampled with when it began; empty where not known."""


def as_asked(plan: Plan, options: Mapping[str, Any], command: str = "preflight") -> Asked:
    """A plan, and the digests of its tasks as they are now."""
    dirs = {spec.task_dir for spec in plan.specs} | {task.dir for task in plan.broken}
    return Asked(
        run_token=plan.run_token,
        options=options,
        trials=tuple(each.trial_id for each in (*plan.specs, *plan.broken)),
        concurrency=plan.concurrency,
        rerun_of=plan.rerun_of,
        tasks={str(path): _digest(path) for path in sorted(dirs)},
        command=command,
    )


def write_asked(root: Path, asked: Asked) -> None:
    """Keep it in the directory of its run.

    Raises:
        HarnessError: it cannot be written there.
    """
    rerun_of = str(asked.rerun_of) if asked.rerun_of else None
    told = {"schema": SCHEMA, **asdict(asked), "rerun_of": rerun_of}
    data = orjson.dumps(told, option=orjson.OPT_INDENT_2)
    try:
        write_durably(root / RUN_NAME, data + b"\n")
    except OSError as error:
        raise HarnessError(f"{root / RUN_NAME}: {error.strerror}; make room there") from error


def read_asked(root: Path, command: str = "preflight") -> Asked:
    """Read back :func:`write_asked`, for a command that takes a run up.

    Raises:
        HarnessError: there is no run that this version and this command can take up.
    """
    path = root / RUN_NAME
    try:
        data = orjson.loads(path.read_bytes())
        schema = data.pop("schema")
        asked = TypeAdapter(Asked).validate_python(data)
    except OSError as error:
        raise HarnessError(
            f"{path}: {error.strerror}; name the directory of a run, as its --report or --out did"
        ) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise HarnessError(f"{path}: not what a run was asked for; start the run anew") from error
    if schema != SCHEMA:
        raise HarnessError(f"{path}: schema {schema}, this version takes up {SCHEMA}")
    if asked.command != command:
        raise HarnessError(f"{root}: is a run of envkit {asked.command}, not of envkit {command}")
    return asked


def difference(before: Asked, now: Asked) -> str:
    """What of the tasks changed since, in a few words; empty where nothing did."""
    for path, digest in before.tasks.items():
        if now.tasks.get(path) != digest:
            return f"{path} {'changed' if path in now.tasks else 'is gone'}"
    if added := sorted(now.tasks.keys() - before.tasks.keys()):
        return f"{added[0]} is new"
    return "" if before.trials == now.trials else "its trials are others"


def _digest(task_dir: Path) -> str:
    """With its world's; of a task that cannot be read, of its directory alone."""
    try:
        return load_task(task_dir).digest
    except EnvkitError:
        return tree_digest(task_dir)
