# SPDX-License-Identifier: Apache-2.0
"""Trials that a scripted engine drives through the real agent, gateway and boxes."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from envkit.agent.loaded import voice
from envkit.agent.parse.format import say
from envkit.agent.types import CallRequest
from envkit.deadline import DEFAULT_BUDGETS, Budgets
from envkit.trajectory.episode_file import read_episode
from envkit.trajectory.types import Episode, Identity, Kind
from envkit.trial.record import TrialRecord

from ..agent.tokens.models import make_model
from ..engines.scripted import Order, Script, Scripted, Turn, start_scripted
from .tiny import Ran, launcher, make_task, run_trials, spec

MODEL = "envkit.agent.model:ModelAgent"
RAW = "RAW:"
"""Begins a turn that is said as it stands."""
EXEC = "code_execution_server_code_exec"
SOON = replace(DEFAULT_BUDGETS, generate_idle_s=1.0, generate_s=5.0)


def code(text: str, **more: Any) -> CallRequest:
    return CallRequest(name=EXEC, arguments={"code": text, **more})


DONE = code("echo done > /filesystem/done.txt")


@dataclass(frozen=True, kw_only=True)
class Play:
    """What the model says in one trial, and how its agent is set."""

    turns: Sequence[str | Sequence[CallRequest]]
    """Texts, or calls of one turn."""
    settings: dict[str, Any] = field(default_factory=dict[str, Any])
    orders: Sequence[Order] = ()
    family: str = "qwen3"
    task: dict[str, Any] = field(default_factory=dict[str, Any])
    """Of `make_task`."""
    engine: dict[str, Any] = field(default_factory=dict[str, Any])
    """Of the `Script`."""
    agent: str = MODEL


@dataclass(frozen=True, kw_only=True)
class Played:
    """What it came to; its directory and episode are the first attempt's."""

    record: TrialRecord
    identity: Identity
    episode: Episode
    directory: Path
    engine: list[dict[str, Any]]
    """Requests as the engine saw them."""
    model: Path

    def texts(self, kind: Kind) -> list[str]:
        """Of the segments of a kind, special tokens spelt out."""
        ids = self.episode.stream.token_ids.tolist()
        found = [each for each in self.episode.stream.segments if each.kind is kind]
        decode = voice(self.model).template.decode
        return [decode(ids[each.start : each.stop]) for each in found]


def script(model: Path, play: Play) -> Script:
    """Its turns as ids."""
    mine = voice(model)
    template = mine.template
    (stop,) = template.end_of_turn(-1) or template.stop_ids[-1:]
    turns: list[Turn] = []
    for turn in play.turns:
        said = turn.removeprefix(RAW) if isinstance(turn, str) else ""
        if not (isinstance(turn, str) and turn.startswith(RAW)):
            content, calls = (turn, ()) if isinstance(turn, str) else ("", turn)
            opened = template.opens_thinking
            said = say(template.parser_name, calls, content=content, opened=opened)
        turns.append(Turn(ids=[*template.speak(said), stop]))
    size = template.vocabulary_size
    return Script(turns=turns, orders=play.orders, vocabulary=size, **play.engine)


def play_all(
    root: Path, plays: dict[str, Play], *, budgets: Budgets = SOON, **more: Any
) -> dict[str, Played]:
    """Run every one of them, in one run; by name."""
    with ExitStack() as stack:
        engines: dict[str, tuple[Path, Scripted]] = {}
        specs = []
        for name, play in plays.items():
            model = root / "models" / play.family
            if not model.exists():
                make_model(model, play.family)
            engine = stack.enter_context(start_scripted(script(model, play)))
            engines[name] = model, engine
            task = make_task(root / "tasks", name, **play.task)
            args = {
                "engine": {"url": engine.url, "backoff": {"tries": 2, "first_s": 0.1}},
                "tokenizer": str(model),
                "budgets": {"generate_idle_s": 1.0, "generate_s": 5.0},
                **play.settings,
            }
            mine = spec(task, root / "out", f"{name}.played.model", play.agent)
            specs.append(replace(mine, agent_args=args))
        ran = run_trials(launcher(root / "out", budgets=budgets, **more), specs)
        return {name: _played(ran, name, *engines[name]) for name in plays}


def _played(ran: Ran, name: str, model: Path, engine: Scripted) -> Played:
    record = ran[f"{name}.played.model"]
    directory = record.trial_dir.parent / record.trial_id
    identity, episode = read_episode(directory / "agent" / "episode.bin")
    dead = engine.process.poll() is not None
    return Played(
        record=record,
        identity=identity,
        episode=episode,
        directory=directory,
        engine=[] if dead else engine.seen(),
        model=model,
    )
