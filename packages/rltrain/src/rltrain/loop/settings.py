# SPDX-License-Identifier: Apache-2.0
"""All settings of a run: each table is the frozen dataclass of the component that it is for.

Contract: tables that contradict each other are refused, with the reason. ``rollout``, ``cluster``
and ``evaluate`` may be absent: nothing is sampled, one machine trains, nothing is evaluated. What
the objective and the batch must agree on with a rollout is asked only where there is one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from rltrain.batch.config import BatchConfig
from rltrain.buffer.config import BufferConfig
from rltrain.cluster.config import ClusterConfig
from rltrain.config.read import never
from rltrain.evaluate.config import EvaluateConfig
from rltrain.gates.config import GatesConfig
from rltrain.loop.config import CheckpointConfig, RunConfig
from rltrain.loop.rules import RulesConfig
from rltrain.objective.advantage import FEW
from rltrain.objective.config import STACKED, ObjectiveConfig
from rltrain.objective.loss.dppo import DppoTopk
from rltrain.policy.config import OptimizerConfig, PolicyConfig
from rltrain.rollout.config import RolloutConfig
from rltrain.sync.config import SyncConfig

NO_NUDGE = {"nudge_ratio": "an evaluation never nudges; rollout.nudge_ratio is of training"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """A recipe, whole."""

    policy: PolicyConfig
    optimizer: OptimizerConfig = field(default_factory=OptimizerConfig)
    objective: ObjectiveConfig = field(default_factory=ObjectiveConfig, metadata=never(STACKED))
    batch: BatchConfig = field(default_factory=BatchConfig)
    rollout: RolloutConfig | None = None
    """None: only recorded trajectories are trained on."""
    buffer: BufferConfig = field(default_factory=BufferConfig)
    cluster: ClusterConfig | None = None
    """None: this machine, one engine where anything is sampled, and one trainer."""
    gates: GatesConfig = field(default_factory=GatesConfig)
    evaluate: EvaluateConfig | None = field(default=None, metadata=never(NO_NUDGE))
    run: RunConfig = field(default_factory=RunConfig)
    rules: RulesConfig = field(default_factory=RulesConfig)
    sync: SyncConfig = field(default_factory=SyncConfig)
    checkpoint: CheckpointConfig = field(default_factory=CheckpointConfig)

    def __post_init__(self) -> None:
        """Refuse what contradicts itself across tables."""
        for contradiction in _contradictions(self):
            raise ValueError(contradiction)

    @property
    def ceiling(self) -> int:
        """Trials that staleness lets be begun and not yet trained on: (S + 1) x prompts x samples;
        members of groups that are not whole yet count too."""
        return self.buffer.ceiling(self.batch.prompts, self.batch.samples)

    def notes(self) -> tuple[str, ...]:
        """What follows from the settings and is no contradiction: a line each."""
        rollout = () if self.rollout is None else _of_rollout(self, self.rollout)
        cluster = () if self.cluster is None else _of_cluster(self.cluster)
        return (*rollout, *cluster, *_of_policy(self))


def _contradictions(settings: Settings) -> Iterator[str]:
    if settings.objective.terms.kl > 0 and not settings.policy.reference:
        yield "objective.terms.kl is above 0 and policy.reference names no reference policy"
    if settings.rollout is not None:
        yield from _with_rollout(settings, settings.rollout)


def _with_rollout(settings: Settings, rollout: RolloutConfig) -> Iterator[str]:
    batch, objective, context = settings.batch, settings.objective, rollout.context_tokens
    if batch.micro_batch_tokens < context:
        yield (
            f"batch.micro_batch_tokens {batch.micro_batch_tokens} is below rollout.context_tokens"
            f" {context}: no micro-batch would take the longest trajectory"
        )
    if batch.samples < FEW:
        yield (
            f"batch.samples {batch.samples} is below {FEW}: a group has no baseline then, and every"
            " one would be dropped"
        )
    if isinstance(objective.loss, DppoTopk) and not rollout.top_logprobs:
        yield (
            "objective.loss.name is dppo_topk and rollout.top_logprobs is 0: the trajectories would"
            " have no alternatives to compare"
        )
    yield from _too_short(objective, context)


def _too_short(objective: ObjectiveConfig, context: int) -> Iterator[str]:
    """Lengths that stand for the longest sample there can be, and do not."""
    aggregate, penalty = objective.aggregate, objective.length_penalty
    for name, longest, used in (
        ("aggregate", aggregate.longest, aggregate.name == "token_sum_norm"),
        ("length_penalty", penalty.longest, bool(penalty.model or penalty.environment)),
    ):
        if used and longest < context:
            yield (
                f"objective.{name}.longest {longest} is below rollout.context_tokens {context}:"
                " a trajectory may be longer than the longest"
            )


def _of_rollout(settings: Settings, rollout: RolloutConfig) -> Iterator[str]:
    buffer, batch, ceiling = settings.buffer, settings.batch, settings.ceiling
    bound = f"({buffer.staleness} + 1) x {batch.prompts} x {batch.samples} = {ceiling}"
    if rollout.concurrency > ceiling:
        idle = rollout.concurrency - ceiling
        yield (
            f"rollout.concurrency {rollout.concurrency} is above {bound}: staleness binds, and"
            f" {idle} slots never fill"
        )
    else:
        yield (
            f"rollout.concurrency {rollout.concurrency} is within {bound}, in which finished"
            " members of open groups count too; if KV memory holds so many, it is what binds"
        )
    if rollout.tokens_per_turn > rollout.context_tokens:
        yield (
            f"rollout.tokens_per_turn {rollout.tokens_per_turn} is above rollout.context_tokens"
            f" {rollout.context_tokens} and never binds"
        )
    if rollout.llm_call_s > rollout.agent_s:
        yield (
            f"rollout.llm_call_s {rollout.llm_call_s:g} is above rollout.agent_s"
            f" {rollout.agent_s:g}: one call may outlast its episode's own time"
        )


def _of_cluster(cluster: ClusterConfig) -> Iterator[str]:
    idle = cluster.inference_gpus - cluster.engine_gpus
    if idle:
        yield (
            f"cluster: {cluster.engines} engines of {cluster.engine_tp} GPUs leave {idle} of"
            f" {cluster.inference_gpus} inference GPUs idle"
        )
    if cluster.megatron is not None:
        copies = cluster.training_gpus // cluster.megatron.replica
        yield (
            f"cluster.megatron: {cluster.training_gpus} training GPUs hold {copies} copies of the"
            f" policy, of {cluster.megatron.replica} each"
        )


def _of_policy(settings: Settings) -> Iterator[str]:
    if settings.policy.reference and not settings.objective.terms.kl:
        yield "policy.reference is named, and objective.terms.kl is 0: it is not used"
