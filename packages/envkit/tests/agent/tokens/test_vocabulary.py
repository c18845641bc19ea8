# SPDX-License-Identifier: Apache-2.0
"""Ids of text where what looks like a special token is text."""

import json
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import (
    AddedToken,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    trainers,
)

from envkit.agent.tokens.vocabulary import Vocabulary
from envkit.fault import TemplateRefused

from .models import CORPUS, tokenizer_of
from .texts import SPECIAL, hostile, ordinary

MARKS = ("<s>", "</s>", "[INST]", "<tool_call>")


def sentencepiece(pre: Any, normalizer: Any) -> str:
    tokenizer = Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>", fuse_unk=True))
    if pre is not None:
        tokenizer.pre_tokenizer = pre
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    tokenizer.decoder = decoders.Metaspace()
    trainer = trainers.BpeTrainer(
        vocab_size=400, show_progress=False, special_tokens=["<unk>", "<s>", "</s>"]
    )
    tokenizer.train_from_iterator([each.replace(" ", "▁") for each in CORPUS * 8], trainer)
    tokenizer.add_special_tokens([AddedToken(each, normalized=False) for each in MARKS])
    return tokenizer.to_str()


def normal_form() -> str:
    data = json.loads(tokenizer_of("qwen3"))
    return json.dumps({**data, "normalizer": {"type": "NFC"}})


KINDS: dict[str, Callable[[], str]] = {
    "byte level": lambda: tokenizer_of("qwen3"),
    "byte level, merges ignored": lambda: tokenizer_of("llama3"),
    "byte level, NFC": normal_form,
    "metaspace first": lambda: sentencepiece(
        pre_tokenizers.Metaspace(prepend_scheme="first"), None
    ),
    "metaspace first in a sequence": lambda: sentencepiece(
        pre_tokenizers.Sequence(
            [pre_tokenizers.Metaspace(prepend_scheme="first"), pre_tokenizers.Digits()]
        ),
        None,
    ),
    "metaspace always": lambda: sentencepiece(
        pre_tokenizers.Metaspace(prepend_scheme="always"), None
    ),
    "prefix by normaliser": lambda: sentencepiece(
        None,
        normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]),
    ),
}


@lru_cache
def built(kind: str) -> tuple[Vocabulary, Tokenizer]:
    text = KINDS[kind]()
    return Vocabulary(text), Tokenizer.from_str(text)


@pytest.mark.parametrize("kind", KINDS)
@settings(deadline=None)
@given(parts=st.lists(ordinary, max_size=5), data=st.data())
def test_pieces_have_the_ids_of_the_whole_text(
    kind: str, parts: list[str], data: st.DataObject
) -> None:
    vocabulary, whole = built(kind)
    tokens = st.sampled_from(sorted(vocabulary.added))
    text = "".join(part + data.draw(tokens) for part in parts) + data.draw(ordinary)
    ids = vocabulary.encode_pieces(vocabulary.split(text), first=True)
    assert ids == whole.encode(text, add_special_tokens=False).ids == vocabulary.encode_whole(text)


@pytest.mark.parametrize("kind", KINDS)
@settings(deadline=None)
@given(text=st.one_of(hostile, st.sampled_from(MARKS)), first=st.booleans())
def test_no_text_becomes_an_added_token(kind: str, text: str, first: bool) -> None:
    vocabulary, _ = built(kind)
    unknown = {vocabulary.added.get("<unk>")}
    assert not set(vocabulary.encode(text, first=first)) & set(vocabulary.added.values()) - unknown


@settings(deadline=None)
@given(text=hostile)
def test_byte_level_ids_spell_the_text(text: str) -> None:
    vocabulary, _ = built("byte level")
    assert vocabulary.decode(vocabulary.encode(text)) == text


def test_added_tokens_are_spelt_out() -> None:
    vocabulary, _ = built("byte level")
    assert vocabulary.decode([vocabulary.added[each] for each in ("<think>", "<|im_end|>")]) == (
        "<think><|im_end|>"
    )


def test_the_longest_token_is_taken_where_several_begin() -> None:
    data = Tokenizer.from_str(tokenizer_of("qwen3"))
    data.add_tokens([AddedToken("<think>ing", normalized=False)])
    vocabulary = Vocabulary(data.to_str())
    assert vocabulary.split("<think>ing<think>") == [
        vocabulary.added["<think>ing"],
        vocabulary.added["<think>"],
    ]


def test_white_space_among_the_added_tokens_stays_vocabulary() -> None:
    tokenizer = Tokenizer.from_str(tokenizer_of("qwen3"))
    start = tokenizer.get_vocab_size()
    bare = json.loads(tokenizer.to_str())
    bare["added_tokens"] = []
    tokenizer = Tokenizer.from_str(json.dumps(bare))
    tokenizer.add_tokens([AddedToken("    ", normalized=False)])
    tokenizer.add_special_tokens([AddedToken("<|end|>", normalized=False)])
    vocabulary = Vocabulary(tokenizer.to_str())
    spaces = tokenizer.token_to_id("    ")
    assert spaces < start
    assert vocabulary.encode("a    b")[1] == spaces
    assert set(vocabulary.added) == {"<|end|>"}


def changed(**fields: Any) -> str:
    data = json.loads(tokenizer_of("qwen3"))
    data["added_tokens"][0].update(fields)
    return json.dumps({**data, "normalizer": {"type": "NFC"}})


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{}", "cannot be read"),
        ("not json", "cannot be read"),
        (changed(content="@"), "'@' is one character"),
        (changed(normalized=True), "looked for in normalised text"),
        (tokenizer_of("qwen3").replace('"dropout":null', '"dropout":0.1'), "dropout"),
    ],
)
def test_tokenizers_that_cannot_be_taken_apart_are_refused(text: str, why: str) -> None:
    with pytest.raises(TemplateRefused, match=why):
        Vocabulary(text)


def test_text_that_the_model_itself_merges_into_a_token_is_refused() -> None:
    tokenizer = Tokenizer(models.WordLevel({"<s>": 0, "a": 1, "?": 2}, unk_token="?"))
    tokenizer.add_special_tokens([AddedToken("<s>", normalized=False)])
    with pytest.raises(TemplateRefused, match="the text <s> cannot be told from the token"):
        Vocabulary(tokenizer.to_str())


@pytest.mark.parametrize("flag", ["lstrip", "rstrip", "single_word"])
def test_tokens_that_swallow_their_neighbours_are_refused_where_they_stand(flag: str) -> None:
    vocabulary = Vocabulary(changed(**{flag: True}))
    (content,) = [
        each for each, at in vocabulary.added.items() if at == min(vocabulary.added.values())
    ]
    with pytest.raises(TemplateRefused, match=flag):
        vocabulary.split(f"a {content} b")
    assert vocabulary.split("a b") == ["a b"]


def test_ids_are_below_the_size_also_where_some_are_missing() -> None:
    tokenizer = Tokenizer(models.WordLevel({"a": 0, "b": 7, "?": 2}, unk_token="?"))
    vocabulary = Vocabulary(tokenizer.to_str())
    assert (vocabulary.encode("b"), vocabulary.size) == ([7], 8)


def test_a_tokenizer_without_added_tokens_loads() -> None:
    data = json.loads(Tokenizer(models.WordLevel({"a": 0, "?": 1}, unk_token="?")).to_str())
    del data["added_tokens"]
    assert Vocabulary(json.dumps(data)).added == {}


def test_the_digest_is_that_of_the_file_and_training_gives_the_same_twice() -> None:
    text = tokenizer_of("glm")
    tokenizer_of.cache_clear()
    assert tokenizer_of("glm") == text
    assert Vocabulary(text).digest == Vocabulary(tokenizer_of("glm")).digest
    assert Vocabulary(text).digest != Vocabulary(tokenizer_of("qwen3")).digest


def test_every_special_token_of_the_families_is_found() -> None:
    found = {
        each
        for family in ("qwen3", "glm", "llama3", "hermes")
        for each in Vocabulary(tokenizer_of(family)).added
    }
    assert found == set(SPECIAL)
