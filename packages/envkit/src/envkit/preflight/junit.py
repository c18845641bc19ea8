# SPDX-License-Identifier: Apache-2.0
"""A report as JUnit XML, as build systems read it.

Contract: one ``testcase`` a trial, and one for the gate, so that a breach that is no trial's (a
leak, a concurrency never reached) is red as well. A ``failure`` is a reward that its agent must
not earn; an ``error`` is a trial without a valid reward. Text from outside loses the characters
that XML cannot hold.
"""

from __future__ import annotations

from typing import Final
from xml.etree import ElementTree as ET

from envkit.preflight.failed import is_failed
from envkit.preflight.gate import wrong_reward
from envkit.preflight.markup import FORBIDDEN
from envkit.preflight.types import FailedTrial, Report, Verdict
from envkit.trial.record import TrialRecord

SUITE: Final = "envkit.preflight"
GATE: Final = "gate"


def to_junit(report: Report) -> bytes:
    """The whole document, UTF-8."""
    failed = {trial.trial_id: trial for trial in report.failed}
    cases = [_case(record, report, failed.get(record.trial_id)) for record in report.records]
    cases.append(_gate(report))
    counts = {
        kind: str(sum(case.find(tag) is not None for case in cases))
        for kind, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped"))
    }
    suite = _el("testsuite", name=SUITE, tests=str(len(cases)), **counts, time=_s(report.seconds))
    suite.append(_properties(_run(report)))
    suite.extend(cases)
    root = _el("testsuites", name=SUITE, tests=str(len(cases)), **counts, time=_s(report.seconds))
    root.append(suite)
    ET.indent(root)
    return ET.tostring(root, encoding="utf-8", xml_declaration=True) + b"\n"


def _case(record: TrialRecord, report: Report, failed: FailedTrial | None) -> ET.Element:
    case = _el(
        "testcase",
        classname=f"{SUITE}.{_dotless(record.task)}",
        name=record.trial_id,
        time=_s(record.seconds),
    )
    case.append(_properties(_trial(record)))
    if failed is None or report.plan is None or not is_failed(report.plan, record):
        return case
    if wrong_reward(record):
        case.append(_outcome("failure", failed.why, "WrongReward", failed.reproduce))
    elif not record.reward_valid:
        kind = record.fault.code if record.fault else "NoReward"
        case.append(_outcome("error", failed.why, kind, failed.reproduce))
    else:  # run again, or a fault after the reward: the reward stands, the fault is told
        out = _el("system-out")
        out.text = _plain(failed.why)
        case.append(out)
    if failed.log_tail:
        log = _el("system-err")
        log.text = _plain("\n".join(failed.log_tail))
        case.append(log)
    return case


def _gate(report: Report) -> ET.Element:
    case = _el("testcase", classname=SUITE, name=GATE, time=_s(report.seconds))
    lines = "\n".join(report.why)
    match report.verdict:
        case Verdict.FAIL:
            case.append(_outcome("failure", report.why[0], "GateBreached", lines))
        case Verdict.COULD_NOT_RUN:
            case.append(_outcome("error", report.why[0], "CouldNotRun", lines))
        case Verdict.INTERRUPTED:
            case.append(_el("skipped", message=report.why[0]))
        case Verdict.PASS:
            pass
    return case


def _run(report: Report) -> dict[str, object]:
    plan = report.plan
    planned: dict[str, object] = (
        {"agent": plan.agent, "env": plan.env, "concurrency": plan.concurrency, "seed": plan.seed}
        if plan
        else {}
    )
    return {
        "verdict": report.verdict.value,
        **planned,
        "attempts": report.attempts,
        "peak_live": report.peak_live,
        "mean_reward": report.rewards.mean,
        "fault_rate": report.fault_rate.value,
        "peak_memory_mib": report.peak_memory_mib,
    }


def _trial(record: TrialRecord) -> dict[str, object]:
    return {
        "sample": record.sample,
        "agent": record.agent,
        "reward": record.reward,
        "reward_valid": str(record.reward_valid).lower(),
        "attempts": len(record.attempts),
        "cpu_s": round(sum(sum(a.cpu_s.values()) for a in record.attempts), 3),
        **({"fault_owner": record.fault.owner.value} if record.fault else {}),
    }


def _properties(values: dict[str, object]) -> ET.Element:
    """Those that were measured."""
    found = _el("properties")
    for name, value in values.items():
        if value is not None:
            found.append(_el("property", name=name, value=str(value)))
    return found


def _outcome(tag: str, message: str, kind: str, text: str) -> ET.Element:
    outcome = _el(tag, message=message, type=kind)
    outcome.text = _plain(text)
    return outcome


def _el(tag: str, **attributes: str) -> ET.Element:
    return ET.Element(tag, {name: _plain(value) for name, value in attributes.items()})


def _plain(text: str) -> str:
    return FORBIDDEN.sub("", text)


def _dotless(task: str) -> str:
    """Build systems take a dot for a package's end."""
    return task.replace(".", "_")


def _s(seconds: float) -> str:
    return f"{seconds:.3f}"
