# SPDX-License-Identifier: Apache-2.0
"""From transcripts to a checkpoint: tokenizer, examples, model, steps.

Contract: the directory is there when all of it is, and not before. What each example answers is
drawn from the answers of all transcripts: the form of the calls is taught, and the tasks are not.
"""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import cycle
from pathlib import Path

from envkit.agent.tokens import load_template
from rltrain.refused import Refused
from rltrain.tiny.examples import Example, Renderer, halves_of
from rltrain.tiny.tokenizer import Family, family_named, train_tokenizer, write_family
from rltrain.tiny.transcripts import Transcript, read_transcripts

RECORD = "tiny-policy.json"
"""In the checkpoint: what it was made from."""


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

    speaking = renderers(draft, families, transcripts)
    batches = _batches(speaking, transcripts, options)
    own, steps = speaking[0].template, options.steps * len(speaking)
    schedule = Schedule(steps=steps, seed=options.seed, last=len(speaking))
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
    draft: Path, families: Sequence[Family], transcripts: Sequence[Transcript]
) -> list[Renderer]:
    """One a family, over one tokenizer, which is trained on what an untrained one shows.

    ``draft`` becomes a checkpoint without its weights.
    """
    untrained = _written(draft, families, ())
    texts = [text for by in untrained for each in transcripts for text in by.texts(each)]
    return _written(draft, families, texts)


def _written(draft: Path, families: Sequence[Family], texts: Sequence[str]) -> list[Renderer]:
    """Write every family's directory, and the first one's also in place of the checkpoint."""
    tokenizer = train_tokenizer(families, texts)
    for place, family in ((draft, families[0]), *((draft / each.name, each) for each in families)):
        write_family(place, family, tokenizer)
    halves = halves_of(draft / "tokenizer.json")
    return [Renderer(load_template(draft / each.name), halves) for each in families]


def _batches(
    speaking: Sequence[Renderer], transcripts: Sequence[Transcript], options: TinyOptions
) -> Iterator[Sequence[Example]]:
    """A step of one family after the other."""
    rng = random.Random(options.seed)
    answers = sorted({each.answer for each in transcripts})
    size = min(options.batch, len(transcripts))
    for renderer in cycle(speaking):
        drawn = rng.sample(transcripts, size)
        yield [renderer.example(each, rng.choice(answers), rng) for each in drawn]
