# SPDX-License-Identifier: Apache-2.0
"""How the policy is sampled from: trials at once, the distribution, and what an episode may use.

Contract: what cannot be trained on is refused here, before a token of it is sampled.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutConfig:
    """The defaults are those of the published run of 35B parameters."""

    tasks: str = ""
    """Directory of the tasks that are trained on. Empty: nothing is sampled, so only recorded
    trajectories can be trained on."""
    environment_python: str = ""
    """Interpreter of the environment that has ``envkit[run]``, in which trials are executed; empty
    for this one, if it has that."""
    toolbelt: Literal["mcp", "code"] = "mcp"
    """How the model is given its tools."""
    extras: tuple[str, ...] = ()
    """More tools of envkit's own: final_answer, todo_write, toolbelt."""
    at_work: int = 0
    """Trials of a node that compute at once, while others wait for the engine; 0 for a few a
    core."""
    keep_trials: Literal["none", "faulted", "all"] = "faulted"
    """Whose directories stay, with logs and what agents made; every row is in the store."""
    chaos: str = ""
    """Plan of faults that strike trials by their ids, as a drill; empty for none."""
    engine_urls: tuple[str, ...] = ()
    """Engines that are there already, started with what `rltrain.sync.serve` says; empty to start
    them."""
    engine_arguments: tuple[str, ...] = ()
    """More of vLLM's own, for engines that are started."""
    engine_dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    kv_cache_gib: int = 1
    """Of an engine on a CPU; on a GPU it takes what is free."""
    concurrency: int = 550
    """Trials under way at once, over all engines; the KV memory that they take bounds it."""
    starts_per_s: float = 3.0
    """Trials that begin in a second, at most: sandboxes and prompts cost most at the start."""
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    """0 for all."""
    top_logprobs: int = 0
    """How many alternatives a token is recorded with; ``dppo_topk`` needs them."""
    context_tokens: int = 160_000
    """Prompt, samples and observations together."""
    tokens_per_turn: int = 50_000
    turns: int = 100
    repairs: int = 5
    """Turns of an episode that may be answered with what was wrong in them; one more ends it."""
    llm_call_s: float = 1800.0
    """Of one request to an engine, its queue included."""
    agent_s: float = 3600.0
    """Of an episode's own: sampling and its own commands."""
    tool_result_chars: int = 42_000
    """Of one result; what is between its head and its tail is cut out of a longer one."""
    tool_result_head_share: float = 2 / 3
    """Of what is kept; the rest is the tail."""
    nudge_ratio: float = 0.2
    """Free share of the context at which the model is told to finish, once; 0 never."""
    kv_on_sync: Literal["keep", "reset"] = "keep"
    """What becomes of the engines' caches when weights change under a turn."""

    def __post_init__(self) -> None:
        for name in ("concurrency", "context_tokens", "tokens_per_turn", "turns"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name}: {getattr(self, name)} is below 1")
        if self.repairs < 0:
            raise ValueError(f"repairs: {self.repairs} is below 0")
        for name in ("starts_per_s", "llm_call_s", "agent_s"):
            if getattr(self, name) <= 0:
                raise ValueError(f"{name}: {getattr(self, name):g} is not above 0")
        self._expect_own_distribution()
        self._expect_shares()

    def _expect_own_distribution(self) -> None:
        if self.temperature <= 0:
            raise ValueError(
                f"temperature: {self.temperature:g} leaves no choice, so every sample of a group is"
                " the same one"
            )
        for name, whole in (("top_p", 1.0), ("top_k", 0)):
            if getattr(self, name) != whole:
                raise ValueError(
                    f"{name}: {getattr(self, name):g} cuts the distribution, and no trainer makes"
                    f" log-probs of a cut one again; leave it at {whole:g}"
                )
        if self.top_logprobs < 0:
            raise ValueError(f"top_logprobs: {self.top_logprobs} is below 0")

    def _expect_shares(self) -> None:
        if self.tool_result_chars < 1:
            raise ValueError(f"tool_result_chars: {self.tool_result_chars} is below 1")
        for name in ("tool_result_head_share", "nudge_ratio"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name}: {getattr(self, name):g} is no share, 0 to 1")
