# SPDX-License-Identifier: Apache-2.0
"""The settings of a live run as the agent of its trials takes them."""

from __future__ import annotations

from typing import Any, Final

from rltrain.evaluate.config import EvaluateConfig
from rltrain.loop.types import LiveWork

CHARS_PER_TOKEN: Final = 4
"""Of results of tools: envkit bounds them in tokens, published runs do in characters."""
SERVED: Final = "policy"


def agent_of(work: LiveWork) -> dict[str, Any]:
    """In training."""
    rollout = work.rollout
    return {
        "engine": {"model": SERVED, "kv": rollout.kv_on_sync},
        "tokenizer": work.settings.policy.path,
        "toolbelt": rollout.toolbelt,
        "extras": list(rollout.extras),
        "sampling": {
            "temperature": rollout.temperature,
            "top_p": rollout.top_p,
            "top_k": rollout.top_k,
            "top_logprobs": rollout.top_logprobs,
        },
        "limits": _limits(work, rollout.context_tokens),
        "budgets": {"generate_s": rollout.llm_call_s},
    }


def evaluated_as(work: LiveWork, evaluate: EvaluateConfig) -> dict[str, Any]:
    """What is otherwise in an evaluation."""
    return {"evaluation": True, "limits": _limits(work, evaluate.context_tokens)}


def _limits(work: LiveWork, context_tokens: int) -> dict[str, Any]:
    rollout = work.rollout
    return {
        "context_tokens": context_tokens,
        "turns": rollout.turns,
        "repairs": rollout.repairs,
        "tokens_per_turn": rollout.tokens_per_turn,
        "own_s": rollout.agent_s,
        "tool_result_tokens": rollout.tool_result_chars // CHARS_PER_TOKEN,
        "nudge_ratio": rollout.nudge_ratio,
    }
