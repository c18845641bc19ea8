# SPDX-License-Identifier: Apache-2.0
"""Speeds of an engine and of a trainer, reckoned from their hardware and the model.

Contract: what was told is taken as it was told; the rest follows from the assumptions. A decoding
step reads the weights that it meets and every sequence's cache from memory; what is read, sampled
and trained on costs FLOPs. Communication is in ``launch_s`` and in the shares that are reached.
"""

from __future__ import annotations

from dataclasses import replace

from rltrain.batch.cost import Cost
from rltrain.batch.modelcost import Config, cost_of, experts_of, need, text_of
from rltrain.cluster.config import ClusterConfig
from rltrain.plan.assumptions import GPUS, Assumptions
from rltrain.plan.memory import expert_parameters, layout
from rltrain.plan.speed import Engine, Trainer, trained


def engine_of(config: Config, told: Assumptions, cluster: ClusterConfig, live: float) -> Engine:
    """As it was told, or reckoned: a step reads the weights that it meets and every sequence's
    cache, and what is read and sampled costs FLOPs."""
    engine = told.engine
    reckoned = _on_gpus if cluster.gpus_per_node else _on_cpus
    if None not in (engine.step_s, engine.sequence_s, engine.prefill_s):
        reckoned = _unreckoned
    found = reckoned(config, told, cluster, live)
    step_s = found.step_s if engine.step_s is None else engine.step_s
    return replace(
        found,
        step_s=step_s,
        experts_s=found.experts_s if engine.step_s is None else 0.0,
        sequence_s=found.sequence_s if engine.sequence_s is None else engine.sequence_s,
        read_s=found.read_s if engine.prefill_s is None else engine.prefill_s,
        threads=engine.threads,
    )


def _unreckoned(*_: object) -> Engine:
    return Engine(step_s=0.0, sequence_s=0.0, read_s=0.0)


def _on_cpus(config: Config, told: Assumptions, _cluster: ClusterConfig, _live: float) -> Engine:
    token_s = cost_of(config).a / (told.engine.cpu_gflops * 1e9)
    return Engine(step_s=told.engine.launch_s, sequence_s=token_s, read_s=token_s)


def _on_gpus(config: Config, told: Assumptions, cluster: ClusterConfig, live: float) -> Engine:
    gpu, memory, cost = GPUS[told.gpu], told.memory, cost_of(config)
    found = layout(config, cluster.engine_tp, memory)
    bandwidth = gpu.bandwidth_gb_s * 1e9 * told.engine.bandwidth
    flops = gpu.tflops * 1e12 * told.engine.mfu * cluster.engine_tp
    experts = expert_parameters(config) * memory.weight_bytes / cluster.engine_tp / bandwidth
    token = (cost.a + 2 * cost.b * live) / flops
    return Engine(
        step_s=told.engine.launch_s + found.weights / bandwidth - experts,
        experts_s=experts,
        passed=_passed(config),
        sequence_s=found.looked_at(live) / bandwidth + token,
        read_s=token,
    )


def _passed(config: Config) -> float:
    text = text_of(config)
    experts = experts_of(text)
    return 1 - need(text, "num_experts_per_tok") / experts if experts else 0.0


def trainer_of(
    config: Config, assumed: Assumptions, cluster: ClusterConfig, *, again: bool
) -> Trainer:
    """As it was told, or by FLOPs; ``again``: activations are made once more in backward."""
    told = assumed.trainer
    flops = told.cpu_gflops * 1e9
    if cluster.gpus_per_node:
        flops = GPUS[assumed.gpu].tflops * 1e12 * told.mfu * cluster.training_gpus
    cost = Cost(a=told.token_s or 0.0, b=0.0)
    if told.token_s is None:
        cost = trained(cost_of(config), flops, again=again)
    return Trainer(
        fixed_s=told.fixed_s,
        token_s=cost.a,
        pair_s=cost.b,
        sync_s=told.sync_s,
        threads=told.threads,
    )
