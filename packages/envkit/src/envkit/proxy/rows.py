# SPDX-License-Identifier: Apache-2.0
"""From a conversation that ended to rows of the store, one for each of its streams.

Contract: the reward stands on the stream that was answered last. It is valid only where the client
says so, the conversation is one stream, nothing stands against that, and no fault ended it. Every
other row says in its fault what could not be proven: it is kept to be looked at.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from envkit import __version__
from envkit.agent.engine.asked import is_plain
from envkit.proxy.branch import Branch
from envkit.proxy.conversation import Conversation
from envkit.proxy.types import Ending, Mark
from envkit.trajectory.types import (
    AttemptNote,
    Episode,
    FaultNote,
    Identity,
    Outcome,
    Stop,
    Trajectory,
)
from envkit.trial.joined import note_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Whose:
    """What is the same for all rows of a server."""

    task: str
    """Of conversations whose client names none."""
    harness: str = ""


def rows_of(home: Conversation, ending: Ending, whose: Whose, gone: str = "") -> list[Trajectory]:
    """Of all its streams; ``gone`` is why it ended where no client ended it."""
    return [_row(home, each, ending, whose, gone) for each in home.branches]


def _row(home: Conversation, branch: Branch, ending: Ending, whose: Whose, gone: str) -> Trajectory:
    last = branch is home.latest
    stop = _stop(branch, ending if last else Ending(), gone)
    fault = _fault(home, branch, stop, gone)
    stop = Stop.FAULT if fault and fault.code == "conversation_cut" else stop
    reward = ending.reward if last else None
    valid = reward is not None and ending.reward_valid and fault is None
    attempt = AttemptNote(
        number=1,
        started_at=branch.started_at,
        seconds=max(0.0, time.time() - branch.started_at),
        reward=reward,
        reward_valid=valid,
        fault=fault,
    )
    outcome = Outcome(
        reward=reward,
        reward_valid=valid,
        loss_live=valid,
        rewards=dict(ending.rewards) if reward is not None else {},
        verdict="no_verdict" if reward is None else "graded",
        fault=fault,
        attempts=(attempt,),
    )
    return Trajectory(
        identity=_identity(home, branch, ending, whose),
        episode=_episode(branch, stop),
        outcome=outcome,
    )


def _stop(branch: Branch, ending: Ending, gone: str) -> Stop:
    seen = branch.stop()
    if seen is Stop.FAULT or gone:
        return seen
    return ending.stop or seen


def _episode(branch: Branch, stop: Stop) -> Episode:
    told = branch.last
    final = told.content if told and not told.calls and told.finish == "stop" else None
    return replace(branch.history.episode(stop, branch.account), final_answer=final)


def _fault(home: Conversation, branch: Branch, stop: Stop, gone: str) -> FaultNote | None:
    """What stands against a stream, the heaviest first."""
    if branch.fault is not None:
        return note_of(branch.fault)
    if stop is Stop.FAULT:
        return _note("no_answer", "the last request was given up before it was answered")
    if gone and stop is Stop.TURN_CAP:
        return _note("conversation_cut", f"{gone}, while results of calls were due")
    if (mark := _mark(home.branches, branch)) is not None:
        return _note(mark.code, mark.message)
    return None


def _mark(branches: Sequence[Branch], branch: Branch) -> Mark | None:
    if branch.mark is not None or len(branches) == 1:
        return branch.mark
    other = next(each.mark for each in branches if each.mark is not None)  # all but the first are
    return Mark(code=other.code, message=f"one of {len(branches)} streams: {other.message}")


def _note(code: str, message: str) -> FaultNote:
    return FaultNote(code=code, owner="harness", phase="act", message=message)


def _identity(home: Conversation, branch: Branch, ending: Ending, whose: Whose) -> Identity:
    template, sampling = branch.mouth.voice.template, branch.sampling
    mode = sampling.logprobs_mode if is_plain(sampling) else "processed"
    return Identity(
        trajectory_id=branch.row,
        group_id=ending.group_id or _prompt_digest(home.branches[0]),
        sample=ending.sample,
        task=ending.task or whose.task,
        harness=f"envkit proxy {whose.harness}".strip(),
        harness_version=__version__,
        tokenizer_digest=template.tokenizer_digest,
        template_digest=template.template_digest,
        template_family=template.family,
        engine=branch.mouth.engine.identity,
        sampling=replace(sampling, logprobs_mode=mode),
    )


def _prompt_digest(branch: Branch) -> str:
    """Conversations that begin alike are of one group, unless a client says otherwise."""
    prompt = b"".join(each.digest for each in branch.asked.links)
    return f"prompt-{hashlib.sha256(prompt + branch.asked.tools_digest).hexdigest()[:16]}"
