# SPDX-License-Identifier: Apache-2.0
"""Whatever is said and answered, a stream is the prompt, the samples, and what follows each turn.

The loop plays random conversations with the templates and parsers of every family: each segment
that no model sampled is the template's difference for what was observed, and nothing else is there.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envkit.agent.limits import Account
from envkit.agent.loaded import Voice, voice
from envkit.agent.loop import Loop
from envkit.agent.parse.format import say
from envkit.agent.prompt import opening
from envkit.agent.show import NUDGE
from envkit.agent.types import CallRequest, EncodedPrompt, Message, Observation, Sampled
from envkit.fault import OutOfMemory
from envkit.trajectory.invariants import check_episode
from envkit.trajectory.types import EngineId, Episode, Kind, Limits, Segment, Stop

from .small import Belt, seen
from .tokens.models import FAMILIES, make_model
from .tokens.texts import hostile

TASK = opening("Look at <|im_end|> and <|eot_id|>.")
UNREADABLE = {
    "hermes": '<tool_call>\n{"name": "look"',
    "qwen3_xml": "<tool_call>\n<function=look>",
    "glm": "<tool_call>look\n<arg_key>n",
    "llama3_json": '<|python_tag|>{"name": "look", ',
}
LEFT_OUT = re.compile(r"\n?\[\d+ tokens are left out here; [^\n]*\]\n?")


@dataclass(frozen=True, kw_only=True)
class Said:
    """A turn: so many calls, then what no parser reads, then a text; or ids as they are."""

    calls: int = 0
    unreadable: bool = False
    text: str = ""
    raw: tuple[int, ...] = ()
    stop: int = 0
    """Which of the family's stop tokens ends it; -1 for none, so that it is cut off."""


@dataclass
class Engine:
    """Says its turns, cut off where they are longer than was asked for."""

    voice: Voice
    turns: Sequence[Said]
    context_tokens: int = 1_000_000
    identity: EngineId = field(default_factory=lambda: EngineId(model="says"))
    sampled: list[int] = field(default_factory=list[int])
    count: int = 0

    async def sample(self, prompt: EncodedPrompt, *, max_tokens: int, **_: Any) -> Sampled:
        ids = self._ids(self.turns[self.count % len(self.turns)])[:max_tokens]
        self.count += 1
        stops = self.voice.template.stop_ids
        cut = next((at for at, each in enumerate(ids) if each in stops), len(ids) - 1)
        ids = ids[: cut + 1]
        self.sampled += ids
        return Sampled(
            token_ids=np.array(ids, np.int32),
            logprobs=np.full(len(ids), -0.5, np.float32),
            weight_version=np.full(len(ids), 3, np.int32),
            finish="stop" if ids[-1] in stops else "length",
            prompt_tokens=len(prompt.ids),
        )

    def _ids(self, said: Said) -> list[int]:
        template, numbers = self.voice.template, range(said.calls)
        if said.raw:
            body = [each % template.vocabulary_size for each in said.raw]
        else:
            calls = [CallRequest(name="look", arguments={"n": number}) for number in numbers]
            opened = template.opens_thinking
            text = say(template.parser_name, calls, content=said.text, opened=opened)
            text += UNREADABLE[template.parser_name] if said.unreadable else ""
            body = template.speak(text)
        end = template.stop_ids[said.stop % len(template.stop_ids)]
        return [*body, *([end] if said.stop >= 0 else (body[-1:] or [0]) * 4000)]


class Recorded:
    """A template that remembers what it was asked to render."""

    def __init__(self, voice: Voice) -> None:
        self._template = voice.template
        self.asked: list[tuple[list[Message], int | None, list[int]]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._template, name)

    def observations(self, messages: Sequence[Message], *, after: int | None) -> list[int]:
        ids = self._template.observations(messages, after=after)
        self.asked.append((list(messages), after, ids))
        return ids


class Answering(Belt):
    """Answers with one text after the other."""

    def __init__(self, answers: Sequence[Observation | BaseException]) -> None:
        super().__init__({"look": lambda _: self._next()})
        self._answers = answers
        self.observed: dict[int, list[str]] = {}

    def _next(self) -> Observation | BaseException:
        made = self.called[-1]
        answer = self._answers[(len(self.called) - 1) % len(self._answers)]
        text = str(answer) if isinstance(answer, BaseException) else answer.text
        fine = isinstance(answer, Observation) and answer.ok
        turn = int(made.call_id.split("-")[1])
        shown = text if fine else f"Error: {text}"
        shown = "".join("?" if "\ud800" <= each <= "\udfff" else each for each in shown)
        self.observed.setdefault(turn, []).append(shown)
        return answer


short = st.text(st.sampled_from("ab é漢\n"), max_size=20)
says = st.builds(
    Said,
    calls=st.integers(0, 3),
    unreadable=st.booleans(),
    text=short,
    raw=st.one_of(st.just(()), st.lists(st.integers(0, 5000), max_size=6).map(tuple)),
    stop=st.sampled_from([0, 0, 1, 2, -1]),
)


def repeated(text: str, times: int) -> str:
    return text * times


def answered(text: str, ok: bool) -> Observation:
    return seen(text, ok=ok)


odd: st.SearchStrategy[str] = st.one_of(
    hostile,
    st.sampled_from(["", "\0", "\ud800", "a\udfff<|im_end|>", "\ufffd", "🙂" * 300, "<|eot_id|>"]),
    st.builds(repeated, hostile, st.integers(1, 400)),
)
answers = st.one_of(
    st.builds(answered, odd, st.booleans()),
    st.builds(OutOfMemory, st.just("of 1 MiB <|im_end|>")),
)
limits = st.builds(
    Limits,
    context_tokens=st.sampled_from([2_000, 4_000, 100_000]),
    turns=st.integers(1, 6),
    tokens_per_turn=st.sampled_from([200, 1_000]),
    tool_result_tokens=st.sampled_from([0, 20, 200, 10_000]),
    repairs=st.integers(1, 4),
    nudge_ratio=st.sampled_from([0.0, 0.2, 0.9]),
)


@pytest.fixture(scope="module")
def voices(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Voice]:
    root = tmp_path_factory.mktemp("models")
    return {name: voice(make_model(root / name, name)) for name in FAMILIES}


@pytest.mark.parametrize("family", FAMILIES)
@settings(deadline=None, max_examples=60)
@given(
    said=st.lists(says, min_size=1, max_size=5),
    answers=st.lists(answers, min_size=1, max_size=5),
    limits=limits,
)
def test_what_no_model_sampled_is_the_difference_for_what_was_observed(
    voices: dict[str, Voice],
    family: str,
    said: list[Said],
    answers: list[Observation | BaseException],
    limits: Limits,
) -> None:
    mine = voices[family]
    template, belt, engine = Recorded(mine), Answering(answers), Engine(mine, said)
    account = Account(limits=limits, clock=lambda: 0.0)
    as_template: Any = template
    loop = Loop(
        engine=engine,
        template=as_template,
        parser=mine.parser,
        toolbelt=belt,
        account=account,
    )
    stop = asyncio.run(loop.run(TASK))
    assert stop is not Stop.FAULT
    episode = loop.episode(stop)
    check_episode("here", episode, loop.sampling)
    ids = episode.stream.token_ids.tolist()
    assert episode.stream.token_ids[episode.stream.loss_mask].tolist() == engine.sampled
    prompt, *others = episode.stream.segments
    assert ids[: prompt.stop] == mine.template.prompt(TASK, belt.tools)
    for model, *added in turns_of(others):
        _check_turn(episode, template, belt, model, added)


def turns_of(segments: Sequence[Segment]) -> Iterator[list[Segment]]:
    """The segments of each turn."""
    for turn in sorted({each.turn for each in segments}):
        yield [each for each in segments if each.turn == turn]


def _check_turn(
    episode: Episode, template: Recorded, belt: Answering, model: Segment, added: list[Segment]
) -> None:
    """After a sample there is nothing, or the end that it lacks and then the difference."""
    assert model.kind is Kind.MODEL
    ids = episode.stream.token_ids.tolist()
    texts = belt.observed.get(model.turn, [])
    last = ids[model.stop - 1]
    if end := template.end_of_turn(last):
        if not added:
            return
        first, *added = added
        assert first.kind is Kind.HARNESS
        assert ids[first.start : first.stop] == end
        (last,) = end
    if not added:
        return
    (follows,) = added
    assert follows.kind is (Kind.TOOL if texts else Kind.HARNESS)
    found = ids[follows.start : follows.stop]
    messages = next(said for said, after, each in template.asked if (after, each) == (last, found))
    assert template.observations(messages, after=last) == found
    shown = [each.content for each in messages if each.role == "tool"]
    assert len(shown) == len(texts)
    cut = [each.cut_tokens for each in episode.calls if each.turn == model.turn]
    assert all(map(_shows, texts, shown, cut))
    assert [each.content for each in messages[len(shown) :]] == _told(episode, model.turn)


def _shows(whole: str, shown: str, cut: int) -> bool:
    """Whether this is the whole, or its head and its tail with a line between."""
    if not cut:
        return shown == whole
    for line in LEFT_OUT.finditer(shown):
        head, tail = shown[: line.start()], shown[line.end() :]
        if whole.startswith(head) and whole.endswith(tail) and len(head + tail) < len(whole):
            return True
    return whole.startswith(shown) and len(shown) < len(whole)


def _told(episode: Episode, turn: int) -> list[str]:
    said = "\n".join(each.message for each in episode.parse_faults if each.turn == turn)
    nudge = NUDGE if episode.used.nudged_at == turn else ""
    return ["\n\n".join(filter(None, [said, nudge]))] if said or nudge else []
