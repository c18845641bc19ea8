# SPDX-License-Identifier: Apache-2.0
"""The tiny policy that tests sample from: made once for what it is made from, then kept.

It is kept under the user's cache by a digest of the transcripts, of the code that makes it and of
the code that renders its prompts, so a change of any of them makes it anew.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TASKS = ROOT / "tests/tiny_tasks"
FAMILIES = ("qwen3", "glm", "llama3")
STEPS = 130
_MADE_BY = (
    "packages/rltrain/src/rltrain/tiny",
    "packages/envkit/src/envkit/agent/tokens",
    "packages/envkit/src/envkit/agent/parse",
    "packages/envkit/src/envkit/agent/prompt.md",
)
_RECORD_S = 300
_TRAIN_S = 1800
"""Seven minutes of one core, beside whatever else the machine does."""


def record_transcripts(report: Path) -> Path:
    """Replay the recorded calls of the tiny tasks in real boxes; returns the report directory."""
    run(
        _RECORD_S,
        *(Path(sys.executable).with_name("envkit"), "preflight", TASKS, "--agent", "replay"),
        *("--repeat", 1, "--concurrency", 3, "--report", report),
    )
    return report


def tiny_policy(python: Path, transcripts: Path) -> Path:
    """A checkpoint, made by the ``rltrain`` beside ``python`` where it is not there yet."""
    place = cache() / _digest(transcripts)
    if not place.exists():
        place.parent.mkdir(parents=True, exist_ok=True)
        families = [word for family in FAMILIES for word in ("--family", family)]
        run(
            _TRAIN_S,
            *(python.with_name("rltrain"), "tiny-policy", place, *families),
            *("--transcripts", transcripts, "--steps", STEPS),
        )
    return place


def cache() -> Path:
    """Where checkpoints are kept."""
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(root) / "envkit/checkpoints"


def _digest(transcripts: Path) -> str:
    digest = hashlib.sha256(json.dumps([FAMILIES, STEPS]).encode())
    for part in (*_said(transcripts), *_sources()):
        digest.update(b"\0" + part)
    return digest.hexdigest()[:16]


def _said(transcripts: Path) -> Iterator[bytes]:
    """What was recorded, without what differs from one replay to the next."""
    for file in sorted(transcripts.rglob("trajectory.json")):
        document = json.loads(file.read_text("utf-8"))
        for step in document["steps"]:
            for result in (step.get("observation") or {}).get("results") or ():
                result.pop("extra", None)
        yield json.dumps([document["agent"], document["steps"]], sort_keys=True).encode()


def _sources() -> Iterator[bytes]:
    for named in _MADE_BY:
        path = ROOT / named
        for file in sorted(path.rglob("*") if path.is_dir() else [path]):
            if file.is_file() and "__pycache__" not in file.parts:
                yield file.read_bytes()


def run(seconds: float, *words: object) -> None:
    """A program that must exit 0; what it said is the failure's message."""
    command = [str(word) for word in words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}{done.stderr}"
