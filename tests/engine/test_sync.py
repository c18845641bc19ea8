# SPDX-License-Identifier: Apache-2.0
"""Weights of a real trainer into a running vLLM, rightly and in every wrong way."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from envkit.agent.engine.serve import Served, ServeOptions
from rltrain.sync.config import SyncConfig
from rltrain.sync.serve import serve_arguments, serve_environment

from .served import served

HERE = Path(__file__).parent
MAKE_S, TRAIN_S = 120, 300
CONTEXT_TOKENS, LONG = 2048, 1800
EXACT, ALARM = 1e-5, 1e-4
"""Nats, in float32: what right weights come to at most, and what the canary allows."""
SPOILED = "spoiled_engine.Spoiled"
WRONG = (
    *(("skipped tensors", where) for where in ("source", "wire", "load")),
    *(("wrong slice", where) for where in ("source", "wire", "load")),
    *(("swapped heads", where) for where in ("source", "wire", "load")),
    *(("one tensor off by 1 %", where) for where in ("source", "wire", "load")),
    ("stale", "wire"),
    ("stale", "load"),
    ("the tied output layer is left as it was", "end"),
)
TENSORS = {
    "skipped tensors": "post_attention_layernorm.weight",
    "wrong slice": "layers.1.mlp.up_proj.weight",
    "swapped heads": "layers.0.self_attn.q_proj.weight",
    "one tensor off by 1 %": "layers.1.self_attn.o_proj.weight",
    "the tied output layer is left as it was": "lm_head.weight",
}


@pytest.fixture(scope="module")
def model(engine_python: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("model")
    words = [engine_python, HERE / "syncing.py", "make", "qwen3", place]
    subprocess.run(words, check=True, timeout=MAKE_S, capture_output=True)
    return place


@pytest.fixture(scope="module")
def engine(
    model: Path, engine_python: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Served]:
    arguments = serve_arguments(SyncConfig())
    at = arguments.index("--worker-extension-cls") + 1
    options = ServeOptions(
        model=model,
        python=engine_python,
        context_tokens=CONTEXT_TOKENS,
        dtype="float32",
        eager=True,
        arguments=(*arguments[:at], SPOILED, *arguments[at + 1 :], "--skip-tokenizer-init"),
    )
    with pytest.MonkeyPatch.context() as patch:
        for name, value in serve_environment(SyncConfig()).items():
            patch.setenv(name, value)
        patch.setenv("PYTHONPATH", str(HERE))
        with served(options, tmp_path_factory.mktemp("log") / "vllm.log") as server:
            yield server


@pytest.fixture(scope="module")
def told(
    model: Path, engine: Served, engine_python: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Any]:
    """What one trainer has to tell of its syncs."""
    asked = {
        "family": "qwen3",
        "model": str(model),
        "replicas": [{"name": "engine", "url": engine.url}],
        "parts": ["good", "by_file", "in_flight", "in_flight_reset", "wrong", "unknown"],
        "directory": str(tmp_path_factory.mktemp("files")),
        "syncs": 3,
        "wrong": WRONG,
        "long": LONG,
        "steps": 3,
    }
    done = subprocess.run(
        [engine_python, HERE / "syncing.py", json.dumps(asked)],
        capture_output=True,
        text=True,
        timeout=TRAIN_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout.splitlines()[-1])


def test_a_right_sync_is_held_whole_and_scores_as_the_trainer_does(told: dict[str, Any]) -> None:
    assert told["good"]["false_alarms"] == []
    for each in told["good"]["each"]:
        assert each["verified"] == each["tensors"] > 20
        assert each["mean"] < EXACT


def test_the_canary_says_how_much_it_compared(told: dict[str, Any]) -> None:
    for each in told["good"]["each"]:
        assert each["trajectories"] == 16
        assert each["tokens"] == 16 * 160


def test_weights_that_came_as_files_are_held_too(told: dict[str, Any]) -> None:
    assert told["by_file"]["verified"] == told["by_file"]["tensors"]
    assert told["by_file"]["mean"] < EXACT


@pytest.mark.parametrize(("kind", "where"), WRONG)
def test_a_wrong_sync_is_caught_at_once_and_names_what_is_wrong(
    told: dict[str, Any], kind: str, where: str
) -> None:
    (found,) = [each for each in told["wrong"] if (each["kind"], each["where"]) == (kind, where)]
    held = where != "source" or kind == "skipped tensors"
    assert found["by"] == ("what it holds" if held else "log-probs"), found
    if held:
        assert TENSORS.get(kind, "embed_tokens.weight") in found["words"]
    else:
        assert found["difference"] > ALARM
    assert "replica engine" in found["words"]


def test_a_tensor_that_no_module_has_is_named_and_the_engine_is_lost(
    told: dict[str, Any],
) -> None:
    assert "model.layers.9.mlp.up_proj.weight: cannot be loaded" in told["unknown"]["words"]
    assert told["unknown"]["state"] == "lost"


@pytest.mark.parametrize("part", ["in_flight", "in_flight_reset"])
def test_syncs_inside_a_request_are_told_token_by_token(told: dict[str, Any], part: str) -> None:
    spans = told[part]["spans"]
    assert told[part]["running_after_last_sync"]
    assert len(spans) == 3
    assert sum(each["tokens"] for each in spans) == LONG
    versions = [each["version"] for each in spans]
    assert versions == sorted(set(versions))


def test_tokens_before_a_swap_score_again_under_their_version(told: dict[str, Any]) -> None:
    assert told["in_flight"]["spans"][0]["most"] < 1e-4


def test_tokens_after_a_swap_attend_to_keys_of_older_weights_unless_reset(
    told: dict[str, Any],
) -> None:
    _, first, second = told["in_flight"]["spans"]
    assert min(first["mean"], second["mean"]) > 1e-4
    assert max(each["most"] for each in told["in_flight_reset"]["spans"]) < 1e-4
