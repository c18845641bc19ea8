# SPDX-License-Identifier: Apache-2.0
"""An episode that goes on where a killed one was: its turns are not sampled again, but its calls
are carried out again, in a sandbox of their own.

Contract: what is sampled after the past is sampled after the very stream that the killed episode
had: the prompt, and what followed each turn, have the same sha256; else it raises
`ReplayDiffers`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from envkit.agent.journal import Diary, Past
from envkit.agent.stream import digest
from envkit.agent.types import CallRequest, EncodedPrompt, Engine, Sampled
from envkit.fault import ReplayDiffers
from envkit.trajectory.plain import to_plain
from envkit.trajectory.types import EngineId, Sampling


class Resumed:
    """An `Engine` that says first what was sampled before, and a `Diary` that compares."""

    def __init__(
        self, past: Past, engine: Engine, diary: Diary, ages: Callable[[float], None]
    ) -> None:
        """``ages`` is told of seconds that the episode is older than it seems."""
        self._past = past
        self._engine = engine
        self._diary = diary
        self._ages = ages
        self._turn = 0

    @property
    def identity(self) -> EngineId:
        """Of the engine that goes on."""
        return self._engine.identity

    @property
    def context_tokens(self) -> int:
        """Of the engine that goes on."""
        return self._engine.context_tokens

    async def sample(
        self,
        prompt: EncodedPrompt,
        *,
        max_tokens: int,
        stop_ids: Sequence[int],
        sampling: Sampling,
        request_id: str,
    ) -> Sampled:
        """The next turn of the past, or one that is sampled now; raises as the engine does."""
        turn, self._turn = self._turn, self._turn + 1
        if turn < len(self._past.turns):
            sampled = self._past.turns[turn].sampled
            self._expect(turn, len(prompt.ids) == sampled.prompt_tokens, "its prompt's length")
            self._ages(sampled.seconds)
            return sampled
        return await self._engine.sample(
            prompt,
            max_tokens=max_tokens,
            stop_ids=stop_ids,
            sampling=sampling,
            request_id=request_id,
        )

    def begun(self, prompt: Sequence[int], sampling: Sampling) -> None:
        """See `Diary`; raises ReplayDiffers."""
        self._expect(0, digest(prompt) == self._past.prompt, "its prompt")
        self._expect(0, to_plain(sampling) == self._past.sampling, "how it is sampled")
        self._diary.begun(prompt, sampling)

    def sampled(self, turn: int, sampled: Sampled) -> None:
        """See `Diary`."""
        self._diary.sampled(turn, sampled)

    def intends(self, turn: int, call: CallRequest) -> None:
        """See `Diary`."""
        self._diary.intends(turn, call)

    def observed(self, turn: int, sha256: str) -> None:
        """See `Diary`; raises ReplayDiffers."""
        before = self._past.turns[turn].observed if turn < len(self._past.turns) else ""
        self._expect(turn, before in ("", sha256), "what its calls came to")
        self._diary.observed(turn, sha256)

    def _expect(self, turn: int, same: bool, what: str) -> None:
        if not same:
            raise ReplayDiffers(
                f"turn {turn} of {len(self._past.turns)}: {what} is not what it was before the kill"
            )
