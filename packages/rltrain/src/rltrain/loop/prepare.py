# SPDX-License-Identifier: Apache-2.0
# pyright: basic, reportMissingImports=false
"""From what was asked to what is trained: everything that can be refused is refused here.

Contract: nothing on disk is changed here.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from rltrain.batch.cost import Cost
from rltrain.batch.modelcost import cost_of
from rltrain.batch.source import Group, Recorded, Row, recorded, tokenizer_digest
from rltrain.batch.stamp import teachable
from rltrain.config.read import read
from rltrain.loop.directory import (
    CONFIG,
    Manifest,
    expect_free,
    machine,
    manifest_of,
    now,
    versions,
)
from rltrain.loop.settings import Settings
from rltrain.loop.types import Work
from rltrain.objective.advantage import NotAboveZero
from rltrain.objective.loss.dppo import DppoTopk
from rltrain.refused import Refused

type Read = Callable[[int, int], None]

DENSE: Final = Cost(a=24_576.0, b=1.0)
"""Where a model's own cost is not known: only how even the packing is depends on it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class New:
    """A run to be begun."""

    settings: Settings
    trajectories: Path
    root: Path | None
    """None: it is only looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Again:
    """A run to be gone on with."""

    root: Path
    trajectories: Path | None = None
    """Where they are now, if not where they were."""


def settings_of(recipe: Path | None, given: Sequence[str]) -> Settings:
    """Those of a recipe, with single ones over it.

    Raises:
        Refused: something in them means nothing, or contradicts itself.
    """
    return read(Settings, recipe, given)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A run that nothing stands in the way of."""

    work: Work
    manifest: Manifest
    new: bool
    """Its directory is not begun yet."""


def prepared(asked: New | Again, told: Read) -> Prepared:
    """What is trained.

    Raises:
        Refused: it cannot be trained on as it is asked.
        TrajectoryError: the store cannot be read.
    """
    if isinstance(asked, Again):
        return _again(asked, told)
    if asked.root is not None:
        expect_free(asked.root)
    root = asked.root or Path()
    work, dropped = _work(whole_paths(asked.settings), asked.trajectories, root, told)
    manifest = _manifest(work, asked.trajectories, dropped)
    return Prepared(work=work, manifest=manifest, new=True)


def whole_paths(settings: Settings) -> Settings:
    """With whole paths: a run may be gone on with from another directory."""
    policy = settings.policy
    reference = str(Path(policy.reference).resolve()) if policy.reference else ""
    whole = replace(policy, path=str(Path(policy.path).resolve()), reference=reference)
    return replace(settings, policy=whole)


def _again(asked: Again, told: Read) -> Prepared:
    manifest = manifest_of(asked.root)
    trajectories = asked.trajectories or Path(manifest.trajectories)
    settings = read(Settings, asked.root / CONFIG)
    work, _ = _work(settings, trajectories, asked.root, told, begun_on=manifest)
    return Prepared(work=work, manifest=manifest, new=False)


def _expect_same(found: Recorded, manifest: Manifest, trajectories: Path) -> None:
    if found.digest != manifest.data:
        counts = f"{len(found.rows)} rows, {manifest.rows} then"
        raise Refused(
            f"{trajectories}: is not what the run was begun on"
            f" ({'; '.join([counts, *found.damaged[:1]])});"
            " name what it was by --trajectories, or begin another run"
        )


def _work(
    settings: Settings,
    trajectories: Path,
    root: Path,
    told: Read,
    begun_on: Manifest | None = None,
) -> tuple[Work, dict[str, str]]:
    policy = Path(settings.policy.path)
    config = model_config("policy.path", policy)
    if settings.objective.terms.kl > 0:
        model_config("policy.reference", Path(settings.policy.reference))
    found = recorded(trajectories, tokenizer_digest(policy), told)
    if begun_on is not None:
        _expect_same(found, begun_on, trajectories)
    groups, dropped = _teachable(settings, found)
    _expect_fit(settings, [row for each in groups for row in each.rows if row.live and row.trained])
    cost, remark = cost_of_policy(policy, config)
    work = Work(
        settings=settings,
        recorded=found,
        groups=groups,
        cost=cost,
        root=root,
        remarks=(*found.damaged, *([remark] if remark else [])),
    )
    return work, dropped


def _teachable(settings: Settings, found: Recorded) -> tuple[list[Group], dict[str, str]]:
    try:
        groups, dropped = teachable(settings.objective, found.groups)
    except NotAboveZero as error:
        raise Refused(f"objective.advantage: {error}; take grpo or rloo") from error
    if not groups:
        why = ", ".join(sorted(set(dropped.values())))
        raise Refused(f"no group can be learned from: {len(dropped)} of {len(dropped)} are {why}")
    return groups, dict(dropped)


def _expect_fit(settings: Settings, rows: Sequence[Row]) -> None:
    """Of rows that steps may be taken on."""
    cap = settings.batch.micro_batch_tokens
    longest = max(rows, key=lambda row: row.tokens)
    if longest.tokens > cap:
        raise Refused(
            f"batch.micro_batch_tokens: {longest.trajectory_id} has {longest.tokens} tokens,"
            f" a micro-batch {cap} at most"
        )
    bare = [row.trajectory_id for row in rows if not row.topk]
    if isinstance(settings.objective.loss, DppoTopk) and bare:
        raise Refused(
            f"objective.loss: dppo_topk needs alternatives, and {bare[0]} has none;"
            " record with top_logprobs above 0"
        )
    _expect_one_temperature(rows)


def _expect_one_temperature(rows: Sequence[Row]) -> None:
    found = {row.temperature: row.trajectory_id for row in rows}
    if len(found) > 1:
        shown = ", ".join(f"{name} at {value:g}" for value, name in sorted(found.items()))
        raise Refused(f"temperatures differ: {shown}; train on what was sampled at one temperature")


def model_config(setting: str, policy: Path) -> dict[str, Any]:
    """What a checkpoint says of its model.

    Raises:
        Refused: it says nothing.
    """
    refused = Refused(f"{setting}: {policy}: no config.json can be read there; name a checkpoint")
    try:
        found = json.loads((policy / "config.json").read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise refused from error
    if not isinstance(found, dict):
        raise refused
    return found


def cost_of_policy(policy: Path, config: dict[str, Any]) -> tuple[Cost, str]:
    """And a line on what it could not be told by."""
    try:
        return cost_of(config), ""
    except Refused as error:
        return DENSE, f"packed as for a dense model of 2,048 wide; {policy}/config.json: {error}"


def _manifest(work: Work, trajectories: Path, dropped: dict[str, str]) -> Manifest:
    found = work.recorded
    return Manifest(
        started=now(),
        trajectories=str(trajectories.resolve()),
        data=found.digest,
        rows=len(found.rows),
        groups=len(work.groups),
        dropped=dropped,
        damaged=len(found.damaged),
        evaluations=found.evaluations,
        policy=str(Path(work.settings.policy.path).resolve()),
        seed=work.settings.run.seed,
        versions=versions(),
        machine=machine(),
    )
