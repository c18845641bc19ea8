# SPDX-License-Identifier: Apache-2.0
"""The tiny policy that tests sample from: made once for what it is made from, then kept.

It is kept under the user's cache by a digest of the code that makes it and of all that it is
taught, as ids: a change of either makes it anew, and one that leaves the ids alone does not.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from rltrain.tiny.make import renderers
from rltrain.tiny.tokenizer import family_named
from rltrain.tiny.transcripts import read_transcripts

ROOT = Path(__file__).resolve().parents[2]
TASKS = ROOT / "tests/tiny_tasks"
FAMILIES = ("qwen3", "glm", "llama3")
STEPS = 130
_MADE_BY = ROOT / "packages/rltrain/src/rltrain/tiny"
_RECORD_S = 300
_TRAIN_S = 1200
"""Four minutes of one core, nine beside whatever else the machine does."""


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
    for part in (*_sources(), *_taught(transcripts)):
        digest.update(b"\0" + part)
    return digest.hexdigest()[:16]


def _sources() -> Iterator[bytes]:
    for file in sorted(_MADE_BY.rglob("*")):
        if file.is_file() and "__pycache__" not in file.parts:
            yield file.read_bytes()


def _taught(transcripts: Path) -> Iterator[bytes]:
    """What envkit's templates make of every transcript with every answer, in every family."""
    recorded = read_transcripts(transcripts)
    answers = sorted({each.answer for each in recorded})
    families = [family_named(each) for each in FAMILIES]
    with tempfile.TemporaryDirectory(prefix="taught-") as draft:
        for by in renderers(Path(draft), families, recorded):
            yield json.dumps([by.template.vocabulary_size, *by.template.stop_ids]).encode()
            for transcript, answer in itertools.product(recorded, answers):
                example = by.example(transcript, answer, random.Random(0))
                yield json.dumps([example.ids, example.said]).encode()
        yield (Path(draft) / "tokenizer.json").read_bytes()


def run(seconds: float, *words: object) -> None:
    """A program that must exit 0; what it said is the failure's message."""
    command = [str(word) for word in words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}{done.stderr}"
