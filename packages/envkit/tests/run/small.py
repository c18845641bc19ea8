# SPDX-License-Identifier: Apache-2.0
"""``envkit run`` on the tiny task with a scripted model: a run of eight trials takes seconds."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from envkit.agent.loaded import voice
from envkit.agent.parse.format import say
from envkit.agent.types import CallRequest

from ..agent.tokens.models import make_model
from ..engines.scripted import Script, Scripted, Turn, start_scripted

ENVKIT = (sys.executable, "-c", "from envkit.cli import main; main()")
KILL_AT = Path(__file__).parents[1] / "preflight/kill_at.py"
TIMEOUT_S = 120
EXEC = "code_execution_server_code_exec"
DONE = CallRequest(name=EXEC, arguments={"code": "echo done > /filesystem/done.txt"})
ANSWER = "forty-two"
"""With `DONE` before it, it earns 1.0."""


def script(model: Path, turns: Sequence[CallRequest | str] = (DONE, ANSWER), **more: Any) -> Script:
    """What a model says, turn by turn: calls, and texts."""
    template = voice(model).template
    opened = template.opens_thinking
    said = [
        say(template.parser_name, content=turn, opened=opened)
        if isinstance(turn, str)
        else say(template.parser_name, [turn], opened=opened)
        for turn in turns
    ]
    ids = [[*template.speak(text), template.stop_ids[0]] for text in said]
    vocabulary = template.vocabulary_size
    return Script(turns=[Turn(ids=each) for each in ids], vocabulary=vocabulary, **more)


@contextmanager
def model_that_says(
    root: Path, turns: Sequence[CallRequest | str] = (DONE, ANSWER), **more: Any
) -> Iterator[tuple[Path, Scripted]]:
    """Its directory, and an engine that serves it."""
    model = root / "model"
    if not model.exists():
        make_model(model, "qwen3")
    with start_scripted(script(model, turns, **more)) as engine:
        yield model, engine


def envkit(*words: object, timeout_s: float = TIMEOUT_S) -> subprocess.CompletedProcess[str]:
    command = [*ENVKIT, *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout_s, check=False)


def killed(point: str, number: int, *words: object) -> None:
    """``envkit`` with these words, which dies at a point of `kill_at`."""
    command = [sys.executable, KILL_AT, point, number, *words]
    done = subprocess.run(
        list(map(str, command)), capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    assert done.returncode == -9, (point, done.stdout, done.stderr)


def lines(path: Path) -> list[dict[str, Any]]:
    """Whole lines of a file of JSON lines."""
    text = path.read_text() if path.exists() else ""
    return [json.loads(line) for line in text.split("\n")[:-1]]


def ended(events: Path) -> list[str]:
    """Trials that somebody outside was told had ended, in order."""
    return [line["trial"] for line in lines(events) if line["event"] == "ended"]
