# SPDX-License-Identifier: Apache-2.0
"""A plan as JSON, its schema named.

Contract: whatever is shown anywhere is in it; what has no number is null.
"""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any, Final

from rltrain.plan.advice import advice
from rltrain.plan.assumptions import GIB, flat
from rltrain.plan.plan import Plan, Row

SCHEMA: Final = "rltrain.plan/1"


def document(plan: Plan) -> dict[str, Any]:
    """All of it."""
    tables = plan.asked.tables
    return {
        "schema": SCHEMA,
        "recipe": plan.asked.name,
        "advice": advice(plan),
        "binds": plan.binds,
        "ceilings": {
            "concurrency": plan.concurrency,
            "kv": plan.own.kv.ceiling,
            "kv_interval": [plan.interval.low, plan.interval.high],
            "kv_spread": list(plan.interval.spread),
            "kv_at_full_context": plan.own.kv.sure(tables.rollout.context_tokens),
            "staleness": plan.staleness,
            "staleness_whole": tables.ceiling,
            "useful": plan.useful,
        },
        "kv": _kv(plan),
        "published": _published(plan),
        "trials": {"source": plan.population.source, **_trials(plan)},
        "calibrated": _calibrated(plan),
        "rows": [_row(plan, row) for row in plan.rows],
        "assumptions": flat(plan.asked.told),
        "set": sorted(plan.asked.fixed),
        "seed": plan.asked.seed,
    }


def _kv(plan: Plan) -> dict[str, Any]:
    found = plan.own.kv
    tokens = found.tokens if math.isfinite(found.tokens) else None
    return {
        "weights_gib_a_gpu": found.layout.weights / GIB,
        "room_gib_a_gpu": found.room / GIB,
        "bytes_a_token_a_gpu": found.layout.token,
        "state_bytes_a_gpu": found.layout.state,
        "tokens_an_engine": tokens,
        "tokens": tokens and tokens * found.engines,
        "mean_live_tokens": found.live,
        "footprint_bytes_a_gpu": found.footprint,
    }


def _published(plan: Plan) -> dict[str, Any] | None:
    told = plan.asked.published
    if told is None:
        return None
    return {
        "concurrency": told.concurrency,
        "contained": plan.interval.contains(told.concurrency),
        "mean_live_tokens": plan.own.kv.live_of(told.concurrency),
    }


def _trials(plan: Plan) -> dict[str, float]:
    names = ("tokens", "prompt", "sampled", "waits_s")
    return {f"mean_{name}": plan.population.mean(name) for name in names}


def _calibrated(plan: Plan) -> dict[str, Any] | None:
    found = plan.asked.calibration
    if found is None:
        return None
    names = ("steps_per_h", "running", "sampling", "training", "slow")
    measured = {name: getattr(found, name) for name in names}
    return {"run": str(found.run), "factor": plan.factor, **measured}


def _row(plan: Plan, row: Row) -> dict[str, Any]:
    return {
        "split": row.split.name,
        "own": row.split.own,
        "inference_nodes": row.split.cluster.inference_nodes,
        "training_nodes": row.split.cluster.training_nodes,
        "engines": row.split.cluster.engines,
        "concurrency": row.split.concurrency,
        "staleness_bound": row.split.staleness,
        "slots": row.slots,
        "kv": row.kv.ceiling,
        "slot_use": row.went.running / row.split.concurrency,
        **asdict(row.went),
        "steps_per_h": plan.steps_per_h(row),
    }
