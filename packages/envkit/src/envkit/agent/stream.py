# SPDX-License-Identifier: Apache-2.0
"""The token stream of one episode: one list that is only appended to.

Contract: what the engine sampled enters verbatim, once, and nothing that is in it is ever encoded
again. The ids the engine is asked with are this list. Whatever would break an invariant of
`envkit.trajectory.types.Stream` is refused when it is added, and the stream stays as it was.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Final

import numpy as np

from envkit.agent.types import EncodedPrompt, Sampled
from envkit.fault import EngineError, HarnessError
from envkit.trajectory.types import Finish, Floats, Ids, Kind, Segment, Stream

LOGPROB_SLACK: Final = 1e-4
"""Above zero: what rounding in the engine's float16 makes of a probability of one."""
INT32_MOST: Final = 2**31 - 1


class TokenStream:
    """Grows by segments, in the order in which they were seen."""

    def __init__(self) -> None:
        self.prompt = EncodedPrompt()
        """All ids so far, as the engine is asked with them; append by the methods here alone."""
        self._segments: list[Segment] = []
        self._sampled: list[Sampled] = []

    def __len__(self) -> int:
        return len(self.prompt.ids)

    @property
    def last(self) -> int:
        """The last id."""
        return self.prompt.ids[-1]

    def begin(self, ids: Sequence[int]) -> None:
        """The prompt, up to where the model first samples; first, and once."""
        if self._segments:
            raise HarnessError("a token stream has one prompt, at its beginning")
        if not len(ids):
            raise HarnessError("the prompt has no tokens")
        self._append(_tokens(ids, Kind.PROMPT, 0), Kind.PROMPT, turn=0)

    def sampled(self, sampled: Sampled, turn: int) -> None:
        """A turn of the model.

        Raises:
            EngineError: it is no sample after this very stream.
        """
        self._expect_prompt()
        if self._segments[-1].kind is Kind.MODEL:
            raise HarnessError(f"turn {turn}: a sample may not follow another without an answer")
        if wrong := _what_is_wrong(sampled, len(self)):
            raise EngineError(f"turn {turn}: {wrong}")
        ids: list[int] = sampled.token_ids.tolist()
        self._append(ids, Kind.MODEL, turn, sampled.finish)
        self._sampled.append(sampled)

    def tool(self, ids: Sequence[int], turn: int) -> str:
        """The observations of a turn; returns the sha256 of their ids."""
        return self._added(ids, Kind.TOOL, turn)

    def harness(self, ids: Sequence[int], turn: int) -> str:
        """What the loop itself adds; returns the sha256 of its ids. Nothing adds nothing."""
        return self._added(ids, Kind.HARNESS, turn)

    def build(self) -> Stream:
        """As arrays."""
        n = len(self)
        stream = Stream(
            token_ids=np.array(self.prompt.ids, dtype=np.int32),
            loss_mask=np.zeros(n, dtype=np.bool_),
            logprobs=np.full(n, np.nan, dtype=np.float32),
            weight_version=np.full(n, -1, dtype=np.int32),
            segments=tuple(self._segments),
            topk_ids=self._table("topk_ids", -1, np.int32),
            topk_logprobs=self._table("topk_logprobs", np.nan, np.float32),
        )
        for segment, sampled in self._model():
            here = slice(segment.start, segment.stop)
            stream.loss_mask[here] = True
            stream.logprobs[here] = np.minimum(sampled.logprobs, 0.0)
            stream.weight_version[here] = sampled.weight_version
        return stream

    def _model(self) -> zip[tuple[Segment, Sampled]]:
        model = [segment for segment in self._segments if segment.kind is Kind.MODEL]
        return zip(model, self._sampled, strict=True)

    def _table(self, name: str, empty: float, dtype: type[np.generic]) -> np.ndarray | None:
        """Alternatives of sampled tokens, as wide as the widest sample's."""
        found = [(segment, getattr(sampled, name)) for segment, sampled in self._model()]
        width = max((table.shape[1] for _, table in found if table is not None), default=0)
        if not width:
            return None
        whole = np.full((len(self), width), empty, dtype=dtype)
        for segment, table in found:
            if table is not None:
                whole[segment.start : segment.stop, : table.shape[1]] = table
        return whole

    def _added(self, ids: Sequence[int], kind: Kind, turn: int) -> str:
        self._expect_prompt()
        if len(ids):
            self._append(_tokens(ids, kind, turn), kind, turn)
        return digest(ids)

    def _expect_prompt(self) -> None:
        if not self._segments:
            raise HarnessError("a token stream begins with its prompt")

    def _append(
        self, ids: Sequence[int], kind: Kind, turn: int, finish: Finish | None = None
    ) -> None:
        if self._segments and turn < self._segments[-1].turn:
            raise HarnessError(f"turn {turn} comes after turn {self._segments[-1].turn}")
        start = len(self)
        self.prompt.extend(ids)
        stop = len(self)
        self._segments.append(Segment(kind=kind, start=start, stop=stop, turn=turn, finish=finish))


def _tokens(ids: Sequence[int], kind: Kind, turn: int) -> Sequence[int]:
    """Ids that are not the engine's own, as they are."""
    if min(ids) < 0 or max(ids) > INT32_MOST:
        raise HarnessError(f"turn {turn}: an id of a {kind} segment is no token's")
    return ids


def digest(ids: Sequence[int] | Ids) -> str:
    """sha256 of ids as little-endian int32."""
    return hashlib.sha256(np.asarray(ids, dtype="<i4").tobytes()).hexdigest()


def _what_is_wrong(sampled: Sampled, length: int) -> str:
    """Why a sample may not enter; empty where it may."""
    n = len(sampled.token_ids)
    if not n:
        return "the engine sampled nothing"
    if sampled.prompt_tokens != length:
        return f"the engine counted {sampled.prompt_tokens} ids where it was asked with {length}"
    if len(sampled.logprobs) != n or len(sampled.weight_version) != n:
        return "ids, logprobs and weight versions are of unequal length"
    if np.minimum.reduce(sampled.token_ids) < 0:
        return "an id is negative"
    if _wrong_tables(sampled, n):
        return "alternatives are of another length than the ids"
    return _wrong_logprobs(sampled.logprobs)


def _wrong_tables(sampled: Sampled, n: int) -> bool:
    tables = (sampled.topk_ids, sampled.topk_logprobs)
    if (tables[0] is None) != (tables[1] is None):
        return True
    return any(table is not None and table.shape[:1] != (n,) for table in tables)


def _wrong_logprobs(logprobs: Floats) -> str:
    low, high = np.minimum.reduce(logprobs), np.maximum.reduce(logprobs)
    if not (low > -np.inf and high < np.inf):  # not-a-number is neither
        return "a sampled token has no finite logprob"
    if high > LOGPROB_SLACK:
        return f"a logprob is above zero: {float(high):g}"
    return ""
