# SPDX-License-Identifier: Apache-2.0
# pyright: basic, reportMissingImports=false
"""From what was asked to a live run: everything that can be refused without an engine is refused.

Contract: nothing on disk is changed here.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path

from envkit.task.digest import tree_digest
from rltrain.cluster.config import HERE
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
from rltrain.loop.origin import weights
from rltrain.loop.overfit import verdict_of
from rltrain.loop.prepare import cost_of_policy, model_config, whole_paths
from rltrain.loop.prompts import task_names
from rltrain.loop.settings import Settings
from rltrain.loop.types import LiveWork
from rltrain.refused import Refused
from rltrain.rollout.config import RolloutConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedLive:
    """A live run that nothing stands in the way of, as far as can be seen."""

    work: LiveWork
    manifest: Manifest
    new: bool


def prepared_live(
    settings: Settings, root: Path | None, names: tuple[str, ...] = ()
) -> PreparedLive:
    """A run to be begun, on all tasks or those of these names; without a directory it is only
    looked at.

    Raises:
        Refused: it cannot be run as it is asked.
    """
    if root is not None:
        expect_free(root)
    work = _work(_here(settings), root or Path(), names)
    manifest = Manifest(
        started=now(),
        tasks=str(work.tasks),
        names=names,
        data=work.digest,
        policy=work.settings.policy.path,
        seed=settings.run.seed,
        versions=versions(),
        machine=machine(),
    )
    return PreparedLive(work=work, manifest=manifest, new=True)


def resumed_live(root: Path) -> PreparedLive:
    """A run to be gone on with.

    Raises:
        Refused: it is none, or its tasks are not those that it was begun with.
    """
    manifest = manifest_of(root)
    work = _work(read(Settings, root / CONFIG), root.resolve(), manifest.names)
    if work.digest != manifest.data:
        raise Refused(
            f"rollout.tasks: {work.tasks}: tasks have changed since the run began; put those back,"
            " or begin another run"
        )
    return PreparedLive(work=work, manifest=manifest, new=False)


def expect_overfit(settings: Settings) -> None:
    """The gate before a long run was passed, by the policy that is trained.

    Raises:
        Refused: it was not, or nobody said where.
    """
    gate = settings.gates.overfit
    if settings.gates.override or not gate.required:
        return
    how = "rltrain overfit; or go on without it by --set gates.overfit.required=false"
    if not gate.run:
        raise Refused(f"gates.overfit.run: no gate was passed; name the run of one, by {how}")
    verdict = verdict_of(Path(gate.run))
    if verdict is None:
        raise Refused(f"gates.overfit.run: {gate.run}: holds no verdict; finish it: {how}")
    if not verdict.passed:
        raise Refused(f"gates.overfit.run: {gate.run}: did not pass; see there, and run {how}")
    if verdict.policy != weights(settings):
        raise Refused(f"gates.overfit.run: {gate.run}: is of another policy; run {how}")


def is_live(root: Path) -> bool:
    """Whether the run of a directory samples its trajectories itself."""
    return bool(manifest_of(root).tasks)


def _here(settings: Settings) -> Settings:
    """With whole paths: a run may be gone on with from another directory."""
    rollout, evaluate = _rollout(settings), settings.evaluate
    rollout = replace(
        rollout,
        tasks=_whole(rollout.tasks),
        environment_python=_interpreter(rollout.environment_python),
    )
    if evaluate is not None and evaluate.tasks:
        evaluate = replace(evaluate, tasks=_whole(evaluate.tasks))
    return replace(whole_paths(settings), rollout=rollout, evaluate=evaluate)


def _work(settings: Settings, root: Path, chosen: tuple[str, ...]) -> LiveWork:
    policy, rollout = Path(settings.policy.path), _rollout(settings)
    config = model_config("policy.path", policy)
    if not (policy / "tokenizer.json").is_file():
        raise Refused(f"policy.path: {policy}: has no tokenizer.json; trials need the policy's")
    _expect_installed(("ray", "vllm"))
    cost, remark = cost_of_policy(policy, config)
    tasks = Path(rollout.tasks)
    held_out = settings.evaluate and settings.evaluate.tasks
    names = chosen or task_names(tasks)
    return LiveWork(
        settings=settings,
        rollout=rollout,
        cluster=settings.cluster or HERE,
        tasks=tasks,
        names=names,
        steps=steps_of(settings, len(names)),
        held_out=Path(held_out) if held_out else None,
        digest=_digest(tasks / name for name in names),
        cost=cost,
        root=root.resolve(),
        environment_python=Path(rollout.environment_python),
        remarks=(remark,) if remark else (),
    )


def steps_of(settings: Settings, tasks: int) -> int:
    """Updates of a run: as many as were asked for, or as its epochs come to."""
    run, batch = settings.run, settings.batch
    return run.steps or -(-run.epochs * tasks // batch.prompts)


def _rollout(settings: Settings) -> RolloutConfig:
    rollout = settings.rollout
    if rollout is None or not rollout.tasks:
        raise Refused(
            "nothing to train on: name a directory of tasks by --tasks (rollout.tasks), or recorded"
            " trajectories by --trajectories"
        )
    return rollout


def _interpreter(named: str) -> str:
    """That of the environment in which trials are executed."""
    if named:
        if not Path(named).is_file():
            raise Refused(f"rollout.environment_python: {named}: there is no such interpreter")
        return str(Path(named).absolute())  # not resolved: a link is what makes an environment
    if find_spec("harbor") is None:
        raise Refused(
            "rollout.environment_python: envkit[run] is not installed here, beside vLLM it cannot"
            " be; make an environment of its own with it and name its interpreter"
        )
    return sys.executable


def _expect_installed(names: Iterable[str]) -> None:
    for name in names:
        if find_spec(name) is None:
            raise Refused(f"{name} is not installed; pip install 'rltrain[live]'")


def _whole(path: str) -> str:
    return str(Path(path).resolve())


def _digest(directories: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for each in directories:
        digest.update(f"{each.name}\0{tree_digest(each)}\n".encode())
    return digest.hexdigest()
