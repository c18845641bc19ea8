# SPDX-License-Identifier: Apache-2.0
# pyright: basic, reportMissingImports=false
"""A checkpoint of a run as a directory of Hugging Face's, which engines and others load.

Contract: it is there whole or not at all. Whatever the policy's directory has beside weights
(tokenizer, chat template, stop tokens) is in it too; what LoRA has learned is in the weights.
"""

from __future__ import annotations

import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import torch
from transformers import AutoModelForCausalLM
from transformers.utils.logging import disable_progress_bar

from envkit.durable import sync_directory, sync_file
from rltrain.config.read import read
from rltrain.loop.checkpoint import STATE, Checkpoints, Kept
from rltrain.loop.directory import CHECKPOINTS, CONFIG, manifest_of
from rltrain.loop.evaluating import best_step
from rltrain.loop.lineage import Lineages
from rltrain.loop.origin import expect_unchanged
from rltrain.loop.settings import Settings
from rltrain.policy.fsdp.backend import FsdpBackend
from rltrain.policy.ranks import joined
from rltrain.refused import Refused

WEIGHTS: Final = (".safetensors", ".bin", ".pt", ".pth", ".gguf", ".index.json")
"""Ends of names of what is written anew, or of what would be stale."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """What was written."""

    directory: Path
    step: int
    parameters: int
    dtype: str


def best_of(root: Path) -> int:
    """Step of the weights that earned most in the run's evaluations.

    Raises:
        Refused: none that a step was taken to were evaluated.
    """
    step = best_step(root, Lineages.read(root))
    if step is None:
        raise Refused(f"{root}: no evaluation after a step; leave --best out, or name a --step")
    return step


def export(root: Path, out: Path, step: int | None = None) -> Exported:
    """Write the newest checkpoint of a run, or that of a step.

    Raises:
        Refused: there is no such run, checkpoint or policy, or something at ``out``.
    """
    manifest = manifest_of(root)
    if out.exists():
        raise Refused(f"{out}: is there already; name another directory")
    settings = read(Settings, root / CONFIG)
    expect_unchanged(settings, manifest)
    with joined():
        checkpoints = Checkpoints(root / CHECKPOINTS, data=manifest.data, keep=1, told=_say)
        kept = _chosen(checkpoints, root, step)
        backend = FsdpBackend(settings.policy, settings.optimizer)
        backend.restore(kept.directory / STATE)
        return _written(settings, backend, out, kept.commit.step)


def _say(line: str) -> None:
    """To a person, beside what is printed for programs."""
    print(line, file=sys.stderr)


def _chosen(checkpoints: Checkpoints, root: Path, step: int | None) -> Kept:
    kept = checkpoints.newest() if step is None else checkpoints.of(step)
    if kept is None:
        there = ", ".join(map(str, checkpoints.steps)) or "none"
        raise Refused(f"{root}: no whole checkpoint of step {step or 'any'}; steps kept: {there}")
    return kept


def _written(settings: Settings, backend: FsdpBackend, out: Path, step: int) -> Exported:
    source = Path(settings.policy.path)
    disable_progress_bar()
    model = AutoModelForCausalLM.from_pretrained(source, dtype="auto")
    _take(model, dict(backend.weights()))
    part = out.with_name(f".{out.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    model.save_pretrained(part)
    _copy_beside(source, part)
    _publish(part, out)
    return Exported(
        directory=out,
        step=step,
        parameters=sum(each.numel() for each in model.parameters()),
        dtype=str(model.dtype).removeprefix("torch."),
    )


@torch.no_grad()
def _take(model: Any, weights: dict[str, torch.Tensor]) -> None:
    """Put trained weights in the place of those of the checkpoint, in its own type."""
    own = dict(model.named_parameters())
    if strange := sorted(own.keys() ^ weights.keys()):
        raise Refused(f"policy.path: is of another model than was trained: {strange[0]} differs")
    for name, parameter in own.items():
        parameter.copy_(weights[name])


def _copy_beside(source: Path, part: Path) -> None:
    for file in sorted(source.iterdir()):
        if file.is_file() and file.name != "config.json" and not file.name.endswith(WEIGHTS):
            shutil.copyfile(file, part / file.name)


def _publish(part: Path, out: Path) -> None:
    for file in part.iterdir():
        with file.open("rb") as opened:
            sync_file(opened.fileno())
    sync_directory(part)
    part.replace(out)
    sync_directory(out.parent)
