# SPDX-License-Identifier: Apache-2.0
"""From transcripts to a checkpoint: tokenizer, examples, model, steps.

Contract: the directory is there when all of it is, and not before. What each example answers is
drawn from the answers of all transcripts: the form of the calls is taught, and the tasks are not,
but for a policy that is to learn them from demonstrations with mistakes.
"""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import count, cycle
from pathlib import Path

from envkit.agent.tokens import load_template
from rltrain.refused import Refused
from rltrain.tiny.examples import Example, Renderer, halves_of
from rltrain.tiny.mistakes import Mistaken
from rltrain.tiny.tokenizer import (
    PHRASES,
    WORDS,
    Family,
    family_named,
    train_tokenizer,
    write_family,
)
from rltrain.tiny.transcripts import Transcript, read_transcripts

RECORD = "tiny-policy.json"
"""In the checkpoint: what it was made from."""
RIGHT_FIRST = 0.6
"""Of the steps are without mistakes: from mistakes alone it takes many more to learn to copy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TinyOptions:
    """What to make."""

    out: Path
    transcripts: Path
    """A directory with recordings of replays."""
    families: tuple[str, ...] = ("qwen3",)
    """Template families; the checkpoint has the template of the first."""
    seed: int = 0
    steps: int = 150
    """Of each family."""
    batch: int = 3
    """Transcripts a step."""
    phrases: bool = False
    """Tokens may be whole phrases, so that prompts are short."""
    mistakes: float | None = None
    """Share of calls left out, and of values that are another task's; None draws answers only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """What was made."""

    families: tuple[str, ...]
    seed: int
    steps: int
    """Of all families."""
    transcripts: int
    parameters: int
    vocabulary: int
    prompt_tokens: int
    """Of the longest prompt."""
    loss: float
    """Nats a transcript in the last steps; guessing among n answers costs ln n of them."""


def _silent(step: int, loss: float) -> None: ...


def make(options: TinyOptions, told: Callable[[int, float], None] = _silent) -> Made:
    """Make a checkpoint; ``told`` hears of every step and its loss.

    Raises:
        Refused: what was asked for cannot be made.
    """
    families = [family_named(each) for each in dict.fromkeys(options.families)]
    _check(options)
    transcripts = read_transcripts(options.transcripts)
    draft = options.out.with_name(f".{options.out.name}.{os.getpid()}")
    draft.mkdir(parents=True)
    try:
        made = _make(draft, options, families, transcripts, told)
        (draft / RECORD).write_text(json.dumps(asdict(made), indent=1), "utf-8")
        draft.rename(options.out)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return made


def _check(options: TinyOptions) -> None:
    if options.out.exists():
        raise Refused(f"{options.out}: is there already; name a directory that is not")
    if not options.transcripts.is_dir():
        raise Refused(f"--transcripts {options.transcripts}: is no directory")


def _make(
    draft: Path,
    options: TinyOptions,
    families: Sequence[Family],
    transcripts: Sequence[Transcript],
    told: Callable[[int, float], None],
) -> Made:
    from rltrain.tiny.train import Schedule, train

    apart = PHRASES if options.phrases else WORDS
    speaking = renderers(draft, families, transcripts, apart)
    batches = _batches(speaking, transcripts, options)
    own, steps = speaking[0].template, options.steps * len(speaking)
    copies = options.mistakes is not None
    schedule = Schedule(steps=steps, seed=options.seed, last=len(speaking), copies=copies)
    trained = train(draft, batches, own, schedule, told)
    return Made(
        families=tuple(each.name for each in families),
        seed=options.seed,
        steps=steps,
        transcripts=len(transcripts),
        parameters=trained.parameters,
        vocabulary=own.vocabulary_size,
        prompt_tokens=max(by.prompt_tokens(of) for by in speaking for of in transcripts),
        loss=round(trained.loss, 4),
    )


def renderers(
    draft: Path,
    families: Sequence[Family],
    transcripts: Sequence[Transcript],
    apart: str = WORDS,
) -> list[Renderer]:
    """One a family, over one tokenizer, which is trained on what an untrained one shows.

    ``draft`` becomes a checkpoint without its weights.
    """
    untrained = _written(draft, families, (), apart)
    texts = [text for by in untrained for each in transcripts for text in by.texts(each)]
    return _written(draft, families, texts, apart)


def _written(
    draft: Path, families: Sequence[Family], texts: Sequence[str], apart: str
) -> list[Renderer]:
    """Write every family's directory, and the first one's also in place of the checkpoint."""
    tokenizer = train_tokenizer(families, texts, apart)
    for place, family in ((draft, families[0]), *((draft / each.name, each) for each in families)):
        write_family(place, family, tokenizer)
    halves = halves_of(draft / "tokenizer.json")
    return [Renderer(load_template(draft / each.name), halves) for each in families]


def _batches(
    speaking: Sequence[Renderer], transcripts: Sequence[Transcript], options: TinyOptions
) -> Iterator[Sequence[Example]]:
    """A step of one family after the other."""
    rng = random.Random(options.seed)
    drawn = _drawn(transcripts, options, rng)
    for renderer in cycle(speaking):
        yield [renderer.example(each, each.answer, rng) for each in next(drawn)]


def _drawn(
    transcripts: Sequence[Transcript], options: TinyOptions, rng: random.Random
) -> Iterator[Iterable[Transcript]]:
    """What each step demonstrates: right calls and any answer, or mistakes here and there."""
    size = min(options.batch, len(transcripts))
    if options.mistakes is not None:
        mistaken, steps = Mistaken(transcripts), options.steps * len({*options.families})
        for step in count():
            share = options.mistakes if step >= RIGHT_FIRST * steps else 0.0
            yield mistaken.draw(size, share, rng)
    answers = sorted({each.answer for each in transcripts})
    while True:
        yield (replace(each, answer=rng.choice(answers)) for each in rng.sample(transcripts, size))
