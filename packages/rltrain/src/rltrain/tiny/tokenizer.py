# SPDX-License-Identifier: Apache-2.0
"""A model directory without its weights: tokenizer, special tokens, chat template, stop tokens.

The tokenizer is byte-level BPE trained on the texts it will see, so prompts stay short and any
other text can be said too. It knows the special tokens of every family that is asked for; the
directory has the chat template and the stop tokens of one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

from rltrain.refused import Refused

TEMPLATES = Path(__file__).parent / "templates"
MOST_TOKENS = 1536
"""Of the vocabulary, without the special tokens; text that is all known needs fewer."""
WORDS = (
    r"(?i:'s|'t|'re|'ve)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+"
)
"""Where text is taken apart before merging: words, single digits, marks, line ends."""
PHRASES = r"\p{L}+(?:[ _]\p{L}+)*|\p{N}|[^\r\n\p{L}\p{N}]+[\r\n]*|[\r\n]+"
"""The same for short prompts: what no mark and no digit stands in is one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """The special tokens of a template family, as ``templates/families.json`` has them."""

    name: str
    special: tuple[str, ...]
    added: tuple[str, ...]
    """Whole tokens that are text all the same."""
    named: dict[str, str]
    """``bos_token`` and ``eos_token``."""
    stops: tuple[str, ...]


def families() -> dict[str, Family]:
    """All families there are templates for."""
    listed = json.loads((TEMPLATES / "families.json").read_text("utf-8"))
    return {
        name: Family(
            name=name,
            special=tuple(parts["special"]),
            added=tuple(parts["added"]),
            named={f"{each}_token": parts[each] for each in ("bos", "eos") if each in parts},
            stops=tuple(parts["stops"]),
        )
        for name, parts in listed.items()
    }


def family_named(name: str) -> Family:
    """The family.

    Raises:
        Refused: there is none of this name.
    """
    known = families()
    if name not in known:
        raise Refused(f"--family {name}: no such family; there are {', '.join(sorted(known))}")
    return known[name]


def train_tokenizer(
    families: Sequence[Family], texts: Iterable[str], apart: str = WORDS
) -> Tokenizer:
    """Train one on ``texts``, taken ``apart`` by a pattern; the same texts give the same ids."""
    tokenizer = Tokenizer(models.BPE())
    split = pre_tokenizers.Split(Regex(apart), behavior="isolated")
    as_bytes = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([split, as_bytes])
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=MOST_TOKENS,
        show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    tokenizer.train_from_iterator(texts, trainer)
    special = dict.fromkeys(each for family in families for each in family.special)
    added = dict.fromkeys(each for family in families for each in family.added)
    tokenizer.add_special_tokens(_tokens(special))  # pyright: ignore[reportUnknownMemberType]
    tokenizer.add_tokens(_tokens(added))  # pyright: ignore[reportUnknownMemberType]
    return tokenizer


def _tokens(texts: Iterable[str]) -> list[AddedToken]:
    return [AddedToken(each, normalized=False) for each in texts]


def write_family(directory: Path, family: Family, tokenizer: Tokenizer) -> None:
    """What a model directory of this family has, but for weights."""
    directory.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(directory / "tokenizer.json"))
    template = (TEMPLATES / f"{family.name}.jinja").read_text("utf-8")
    (directory / "chat_template.jinja").write_text(template, "utf-8")
    config = {"tokenizer_class": "PreTrainedTokenizerFast", **family.named}
    stops = [tokenizer.token_to_id(each) for each in family.stops]
    _write(directory / "tokenizer_config.json", config)
    _write(directory / "generation_config.json", {"eos_token_id": stops})


def _write(file: Path, value: object) -> None:
    file.write_text(json.dumps(value, indent=1), "utf-8")
