# SPDX-License-Identifier: Apache-2.0
"""``envkit proxy`` before the real engine: what a client made it sample is kept as it was."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from openai import OpenAI

from envkit.agent.engine.serve import Served
from envkit.agent.prompt import opening
from envkit.trajectory.store import Store
from envkit.trajectory.types import Kind, Trajectory

from . import recorder, rescoring, rollouts

CONVERSATIONS = 8
TURNS = 3
STOP_S = 60
CODE = {
    "type": "function",
    "function": {
        "name": "code_execution_server_code_exec",
        "description": "Run a command.",
        "parameters": {
            "type": "object",
            "properties": {"code": {"type": "string"}},
            "required": ["code"],
        },
    },
}
TASK = "Which word is on the card of the east depot? The cards are in /cards."


@contextmanager
def proxy(url: str, model: Path, out: Path) -> Generator[str]:
    """Its URL; it is interrupted at the end, and must have stored everything."""
    envkit = Path(sys.executable).with_name("envkit")
    words = ["proxy", "--engine", url, "--tokenizer", model, "--out", out, "--port", 0]
    command = [envkit, *map(str, words)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            yield process.stderr.readline().strip().removesuffix("/t/NAME/v1")
            process.terminate()
            _, told = process.communicate(timeout=STOP_S)
            assert process.returncode == 0, told
        finally:
            process.kill()


def converse(url: str, model: str, name: str) -> int:
    """A harness that is not ours; how many calls it answered."""
    messages: list[Any] = [{"role": m.role, "content": m.content} for m in opening(TASK)]
    calls = 0
    with OpenAI(base_url=f"{url}/t/{name}/v1", api_key="none", max_retries=0) as client:
        complete: Any = client.chat.completions.create
        for turn in range(TURNS):
            answer = complete(model=model, messages=messages, tools=[CODE], max_tokens=300)
            message = answer.choices[0].message
            messages.append(message.model_dump(exclude_none=True))
            asked: list[Any] = message.tool_calls or []
            calls += len(asked) if turn < TURNS - 1 else 0
            messages += [
                {"role": "tool", "tool_call_id": call.id, "content": f"<|im_end|> {name} Grüße"}
                for call in asked
            ]
            if not asked:
                messages.append({"role": "user", "content": "Go on."})
    return calls


@pytest.mark.parametrize("family", ["qwen3", "glm"])
def test_what_a_foreign_harness_samples_is_kept_as_the_engine_gave_it(
    family: str, engine: Served, checkpoint: Path, tmp_path: Path
) -> None:
    wire, out = tmp_path / "wire.jsonl", tmp_path / "out"
    names = [f"{family}{number}" for number in range(CONVERSATIONS)]
    with (
        rollouts.recording(engine.url, wire) as url,
        proxy(url, checkpoint / family, out) as served,
        ThreadPoolExecutor(CONVERSATIONS) as pool,
    ):
        calls = sum(pool.map(partial(converse, served, engine.model), names))
    rows = {row.identity.trajectory_id: row for row in Store(out / "trajectories")}
    assert sorted(rows) == names, "every one is a single stream"
    seen = {each.request_id: each for each in recorder.seen(wire)}
    for row in rows.values():
        expect_what_went_over_the_wire(row, seen)
    assert calls == sum(len(each.episode.calls) for each in rows.values())
    streams = [row.episode.stream for row in rows.values()]
    apart = rescoring.rescored(streams, engine.url, engine.model)
    assert apart.mean <= 1e-4, apart
    assert apart.tokens == sum(int(each.loss_mask.sum()) for each in streams)


def expect_what_went_over_the_wire(row: Trajectory, seen: dict[str, recorder.Seen]) -> None:
    """Each request's prompt is the stream up to there, each answer what stands behind it."""
    stream = row.episode.stream
    models = [each for each in stream.segments if each.kind is Kind.MODEL]
    assert len(models) == TURNS
    for segment in models:
        answer = seen[f"{row.identity.trajectory_id}-{segment.turn}-1"]
        assert stream.token_ids[: segment.start].tolist() == answer.prompt
        assert stream.token_ids[segment.start : segment.stop].tolist() == answer.ids
