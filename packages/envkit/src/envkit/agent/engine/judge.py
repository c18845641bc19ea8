# SPDX-License-Identifier: Apache-2.0
"""From what an engine said to a sample that may be trained on, or the name of why it may not.

Nothing is mended: an answer that is short of anything is refused whole. What is refused here is
never asked for again (`envkit.fault.UntrainableSample`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from envkit.agent.engine.answer import Answer
from envkit.agent.engine.asked import Asked
from envkit.agent.types import Sampled
from envkit.fault import (
    BadLogprobs,
    EngineAborted,
    EngineGarbage,
    NoLogprobs,
    NoTokenIds,
    OutOfVocabulary,
    PromptAltered,
    TooManyTokens,
    UnequalLengths,
    UnreadableVersion,
    WrongStop,
)
from envkit.trajectory.types import Floats, Ids

FLOOR: Final = -9999.0
"""What vLLM says in place of minus infinity, of not-a-number, and of a logprob it has not got."""
SLACK: Final = 1e-4
"""Above zero: what rounding makes of a probability of one."""
INT32_MOST: Final = 2**31 - 1
_NUMBER: Final = re.compile("[0-9]{1,10}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """How long a request took, as `envkit.agent.types.Sampled` counts it."""

    queued_s: float = 0.0
    first_token_s: float = 0.0
    seconds: float = 0.0
    tries: int = 1


AT_ONCE: Final = Course()


def judged(
    answer: Answer,
    asked: Asked,
    *,
    vocabulary: int,
    version: int,
    kv_version: int = -1,
    context: int = 0,
    course: Course = AT_ONCE,
) -> Sampled:
    """The sample.

    ``version`` is the weights' where the engine does not tell it by token, ``kv_version`` that of
    the oldest whose keys and values it may have attended to; ``context`` is the longest stream that
    it takes, 0 where that is not known. Raises EngineAborted, EngineGarbage and the kinds of
    UntrainableSample.
    """
    _check_end(answer)
    ids = _ids(answer, vocabulary)
    _check_prompt(answer, asked)
    _check_stop(answer, asked)
    _check_length(answer, asked, context)
    top_ids, top_logprobs = _alternatives(answer, asked.sampling.top_logprobs)
    return Sampled(
        token_ids=ids,
        logprobs=_logprobs(answer),
        weight_version=_versions(answer, version),
        finish="stop" if answer.ids[-1] in asked.stop_ids else "length",
        prompt_tokens=len(asked.prompt.ids),
        queued_s=course.queued_s,
        first_token_s=course.first_token_s,
        seconds=course.seconds,
        kv_version=kv_version,
        tries=course.tries,
        topk_ids=top_ids,
        topk_logprobs=top_logprobs,
    )


def _check_end(answer: Answer) -> None:
    if answer.finish == "abort":
        raise EngineAborted("the engine aborted the request")
    if answer.finish is None:
        raise EngineGarbage("the answer does not say why it ended")
    if answer.ids_missing:
        raise NoTokenIds("the engine returned no token ids: it must be able to (return_token_ids)")
    if not answer.ids:
        raise EngineGarbage(f"the engine sampled no token and says {answer.finish!r}")
    if answer.sampled_tokens not in (None, len(answer.ids)):
        told = answer.sampled_tokens
        raise UnequalLengths(f"the engine returned {len(answer.ids)} ids and counts {told}")


def _ids(answer: Answer, vocabulary: int) -> Ids:
    ids = np.array(answer.ids)
    if ids.dtype.kind != "i":
        raise OutOfVocabulary("the engine returned ids that are not whole numbers of 63 bits")
    most = vocabulary - 1 if vocabulary else INT32_MOST
    if np.maximum.reduce(ids.view(np.uint64)) > most:  # as which a negative id is a huge one
        wrong = next(each for each in answer.ids if not 0 <= each <= most)
        raise OutOfVocabulary(f"id {wrong} is outside the vocabulary, 0 to {most}")
    return ids.astype(np.int32)


def _check_prompt(answer: Answer, asked: Asked) -> None:
    if answer.prompt_same is False:
        raise PromptAltered("the engine says it sampled after other ids than it was sent")
    told, sent = answer.prompt_tokens, len(asked.prompt.ids)
    if told is None and not answer.prompt_same:
        raise EngineGarbage("the answer neither counts nor repeats the prompt")
    if told not in (None, sent):
        raise PromptAltered(f"the engine sampled after {told} tokens, and was sent {sent}")


def _check_stop(answer: Answer, asked: Asked) -> None:
    if len(answer.ids) > asked.max_tokens:
        raise TooManyTokens(f"{len(answer.ids)} tokens, {asked.max_tokens} were asked for")
    stops = set(asked.stop_ids)
    last = answer.ids[-1]
    if answer.finish not in ("stop", "length"):
        raise WrongStop(f"the engine stopped for a reason of its own, {answer.finish!r}")
    if answer.finish == "stop" and last not in stops:
        raise WrongStop(f"the engine stopped at id {last}; stop ids are {sorted(stops)}")
    if not stops.isdisjoint(answer.ids[:-1]):
        raise WrongStop("the engine went on after a stop token")


def _check_length(answer: Answer, asked: Asked, context: int) -> None:
    """A cap of the engine's own is no limit of the model's: its turn would look cut off by one."""
    count, reached = len(answer.ids), len(asked.prompt.ids) + len(answer.ids)
    cut = answer.finish == "length" and answer.ids[-1] not in asked.stop_ids
    if cut and count < asked.max_tokens and reached < context:
        raise WrongStop(
            f"the engine ended a turn after {count} tokens where {asked.max_tokens} were asked for"
            " and it has room: take max_new_tokens out of its generation_config.json"
        )


def _logprobs(answer: Answer) -> Floats:
    if answer.logprobs_missing or not answer.logprobs or None in answer.logprobs:
        raise NoLogprobs("the engine returned tokens without their logprobs")
    if len(answer.logprobs) != len(answer.ids):
        raise UnequalLengths(f"{len(answer.ids)} ids and {len(answer.logprobs)} logprobs")
    if answer.named != answer.ids:
        raise NoLogprobs("the engine's logprobs are not those of the tokens it sampled")
    logprobs = np.array(answer.logprobs, dtype=np.float32)
    low, high = np.minimum.reduce(logprobs), np.maximum.reduce(logprobs)
    if not (low > FLOOR and high <= SLACK):
        wrong = next(each for each in logprobs.tolist() if not FLOOR < each <= SLACK)
        raise BadLogprobs(f"{wrong} is no logprob of a sampled token")
    return np.minimum(logprobs, np.float32(0.0))


def _versions(answer: Answer, otherwise: int) -> Ids:
    """Of every token. Where the engine does not tell them, the caller's word holds."""
    count, reached = len(answer.ids), 0
    versions = np.empty(count, dtype=np.int32)
    if answer.spans is None:
        versions.fill(otherwise)
        return versions
    for span in answer.spans:
        if span["start"] != reached or span["end"] < reached:
            raise UnequalLengths(f"weight versions {answer.spans} do not tile {count} tokens")
        reached = span["end"]
        told = version_number(span["version"])
        versions[span["start"] : reached] = otherwise if told < 0 else told
    if reached != count:
        raise UnequalLengths(f"weight versions {answer.spans} do not tile {count} tokens")
    return versions


def version_number(told: Any) -> int:
    """A weight version as a number; -1 for ``default``, which weights have until somebody sets it.

    Raises UnreadableVersion for any other name: staleness is counted in versions.
    """
    if told in (None, "default"):
        return -1
    number = int(told) if _NUMBER.fullmatch(str(told)) else -1
    if not 0 <= number <= INT32_MOST:
        raise UnreadableVersion(f"weight version {told!r}: give whole numbers from 0, as text")
    return number


def _alternatives(answer: Answer, count: int) -> tuple[Ids | None, Floats | None]:
    """The best ``count`` at each position, in order; -1 and NaN where it gave fewer."""
    if not count:
        return None, None
    if len(answer.alternatives) != len(answer.ids):
        raise UnequalLengths(f"{len(answer.ids)} ids and {len(answer.alternatives)} alternatives")
    ids = np.full((len(answer.ids), count), -1, dtype=np.int32)
    logprobs = np.full((len(answer.ids), count), np.nan, dtype=np.float32)
    for place, row in enumerate(answer.alternatives):
        best = [each for each in row if each[1] > FLOOR]
        best = sorted(best, key=lambda each: -each[1])[:count]
        ids[place, : len(best)] = [each[0] for each in best]
        logprobs[place, : len(best)] = [min(each[1], 0.0) for each in best]
    return ids, logprobs
