# SPDX-License-Identifier: Apache-2.0
"""The copy of the tokenizer that a run leaves beside its rows."""

from __future__ import annotations

from pathlib import Path

import pytest

from envkit.agent.hear import COPIES
from envkit.agent.loaded import voice
from envkit.agent.tokens import load_template
from envkit.fault import HarnessError
from envkit.run.rows import keep_tokenizer

from ..agent.tokens.models import make_model


def test_a_copy_has_the_name_and_the_digest_of_what_it_is_of(tmp_path: Path) -> None:
    speaks = voice(make_model(tmp_path / "model", "qwen3"))
    for _ in range(2):
        keep_tokenizer(tmp_path, speaks)
    (copy,) = (tmp_path / COPIES).iterdir()
    assert load_template(copy).tokenizer_digest == copy.name == speaks.template.tokenizer_digest


def test_a_copy_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / COPIES).write_text("in the way")
    speaks = voice(make_model(tmp_path / "model", "qwen3"))
    with pytest.raises(HarnessError, match=rf"{COPIES}\S*: \w.+; make room there"):
        keep_tokenizer(tmp_path, speaks)
