# SPDX-License-Identifier: Apache-2.0
"""One request, before it takes the shape of a protocol; and the sampling parameters it is made of.

Every parameter that shapes the distribution is sent, also where it is the engine's own default: a
served model brings defaults of its own (``generation_config.json``), which nobody asked for. Only
the template's stop ids end a turn, for the same reason: ``ignore_eos`` is set.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from envkit.agent.types import EncodedPrompt
from envkit.trajectory.types import Sampling

TOP_LOGPROBS_MOST = 19
"""Alternatives that can be recorded: vLLM gives 20 with the sampled one, unless told otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What is to be sampled."""

    prompt: EncodedPrompt
    max_tokens: int
    stop_ids: Sequence[int]
    sampling: Sampling
    request_id: str


def shaping(sampling: Sampling) -> dict[str, Any]:
    """The parameters that shape the distribution, by the names of vLLM.

    A temperature of 0 has no distribution, so that its logprobs would be of another one: the same
    tokens come of ``top_k`` 1, with a logprob of 0.
    """
    greedy = sampling.temperature == 0.0
    fields: dict[str, Any] = {
        "temperature": 1.0 if greedy else sampling.temperature,
        "top_p": 1.0 if greedy else sampling.top_p,
        "top_k": 1 if greedy else sampling.top_k,
        "min_p": 0.0 if greedy else sampling.min_p,
        "presence_penalty": sampling.presence_penalty,
        "frequency_penalty": sampling.frequency_penalty,
        "repetition_penalty": sampling.repetition_penalty,
    }
    if sampling.seed is not None:
        fields["seed"] = sampling.seed
    if sampling.grammar:
        fields["structured_outputs"] = {"grammar": sampling.grammar}
    return fields


def is_plain(sampling: Sampling) -> bool:
    """Whether tokens are drawn from the model's own distribution, as it is."""
    return sampling == Sampling(
        seed=sampling.seed,
        logprobs_mode=sampling.logprobs_mode,
        top_logprobs=sampling.top_logprobs,
    )
