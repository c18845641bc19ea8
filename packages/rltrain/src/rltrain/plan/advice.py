# SPDX-License-Identifier: Apache-2.0
"""What a person in a hurry can act on: what binds, by how much, and what to change.

Contract: every number in it is of the plan. It says nothing of what differs by less than
``WORTH``.
"""

from __future__ import annotations

from typing import Final

from rltrain.plan.plan import Plan, Row

WORTH: Final = 0.05
"""Of steps an hour, or of the trainer's time; less is within what a simulation wavers by."""


def advice(plan: Plan) -> str:
    """One sentence."""
    return f"{_bound(plan)}; {_change(plan)}."


def _bound(plan: Plan) -> str:
    asked, kv, staleness = plan.concurrency, plan.own.kv.ceiling, plan.staleness
    running = round(plan.own.went.running)
    match plan.binds:
        case "staleness":
            return (
                f"staleness binds: {running} of {asked} slots fill, since S ="
                f" {plan.asked.tables.buffer.staleness} lets no more trials be under way; KV memory"
                f" would hold {kv}"
            )
        case "kv":
            return (
                f"KV memory binds: it holds {kv} of the {asked} trials asked for, and more only"
                " evict each other's caches"
            )
        case _:
            return (
                f"slots bind: {asked} are asked for, KV memory would hold {kv} and staleness lets"
                f" {staleness} be under way"
            )


def _change(plan: Plan) -> str:
    faster = _faster(plan)
    parts = [_trainer(plan.own)]
    if faster is not None:
        more = plan.steps_per_h(faster) / plan.steps_per_h(plan.own) - 1
        parts.append(f"{faster.split.name} would take {more:.0%} more steps an hour")
    elif plan.own.went.waiting < WORTH:
        parts.append("only a faster trainer would take more steps")
    elif plan.binds == "slots" and plan.useful > (1 + WORTH) * plan.concurrency:
        parts.append(f"rollout.concurrency = {plan.useful} is worth a try")
    elif plan.binds == "kv":
        parts.append(f"rollout.concurrency = {plan.own.kv.ceiling} is all that it is good for")
    else:
        parts.append("no other row takes more steps by more than a simulation wavers")
    return ", and ".join(parts)


def _faster(plan: Plan) -> Row | None:
    """The fastest of no more nodes, if that is worth a change."""
    nodes = _nodes(plan.own)
    others = [row for row in plan.rows if _nodes(row) <= nodes]
    best = max(others, key=plan.steps_per_h)
    worth = plan.steps_per_h(best) > (1 + WORTH) * plan.steps_per_h(plan.own)
    return best if worth else None


def _nodes(row: Row) -> int:
    return row.split.cluster.inference_nodes + row.split.cluster.training_nodes


def _trainer(row: Row) -> str:
    if row.went.waiting < WORTH:
        return f"the trainer works {row.went.training:.0%} of the time"
    return f"the trainer waits for a batch {row.went.waiting:.0%} of the time"
