# SPDX-License-Identifier: Apache-2.0
"""Prompts of the tiny tasks are short in the tokens of a policy that is made for them."""

from __future__ import annotations

from pathlib import Path

from rltrain.tiny.make import renderers
from rltrain.tiny.tokenizer import PHRASES, WORDS, family_named

from .card_tasks import transcripts

MOST = 300


def test_prompts_of_the_tiny_tasks_have_fewer_than_300_tokens(tmp_path: Path) -> None:
    recorded = transcripts(tmp_path / "worlds")
    (by,) = renderers(tmp_path / "draft", [family_named("qwen3")], recorded, PHRASES)
    assert max(map(by.prompt_tokens, recorded)) < MOST
    (longer,) = renderers(tmp_path / "words", [family_named("qwen3")], recorded, WORDS)
    assert min(map(longer.prompt_tokens, recorded)) > MOST


def test_a_value_is_the_same_tokens_where_it_is_read_and_where_it_is_said(tmp_path: Path) -> None:
    recorded = transcripts(tmp_path / "worlds")
    (by,) = renderers(tmp_path / "draft", [family_named("qwen3")], recorded, PHRASES)
    encode = by.template.encode
    for word, read, said in (
        ("walnut", "Read /cards/walnut.txt.", '{"file_path": "/cards/walnut.txt"}'),
        ("walnut", "Next: walnut\n", '"/cards/walnut.txt", "destination'),
        ("Ada", "Keeper: Ada\n", "Ada, green"),
        ("green", "Colour: green\n", "Ada, green"),
        ("echo", "to /tray/echo.txt. Answer", '"/tray/echo.txt"'),
    ):
        (token,) = encode(word)
        assert token in encode(read)
        assert token in encode(said)
