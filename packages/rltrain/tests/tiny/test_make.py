# SPDX-License-Identifier: Apache-2.0
"""A checkpoint is made from recordings: the same every time, whole or not at all."""

import hashlib
import json
import math
import statistics
from pathlib import Path

import pytest

from envkit.agent.tokens import load_template
from rltrain.tiny.make import RECORD, TinyOptions, make

from .recordings import write_recordings

pytestmark = pytest.mark.trainer


def made(tmp_path: Path, name: str, **more: object) -> Path:
    recorded = tmp_path / "recorded"
    if not recorded.exists():
        write_recordings(recorded)
    options = {"steps": 2, "batch": 2, **more}
    make(TinyOptions(out=tmp_path / name, transcripts=recorded, **options))  # type: ignore[arg-type]
    return tmp_path / name


def weights(checkpoint: Path) -> str:
    return hashlib.sha256((checkpoint / "model.safetensors").read_bytes()).hexdigest()


def test_the_same_seed_gives_the_same_weights_and_another_seed_others(tmp_path: Path) -> None:
    first, again = made(tmp_path, "first"), made(tmp_path, "again")
    other = made(tmp_path, "other", seed=1)
    assert weights(first) == weights(again) != weights(other)


def test_a_checkpoint_is_what_transformers_and_envkit_load(tmp_path: Path) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    checkpoint = made(tmp_path, "policy", families=("glm", "llama3"))
    model = AutoModelForCausalLM.from_pretrained(checkpoint)
    tokenizer = AutoTokenizer.from_pretrained(checkpoint)
    own = load_template(checkpoint)
    assert own.family == "glm"
    assert load_template(checkpoint / "llama3").family == "llama3"
    assert tokenizer.encode("no rules", add_special_tokens=False) == own.encode("no rules")
    assert model.config.vocab_size == own.vocabulary_size
    assert 700_000 < sum(each.numel() for each in model.parameters()) < 1_300_000
    record = json.loads((checkpoint / RECORD).read_text("utf-8"))
    assert record["families"] == ["glm", "llama3"]


def test_what_is_left_to_guess_is_the_answer(tmp_path: Path) -> None:
    losses: list[float] = []
    recorded = write_recordings(tmp_path / "recorded")
    options = TinyOptions(out=tmp_path / "policy", transcripts=recorded, steps=80, batch=2)
    make(options, lambda _, loss: losses.append(loss))
    assert losses[0] > 100
    assert math.log(2) * 0.5 < sum(losses[-20:]) / 20 < 6


def test_with_mistakes_it_copies_what_it_reads_as_often_as_they_are_few(tmp_path: Path) -> None:
    losses: dict[float, list[float]] = {0.0: [], 0.5: []}
    recorded = write_recordings(tmp_path / "recorded")
    for share, told in losses.items():
        options = TinyOptions(
            out=tmp_path / f"policy-{share}",
            transcripts=recorded,
            steps=60,
            batch=2,
            phrases=True,
            mistakes=share,
        )
        make(options, lambda _, loss, told=told: told.append(loss))
    usual = {share: statistics.median(told[-15:]) for share, told in losses.items()}
    assert usual[0.0] < math.log(2)
    assert usual[0.5] > 3 * math.log(2)


def test_phrases_make_prompts_shorter(tmp_path: Path) -> None:
    words, phrases = made(tmp_path, "words", steps=1), made(tmp_path, "short", phrases=True)
    tokens = [json.loads((each / RECORD).read_text("utf-8")) for each in (words, phrases)]
    assert tokens[1]["prompt_tokens"] < 0.7 * tokens[0]["prompt_tokens"]


def test_no_directory_is_left_where_it_was_broken_off(tmp_path: Path) -> None:
    recorded = write_recordings(tmp_path / "recorded")

    def interrupt(step: int, loss: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        make(TinyOptions(out=tmp_path / "policy", transcripts=recorded), interrupt)
    assert [each.name for each in tmp_path.iterdir()] == ["recorded"]
