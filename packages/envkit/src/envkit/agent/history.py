# SPDX-License-Identifier: Apache-2.0
"""What an episode has come to so far: its tokens, requests, calls and turns.

Contract: it can be asked for its `Episode` at any moment, and every part of it agrees with every
other: one request a model segment, one record a call that came back.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from envkit.agent.limits import Account
from envkit.agent.repair import Problem
from envkit.agent.stream import TokenStream
from envkit.agent.types import CallRequest, Observation, Parsed, Sampled
from envkit.trajectory.types import CallRecord, EngineRequest, Episode, ParseFault, Stop


@dataclass(frozen=True, slots=True, kw_only=True)
class Acted:
    """A call that was carried out."""

    observation: Observation
    started_s: float
    """From the start of the episode."""
    waited_s: float = 0.0
    """Before that, for a turn on this machine's cores."""


@dataclass(slots=True, kw_only=True)
class Turn:
    """One turn as text: for people and logs, never for tokens."""

    parsed: Parsed
    acted: list[Acted] = field(default_factory=list[Acted])
    told: str = ""
    """What the loop itself said after it."""


@dataclass(slots=True)
class History:
    """Of one episode."""

    stream: TokenStream = field(default_factory=TokenStream)
    turns: list[Turn] = field(default_factory=list[Turn])
    final_answer: str | None = None
    requests: list[EngineRequest] = field(default_factory=list[EngineRequest])
    _calls: list[CallRecord] = field(default_factory=list[CallRecord])
    _faults: list[ParseFault] = field(default_factory=list[ParseFault])

    def sampled(self, sampled: Sampled, started_s: float) -> None:
        """A turn was sampled; raises as `TokenStream.sampled`."""
        turn = len(self.turns)
        self.stream.sampled(sampled, turn)
        self.requests.append(
            EngineRequest(
                turn=turn,
                started_s=started_s,
                first_token_s=sampled.first_token_s,
                seconds=sampled.seconds,
                prompt_tokens=sampled.prompt_tokens,
                sampled_tokens=len(sampled.token_ids),
                finish=sampled.finish,
                kv_version=sampled.kv_version,
                tries=sampled.tries,
            )
        )

    def parsed(self, parsed: Parsed, problem: Problem | None) -> None:
        """What the turn that was sampled says."""
        self.turns.append(Turn(parsed=parsed))
        self._faults.extend(problem.faults if problem else ())

    def acted(self, acted: Acted) -> None:
        """A call of the last turn came back."""
        self.turns[-1].acted.append(acted)
        seen = acted.observation
        self._calls.append(
            CallRecord(
                call_id=seen.call.call_id,
                turn=len(self.turns) - 1,
                name=seen.call.name,
                ok=seen.ok,
                started_s=acted.started_s,
                seconds=seen.seconds,
                fingerprint=fingerprint(seen.call),
                code=seen.code,
            )
        )

    def observed(self, ids: Sequence[int], cut_tokens: Mapping[str, int], told: str) -> str:
        """What follows the last turn, with what of each call's result the model does not see.

        Returns the sha256 of its ids.
        """
        turn, now = len(self.turns) - 1, self.turns[-1]
        now.told = told
        if not now.acted:
            return self.stream.harness(ids, turn)
        digest = self.stream.tool(ids, turn)
        for at in range(len(self._calls) - len(now.acted), len(self._calls)):
            call = self._calls[at]
            cut = cut_tokens.get(call.call_id, 0)
            self._calls[at] = replace(call, observation_sha256=digest, cut_tokens=cut)
        return digest

    def episode(self, stop: Stop, account: Account) -> Episode:
        """All of it, as it stands."""
        return Episode(
            stream=self.stream.build(),
            stop=stop,
            limits=account.limits,
            used=account.used,
            requests=tuple(self.requests),
            calls=tuple(self._calls),
            parse_faults=tuple(self._faults),
            final_answer=self.final_answer,
            evaluation=account.evaluation,
        )


def fingerprint(call: CallRequest) -> str:
    """sha256 of name and canonical arguments: equal calls have equal ones."""
    text = json.dumps([call.name, dict(call.arguments)], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
