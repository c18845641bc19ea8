# SPDX-License-Identifier: Apache-2.0
"""A ``report.json`` read back: everything the page and the text of a report are made of.

Contract: the page made from what is read is the page that was made from the run. Records and specs
are not in a report file; the trials' own directories hold those.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import orjson

from envkit.fault import HarnessError
from envkit.preflight import course_json
from envkit.preflight.types import (
    SCHEMA,
    BrokenTask,
    Change,
    Comparison,
    Estimate,
    FailedTrial,
    FaultRow,
    Interval,
    Leftover,
    Level,
    Operation,
    Plan,
    Quantiles,
    Quarantined,
    Ramp,
    Reason,
    Report,
    Rewards,
    TaskRow,
    ToolRow,
    Verdict,
)

REPORT_NAME = "report.json"


def read_report(path: Path) -> Report:
    """A ``report.json``, or the directory that holds one.

    Raises:
        HarnessError: it cannot be read, is of another schema, or is malformed.
    """
    file = path / REPORT_NAME if path.is_dir() else path
    try:
        told: Any = orjson.loads(file.read_bytes())
    except OSError as error:
        raise HarnessError(f"{file}: {error.strerror}; name a directory of --report") from error
    except ValueError as error:
        raise HarnessError(f"{file}: is no JSON; name a directory of --report") from error
    schema = cast("dict[str, Any]", told).get("schema") if isinstance(told, dict) else None
    if schema != SCHEMA:
        raise HarnessError(f"{file}: schema is {schema!r}, this version reads {SCHEMA}")
    try:
        return from_json(cast("dict[str, Any]", told))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise HarnessError(
            f"{file}: {error!r}: written by an older version, or malformed; run it once more"
        ) from error


def from_json(told: Mapping[str, Any]) -> Report:
    """Read back `envkit.preflight.report_json.to_json`.

    Raises:
        KeyError, TypeError, ValueError, AttributeError: a field is missing or malformed.
    """
    return Report(
        verdict=Verdict(told["verdict"]),
        why=tuple(told["why"]),
        plan=_plan(told) if "agent" in told else None,
        trials=told["trials"],
        attempts=told["attempts"],
        peak_live=told["peak_live"],
        seconds=told["seconds"],
        rewards=Rewards(**told["rewards"], method=told["rewards_interval"]),
        faults=tuple(_fault_row(name, row) for name, row in told["faults"].items()),
        fault_rate=Interval(**told["fault_rate"]),
        phases={name: Quantiles(**row) for name, row in told["phases"].items()},
        cpu_s=told["cpu_s_by_part"],
        cpu_by_phase=told["cpu_s_by_phase"],
        shared_cpu_s=told["cpu_s_shared"],
        cpu_is_live=told["cpu_is_live"],
        peak_memory_mib=told["peak_memory_mib"],
        loop_stall_ms=_quantiles(told["loop_stall_ms"]) if told["loop_stall_ms"]["n"] else None,
        leaks=tuple(Leftover(**leak) for leak in told["leaked"]),
        failed=tuple(_failed(trial) for trial in told["failed"]),
        resumed=told["resumed"]["times"],
        cut_off=told["resumed"]["attempts_cut_off"],
        quarantine=tuple(_quarantined(task) for task in told["quarantine"]),
        ramp=_ramp(told["ramp"]) if told["ramp"] else None,
        comparison=_comparison(told["comparison"]) if told["comparison"] else None,
        estimate=_estimate(told["estimate"]) if told["estimate"] else None,
        course=course_json.from_json(told["course"]),
        tasks=tuple(_task(row) for row in told["tasks"]),
        tools=tuple(_tool(row) for row in told["tools"]),
        slowest=tuple(Operation(**operation) for operation in told["slowest"]),
    )


def _plan(told: Mapping[str, Any]) -> Plan:
    """What the report says of it; its trials are not among that."""
    return Plan(
        source=Path(told["source"]),
        specs=(),
        broken=tuple(
            BrokenTask(
                trial_id=task["task"],
                name=task["task"],
                dir=Path(task["dir"]),
                problems=tuple(task["problems"]),
            )
            for task in told["broken"]
        ),
        agent=told["agent"],
        env=told["env"],
        concurrency=told["concurrency"],
        out_dir=Path(),
        run_token=told["run_token"],
        seed=told["seed"],
        max_fault_rate=told["max_fault_rate"],
        rerun_of=Path(told["rerun_of"]) if told["rerun_of"] else None,
        chaos=Path(told["chaos"]) if told["chaos"] else None,
    )


def _fault_row(name: str, row: Mapping[str, Any]) -> FaultRow:
    example = row["example"]
    return FaultRow(
        code=name.removesuffix(f" ({row['owner']})"),
        owner=row["owner"],
        count=row["count"],
        retried=row["retried"],
        example_trial=example["trial"],
        example_attempt=example["attempt"],
        example_phase=example["phase"],
        example_message=example["message"],
    )


def _failed(trial: Mapping[str, Any]) -> FailedTrial:
    return FailedTrial(
        trial_id=trial["trial"],
        task=trial["task"],
        why=trial["why"],
        reproduce=trial["reproduce"],
        trial_dir=Path(trial["trial_dir"]),
        log_tail=tuple(trial["log_tail"]),
    )


def _quarantined(task: Mapping[str, Any]) -> Quarantined:
    return Quarantined(task=task["task"], reasons=tuple(_reason(each) for each in task["reasons"]))


def _reason(told: Mapping[str, Any]) -> Reason:
    return Reason(code=told["code"], message=told["message"], trials=tuple(told["trials"]))


def _ramp(told: Mapping[str, Any]) -> Ramp:
    return Ramp(
        levels=tuple(_level(level) for level in told["levels"]),
        knee=told["knee"],
        grows=told["grows"],
    )


def _level(told: Mapping[str, Any]) -> Level:
    """Of its trials a report tells the number."""
    same = {name: told[name] for name in Level.__slots__}
    fields: dict[str, Any] = {
        **same,
        "trials": ("",) * told["trials"],
        "trial_s": _quantiles(told["trial_s"]),
        "phases": {name: Quantiles(**row) for name, row in told["phases"].items()},
        "fault_rate": Interval(**told["fault_rate"]),
    }
    return Level(**fields)


def _comparison(told: Mapping[str, Any]) -> Comparison:
    return Comparison(
        baseline=told["baseline"], changes=tuple(_change(each) for each in told["changes"])
    )


def _change(told: Mapping[str, Any]) -> Change:
    fields: dict[str, Any] = {**told, "ratio": Interval(**told["ratio"])}
    return Change(**fields)


def _estimate(told: Mapping[str, Any]) -> Estimate:
    intervals = ("hours", "hours_async", "attempts", "invalid")
    fields: dict[str, Any] = {**told, **{name: Interval(**told[name]) for name in intervals}}
    return Estimate(**fields)


def _task(row: Mapping[str, Any]) -> TaskRow:
    rewards = tuple((reward, count) for reward, count in row["rewards"])
    fields: dict[str, Any] = {**row, "rewards": rewards, "seconds": _quantiles(row["seconds"])}
    return TaskRow(**fields)


def _tool(row: Mapping[str, Any]) -> ToolRow:
    fields: dict[str, Any] = {**row, "seconds": Quantiles(**row["seconds"])}
    return ToolRow(**fields)


def _quantiles(row: Mapping[str, Any] | None) -> Quantiles | None:
    return Quantiles(**row) if row else None
