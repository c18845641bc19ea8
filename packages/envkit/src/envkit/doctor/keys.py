# SPDX-License-Identifier: Apache-2.0
"""Names of API keys that are set in the environment; never a value, nor its length."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from envkit.doctor.types import Finding, Machine, Status

KNOWN: Final = (
    "ANTHROPIC_API_KEY",
    "AWS_ACCESS_KEY_ID",
    "AWS_PROFILE",
    "AWS_SECRET_ACCESS_KEY",
    "DAYTONA_API_KEY",
    "E2B_API_KEY",
    "FIREWORKS_API_KEY",
    "GEMINI_API_KEY",
    "GOOGLE_API_KEY",
    "HF_TOKEN",
    "MODAL_TOKEN_ID",
    "MODAL_TOKEN_SECRET",
    "OPENAI_API_KEY",
    "OPENROUTER_API_KEY",
    "RUNLOOP_API_KEY",
    "TOGETHER_API_KEY",
    "WANDB_API_KEY",
)
PAIRS: Final = (
    ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"),
    ("MODAL_TOKEN_ID", "MODAL_TOKEN_SECRET"),
)
FOR: Final = "agents of your own, and providers other than local"


def examine(machine: Machine) -> Iterator[Finding]:
    """Which are set, and what of them cannot work."""
    filled = {name for name in KNOWN if machine.env.get(name, "").strip()}
    empty = [name for name in KNOWN if name in machine.env and name not in filled]
    yield Finding(
        name="keys",
        status=Status.INFO,
        text=f"set: {', '.join(sorted(filled))}" if filled else "none of those we know is set",
        needed_for=FOR,
    )
    for name in empty:
        yield _wrong(f"{name} is set and empty", f"export {name}=..., or unset {name}")
    for one, other in PAIRS:
        for here, absent in ((one, other), (other, one)):
            if here in filled and absent not in filled:
                yield _wrong(f"{here} is set without {absent}", f"export {absent}=...")


def _wrong(text: str, fix: str) -> Finding:
    return Finding(name="keys", status=Status.WARN, text=text, fix=fix, needed_for=FOR)
