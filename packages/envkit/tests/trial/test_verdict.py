# SPDX-License-Identifier: Apache-2.0
"""Which of several faults decided."""

import itertools

import pytest
from harbor.models.trial.result import TrialResult

from envkit.deadline import DEFAULT_BUDGETS
from envkit.fault import EnvkitError, SandboxDied, ServerDisconnected, ServerStartFailed
from envkit.sandbox import ledger
from envkit.trial.verdict import faults_of

NOTHING = TrialResult.model_construct(
    exception_info=None, step_results=None, verifier_result=None, agent_execution=None
)


def decided(*errors: EnvkitError) -> list[str]:
    book = ledger.begin(lambda _: None, DEFAULT_BUDGETS)
    book.enter("act")
    for error in errors:
        book.note(error)
    return [fault.code for fault in faults_of([], NOTHING, book)]


@pytest.mark.parametrize(
    "errors",
    list(itertools.permutations([ServerDisconnected("gone"), ServerStartFailed("reset")])),
)
def test_a_server_that_took_no_first_connection_was_not_lost(errors: list[EnvkitError]) -> None:
    assert decided(*errors) == ["ServerStartFailed", "ServerDisconnected"]


def test_other_faults_of_a_phase_stand_in_the_order_in_which_they_struck() -> None:
    codes = ["ServerDisconnected", "SandboxDied"]
    assert decided(ServerDisconnected("gone"), SandboxDied("gone")) == codes
    assert decided(SandboxDied("gone"), ServerDisconnected("gone")) == codes[::-1]
