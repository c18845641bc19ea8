# SPDX-License-Identifier: Apache-2.0
"""Bar 10: the scheduler: ``python -m nox -s bench -- bar10_scheduler``.

A run of 120 steps of 16 prompts and 16 samples is simulated with 550 slots, a step of 300 s and a
sync of 10 s, for 20 seeds, through the class that trains: at bounds of 0 (synchronous), 3 and 7,
and with 5 % of the attempts faulted and 2 % of them an hour long. Beside it, through the same
class, what is published: completion order behind a count gate of 3, the same with stale groups
dropped and offered again, strict order at 7, and completion order without a bound.

Lengths are lognormal, median 20,000, sigma 1, 60 % of their variance by prompt, clipped to 2,000 to
128,000; a trial takes 60 s and a second for 50 tokens. A sample's age is the version stepped from
less the one that sampled its first token, counted here and not by the scheduler, and so are tokens.
Length bias is of the mean sample of a step, against all samples of the run. A seed's first 160
prompts differ by some percent from all by chance; so it is also set against those.

Holds when no age is above its bound and, without faults, no token is lost; for every seed, steps an
hour are 5 times the synchronous ones at 7, 3.7 times at 3, and 0.85 of those without a bound at 7;
the bias of steps 1 to 10, at 3 and at 7, is within 6 %, on average against all samples and for
every seed against its first 160 prompts; and with faults no age is above its bound and, for every
seed, at most 3 % of the tokens are lost.
"""

from __future__ import annotations

import json
import statistics
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from parts.machine import machine

from rltrain.buffer.config import BufferConfig, OrderName
from rltrain.buffer.simulate import Lengths, Run, Setting, simulate

RESULTS = Path(__file__).resolve().parent / "results"
SEEDS = 20
STEPS = 120
EARLY = 10
FAULTS = {"fault_share": 0.05, "hang_share": 0.02}
ENDLESS = 10**6
MOST_BIAS, MOST_LOST = 0.06, 0.03
LEAST = {
    ("ours, 7", "synchronous"): 5.0,
    ("ours, 3", "synchronous"): 3.7,
    ("ours, 7", "no bound"): 0.85,
}


def setting(staleness: int, order: OrderName = "deadline", **more: Any) -> Setting:
    own = {} if order == "deadline" else {"head_start": 0}
    buffer = BufferConfig(staleness=staleness, order=order, **own)
    return Setting(buffer=buffer, steps=STEPS, **more)


SETTINGS = {
    "synchronous": setting(0),
    "ours, 3": setting(3),
    "ours, 7": setting(7),
    "ours, 3, faults": setting(3, **FAULTS),
    "ours, 7, faults": setting(7, **FAULTS),
    "no bound": setting(ENDLESS, "completion"),
    "count gate, 3": setting(3, "completion"),
    "drop stale, 3": setting(3, "drop_stale", again=True),
    "strict order, 7": setting(7, "strict"),
}
OURS = [name for name in SETTINGS if name.startswith(("ours", "synchronous"))]


def measured(name: str, seed: int) -> dict[str, Any]:
    """One run, whole enough to reckon every figure again."""
    given = replace(SETTINGS[name], seed=seed)
    lengths = given.drawn(Lengths())
    run = simulate(given, lengths)
    first = [each for group in lengths[: EARLY * given.prompts] for each in group]
    return {
        "seed": seed,
        "seconds": round(run.seconds, 1),
        "steps": len(run.steps),
        "population": round(run.population, 1),
        "first_offered": round(statistics.fmean(first), 1),
        "mean_tokens": [round(statistics.fmean(step.tokens)) for step in run.steps],
        "stalest": [max(step.staleness) for step in run.steps],
        "over": round(run.over, 5),
        "sampled": run.sampled,
        "trained": sum(sum(step.tokens) for step in run.steps),
        "short": sum(step.short for step in run.steps),
        "groups_dropped": run.dropped,
        "by": by(run),
    }


def by(run: Run) -> dict[str, Any]:
    """The scheduler's own account of losses, waits and ceilings."""
    ledger = run.ledger
    bound = {name: round(each / run.seconds, 3) for name, each in ledger.bound_s.items()}
    return {
        "tokens_lost": ledger.tokens_lost,
        "waited": round(ledger.waited_s / run.seconds, 3),
        "bound": bound,
        "slots_used": round(run.busy_slot_s / run.seconds / run.setting.slots, 3),
    }


def rate(row: dict[str, Any]) -> float:
    """Steps an hour."""
    return 3600 * row["steps"] / row["seconds"]


def bias(row: dict[str, Any], steps: int = EARLY, beside: str = "population") -> float:
    return statistics.fmean(row["mean_tokens"][:steps]) / row[beside] - 1


def lost(row: dict[str, Any]) -> float:
    return 1 - row["trained"] / row["sampled"]


def line(name: str, rows: list[dict[str, Any]]) -> str:
    def mean(of: list[float]) -> float:
        return statistics.fmean(of)

    early, first = [bias(each, 5) for each in rows], [bias(each) for each in rows]
    beside = [bias(each, beside="first_offered") for each in rows]
    rates, losses = [rate(each) for each in rows], [lost(each) for each in rows]
    return (
        f"{name:<16} {mean(rates):5.2f} steps/h (worst {min(rates):.2f}),"
        f" stalest {max(max(each['stalest']) for each in rows)},"
        f" over {mean([each['over'] for each in rows]):.1%},"
        f" lost {mean(losses):.2%} (worst {max(losses):.2%}),"
        f" bias 1-5 {mean(early):+.1%}, 1-10 {mean(first):+.1%}"
        f" (worst {max(first, key=abs):+.1%}; of what came first {mean(beside):+.1%},"
        f" worst {max(beside, key=abs):+.1%})"
    )


def ceilings(name: str, rows: list[dict[str, Any]]) -> str:
    """Which ceiling bound, and for which share of the time."""
    shares = {
        binds: statistics.fmean(each["by"]["bound"].get(binds, 0.0) for each in rows)
        for binds in ("slots", "staleness", "prompts")
    }
    used = statistics.fmean(each["by"]["slots_used"] for each in rows)
    waited = statistics.fmean(each["by"]["waited"] for each in rows)
    said = ", ".join(f"{binds} {share:.0%}" for binds, share in shares.items())
    return f"{name:<16} binds: {said}; slots used {used:.0%}; waited at the bound {waited:.0%}"


def ratios(rows: dict[str, list[dict[str, Any]]]) -> dict[tuple[str, str], list[float]]:
    """Of steps an hour, seed by seed."""
    return {
        (one, other): [rate(a) / rate(b) for a, b in zip(rows[one], rows[other], strict=True)]
        for one, other in LEAST
    }


def breaches(rows: dict[str, list[dict[str, Any]]]) -> list[str]:
    """Where the bar does not hold."""
    found: list[str] = []
    for name in OURS:
        bound, most = SETTINGS[name].buffer.staleness, max(max(r["stalest"]) for r in rows[name])
        worst = max(map(lost, rows[name]))
        if most > bound:
            found.append(f"{name}: an age of {most}")
        if worst > (MOST_LOST if "faults" in name else 0.0):
            found.append(f"{name}: {worst:.2%} of the tokens lost")
    for name in ("ours, 3", "ours, 7"):
        beside = (bias(each, beside="first_offered") for each in rows[name])
        for each in (statistics.fmean(map(bias, rows[name])), max(beside, key=abs)):
            if abs(each) > MOST_BIAS:
                found.append(f"{name}: bias {each:+.1%}")
    for (one, other), each in ratios(rows).items():
        if min(each) < LEAST[one, other]:
            found.append(f"{one} / {other}: {min(each):.3f}")
    return found


def main() -> int:
    rows: dict[str, list[dict[str, Any]]] = {name: [] for name in SETTINGS}
    for seed in range(SEEDS):
        for name, each in rows.items():
            each.append(measured(name, seed))
    for name, each in rows.items():
        print(line(name, each))
    for name, each in rows.items():
        print(ceilings(name, each))
    found = breaches(rows)
    result = {
        "what": f"{STEPS} steps simulated through the scheduler, {SEEDS} seeds a setting",
        "command": " ".join(["python", *sys.argv]),
        "machine": machine(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "breaches": found,
        "runs": rows,
    }
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / "bar10_scheduler.json"
    path.write_text(json.dumps(result) + "\n")
    print(f"{'; '.join(found) or 'holds'}: {path.relative_to(RESULTS.parent.parent)}")
    for (one, other), each in ratios(rows).items():
        mean, least = statistics.fmean(each), LEAST[one, other]
        print(f"{one} / {other}: {mean:.3f} (worst seed {min(each):.3f}, at least {least})")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
