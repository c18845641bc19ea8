# SPDX-License-Identifier: Apache-2.0
"""What a trial came to: its rewards and its faults, from Harbor's result *and* the ledger."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from harbor.models.trial.result import ExceptionInfo, TrialResult
from harbor.trial.trial import Trial

from envkit.fault import BudgetUse, Fault, Phase, RewardUnreadable, classify
from envkit.sandbox.ledger import Ledger

_ORDER: Final = tuple(Phase)


def result_of(trial: Trial | None) -> TrialResult | None:
    """What Harbor has of the trial, also where it did not come to return it."""
    try:
        return trial.result if trial else None
    except RuntimeError:
        return None  # it never began


def rewards_of(result: TrialResult | None) -> dict[str, float]:
    verdict = result.verifier_result if result else None
    found = verdict.rewards if verdict else None
    return {name: float(value) for name, value in (found or {}).items()}


def phase_of_crash(trial: Trial | None, book: Ledger) -> Phase:
    """What goes wrong once there is a verdict costs no reward."""
    found = result_of(trial)
    return Phase.STOP if found and found.verifier_result else book.phase


def faults_of(told: list[Fault], result: TrialResult | None, book: Ledger) -> tuple[Fault, ...]:
    """What decided first: what takes the reward away, in the order in which it struck.

    In one phase what the guard saw comes before what Harbor tells, which may be its consequence.
    """
    if result is None:
        return (*told, *book.faults)
    infos = [result.exception_info, *(s.exception_info for s in result.step_results or [])]
    told = told + [_told(info, result, book) for info in infos if info is not None]
    faults = [*book.faults, *told, *_unread(result)]
    return tuple(sorted(dict.fromkeys(faults), key=_precedence))


def _told(info: ExceptionInfo, result: TrialResult, book: Ledger) -> Fault:
    """Harbor's model refuses a reward that is not numbers by name with a bare ValidationError."""
    phase = _phase_at(result, info.occurred_at)
    if "validation error for VerifierResult" in info.exception_message:
        return classify(RewardUnreadable("the verifier's reward is not numbers by name"), phase)
    return classify(info.model_dump(), phase, use=_budget_use(result, book))


def _budget_use(result: TrialResult, book: Ledger) -> BudgetUse | None:
    """What used up the agent's time; the pauses of a replay stand for its model's tokens.

    A loop of ours keeps an account, calls that ran no command included, which then says all.
    """
    timer = result.agent_execution
    if timer is None or timer.started_at is None or timer.finished_at is None:
        return None
    spent = (timer.finished_at - timer.started_at).total_seconds()
    if book.own_s is not None:
        return BudgetUse(budget_s=spent, model_s=book.own_s, commands_s=0.0)
    return BudgetUse(
        budget_s=spent, model_s=book.seconds.get("think", 0.0), commands_s=book.commands_s
    )


def _precedence(fault: Fault) -> tuple[bool, int]:
    return fault.policy.reward_valid, _ORDER.index(fault.phase)


def _unread(result: TrialResult) -> list[Fault]:
    """A verdict without the one number that training reads is none."""
    verdict = result.verifier_result
    if verdict is None or "reward" in (verdict.rewards or {}):
        return []
    keys = ", ".join(verdict.rewards or {}) or "nothing"
    error = RewardUnreadable(f"the verifier wrote {keys}, but no 'reward'")
    return [classify(error, Phase.GRADE)]


def _phase_at(result: TrialResult, when: datetime) -> Phase:
    """Where Harbor's own exception was raised, by which of its timers had begun by then."""
    timers = (
        (Phase.GRADE, result.verifier),
        (Phase.ACT, result.agent_execution),
        (Phase.SETUP, result.agent_setup),
    )
    begun = (
        phase for phase, timer in timers if timer and timer.started_at and timer.started_at <= when
    )
    return next(begun, Phase.START)
