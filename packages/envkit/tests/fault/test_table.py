# SPDX-License-Identifier: Apache-2.0
"""The policy table against the installed Harbor's."""

import builtins
from importlib.metadata import version
from typing import Any

import pytest
from harbor.models.job.config import JobConfig
from harbor.models.trial import error_policy as harbor

from envkit.deadline import DeadlineExceeded
from envkit.fault import Owner, Phase, SandboxError, error_policy_overrides
from envkit.fault.table import TABLE, row_by_name, row_of
from envkit.fault.types import FINAL

type Answer = tuple[bool, bool, bool]


def harbor_answer(policy: Any) -> Answer:
    """Harbor's three facts, under the names of either minor."""
    if hasattr(policy, "should_retry"):
        return policy.should_retry, policy.should_grade, policy.has_valid_reward
    return policy.retry, policy.grade, policy.reward_valid


def ours(name: str) -> Answer:
    policy = row_by_name(name).policy
    return policy.retry, policy.grade, policy.reward_valid


def test_every_name_of_the_installed_harbor_is_in_the_table() -> None:
    assert set(harbor.ERROR_POLICIES) <= set(TABLE)
    assert len(harbor.ERROR_POLICIES) >= 57


@pytest.mark.parametrize("name", sorted(harbor.ERROR_POLICIES))
def test_a_row_that_answers_otherwise_than_harbor_says_why(name: str) -> None:
    if ours(name) != harbor_answer(harbor.ERROR_POLICIES[name]):
        assert any(row.why for row in TABLE[name]), name


def test_only_the_differences_we_mean_are_there() -> None:
    policies = harbor.ERROR_POLICIES.items()
    differing = {name for name, policy in policies if ours(name) != harbor_answer(policy)}
    meant = {"AgentTimeoutError", "NonZeroAgentExitCodeError", "NotFoundError"}
    assert {"AgentTimeoutError", "NotFoundError"} <= differing <= meant


def test_no_name_is_a_valid_reward_here_and_an_invalid_one_in_harbor() -> None:
    for name, policy in harbor.ERROR_POLICIES.items():
        assert not (row_by_name(name).policy.reward_valid and not harbor_answer(policy)[2]), name


def test_harbor_fed_with_our_overrides_gives_our_answers() -> None:
    overrides = error_policy_overrides()
    if "override_error_policy" not in JobConfig.model_fields:
        assert version("harbor").startswith("0.25."), "only Harbor 0.25 cannot be overridden"
        return
    config = JobConfig.model_validate({"override_error_policy": overrides})
    for name in {*TABLE, *harbor.ERROR_POLICIES}:
        override = config.override_error_policy[name]
        assert harbor_answer(harbor.policy_for(name, override)) == ours(name), name


def test_no_builtin_exception_is_left_to_harbor_as_a_valid_reward() -> None:
    overrides = error_policy_overrides()
    values = [value for value in vars(builtins).values() if isinstance(value, type)]
    for value in values:
        if issubclass(value, BaseException):
            assert overrides[value.__name__]["has_valid_reward"] is False, value.__name__


def test_harbor_is_told_of_every_error_of_ours_and_of_those_who_build_on_it() -> None:
    class ShelfError(SandboxError):
        policy = FINAL

    overrides = error_policy_overrides()
    assert overrides["ShelfError"]["should_retry"] is False
    assert not overrides["ShelfError"]["has_valid_reward"]
    assert not overrides[DeadlineExceeded.__name__]["has_valid_reward"]
    assert overrides["OutOfMemory"] == {
        "should_retry": False,
        "should_grade": True,
        "has_valid_reward": True,
    }


def test_rows_of_one_name_are_told_apart_by_module() -> None:
    modal, litellm = row_of("modal.exception.NotFoundError"), row_of("litellm.NotFoundError")
    assert modal is not None
    assert litellm is not None
    assert (modal.owner_in(Phase.ACT), modal.policy.retry) == (Owner.SANDBOX, True)
    assert (litellm.owner_in(Phase.ACT), litellm.policy.retry) == (Owner.ENGINE, False)
    assert row_of("somewhere.else.NotFoundError") is None


def test_a_valid_reward_is_granted_only_to_classes_of_known_packages() -> None:
    for name, rows in TABLE.items():
        assert all(row.modules for row in rows if row.policy.reward_valid), name


def test_only_the_models_own_faults_are_valid() -> None:
    for name, rows in TABLE.items():
        for row in rows:
            assert row.policy.reward_valid == (row.owner is Owner.MODEL), name
