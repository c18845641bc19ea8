# SPDX-License-Identifier: Apache-2.0
"""Model directories for tests: a byte-level tokenizer trained here, and the templates of our own.

The templates and the special tokens of each family are those of rltrain's tiny policy.
"""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

TEMPLATES = Path(__file__).parents[4] / "rltrain/src/rltrain/tiny/templates"
FAMILIES: dict[str, dict[str, Any]] = json.loads((TEMPLATES / "families.json").read_text())

CORPUS = (
    'the tool answered {"name": "read_file", "arguments": {"path": "/a/b.txt", "limit": 10}}',
    "<|im_start|>user\nWhat does the report of the third quarter say?<|im_end|>\n",
    "Grüße aus Köln, naïve café, 東京の天気は晴れです, Привет мир, 🙂🙃",
    "def main():\n    return [value for value in range(10)]\n\n\n\t# done\n",
)
SPLIT = (
    r"(?i:'s|'t|'re|'ve)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+"
)


def make_model(directory: Path, family: str, template: str = "") -> Path:
    """A directory as a model of this family has it, but for the weights."""
    parts = FAMILIES[family]
    directory.mkdir(parents=True, exist_ok=True)
    tokenizer = tokenizer_of(family)
    (directory / "tokenizer.json").write_text(tokenizer)
    (directory / "chat_template.jinja").write_text(
        template or (TEMPLATES / f"{family}.jinja").read_text()
    )
    named = {f"{name}_token": parts[name] for name in ("bos", "eos") if name in parts}
    (directory / "tokenizer_config.json").write_text(json.dumps(named))
    loaded = Tokenizer.from_str(tokenizer)
    stops = [loaded.token_to_id(each) for each in parts["stops"]]
    (directory / "generation_config.json").write_text(json.dumps({"eos_token_id": stops}))
    return directory


@lru_cache
def tokenizer_of(family: str) -> str:
    """Text of its ``tokenizer.json``; the same every time."""
    parts = FAMILIES[family]
    tokenizer = Tokenizer(models.BPE(ignore_merges=family == "llama3"))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(SPLIT), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=512,
        show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    tokenizer.train_from_iterator(CORPUS * 8, trainer)
    tokenizer.add_special_tokens([AddedToken(each, normalized=False) for each in parts["special"]])
    tokenizer.add_tokens([AddedToken(each, normalized=False) for each in parts["added"]])
    return tokenizer.to_str()
