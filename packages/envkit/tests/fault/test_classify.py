# SPDX-License-Identifier: Apache-2.0
"""Whose a fault is, live and stored, in every phase and wrapping."""

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping

import pytest
from harbor.trial.errors import AgentTimeoutError, EnvironmentStartTimeoutError

from envkit.deadline import DeadlineExceeded
from envkit.fault import (
    UNKNOWN_POLICY,
    BudgetUse,
    EndlessCommand,
    EnvkitError,
    Fault,
    OutOfMemory,
    Owner,
    Phase,
    SandboxDied,
    ServerDisconnected,
    VerifierCrashed,
    classify,
)
from envkit.fault.table import OPERATIONS, TABLE

type Stored = Callable[[BaseException], Mapping[str, object]]
type Foreign = Callable[..., type[BaseException]]

EVIDENCE = BudgetUse(budget_s=600.0, model_s=500.0, commands_s=80.0)
WAITED = BudgetUse(budget_s=600.0, model_s=60.0, commands_s=10.0)


class ToolboxError(ServerDisconnected):
    """A class of somebody who builds on envkit."""


def raised(error: BaseException) -> BaseException:
    try:
        raise error
    except BaseException as caught:
        return caught


def caused(outer: BaseException, inner: BaseException) -> BaseException:
    try:
        raise outer from raised(inner)
    except BaseException as caught:
        return caught


def during(outer: BaseException, inner: BaseException) -> BaseException:
    try:
        try:
            raise inner
        except BaseException:
            raise outer  # noqa: B904 - what was being handled is the point
    except BaseException as caught:
        return caught


def expired() -> BaseException:
    async def wait() -> None:
        await asyncio.wait_for(asyncio.get_running_loop().create_future(), 0)

    try:
        asyncio.run(wait())
    except TimeoutError as error:
        return error
    raise AssertionError


WRAPPINGS: dict[str, Callable[[BaseException], BaseException]] = {
    "bare": lambda error: error,
    "raised": raised,
    "cause of an unknown": lambda error: caused(RuntimeError("step 3 failed"), error),
    "handled under an unknown": lambda error: during(KeyError("slot"), error),
    "cause of a harbor wrapper": lambda error: caused(EnvironmentStartTimeoutError("no"), error),
    "alone in a group": lambda error: raised(ExceptionGroup("tasks", [raised_(error)])),
    "in a group with a cancelled": lambda error: raised(
        BaseExceptionGroup("tasks", [asyncio.CancelledError(), error])
    ),
    "in a group in a group under a cause": lambda error: caused(
        RuntimeError("x"), ExceptionGroup("a", [ExceptionGroup("b", [raised_(error)])])
    ),
    "twice wrapped": lambda error: caused(ValueError("a\nb"), caused(OSError(5, "io"), error)),
}


def raised_(error: BaseException) -> Exception:
    assert isinstance(error, Exception)
    return error


def samples() -> Iterator[BaseException]:
    def below(cls: type[EnvkitError]) -> Iterator[type[EnvkitError]]:
        for child in cls.__subclasses__():
            yield child
            yield from below(child)

    for cls in below(EnvkitError):
        texts = 3 if cls.__module__ == "envkit.trajectory.errors" else 1  # row, field, problem
        made = ("op", 1.0) if cls is DeadlineExceeded else ("what, where\n  what to do",) * texts
        yield cls(*made)
    yield from (DeadlineExceeded(op, 30.0) for op in [*OPERATIONS, "nobody_knows"])
    yield from (TimeoutError(), ConnectionResetError("peer"), MemoryError(), OSError(28, "full"))
    yield from (KeyError("k"), AgentTimeoutError("after 5 s"), EnvironmentStartTimeoutError("x"))
    for name, rows in TABLE.items():
        for row in rows:
            for module in row.modules or ("some.library",):
                cls = type(name, (Exception,), {"__module__": f"{module}.exceptions"})
                yield cls("text") if module != "envkit" else RuntimeError("taken above")


@pytest.mark.parametrize("wrapping", WRAPPINGS)
def test_a_live_exception_and_its_stored_record_get_the_same_answer(
    wrapping: str, stored: Stored
) -> None:
    for sample in samples():
        error = WRAPPINGS[wrapping](sample)
        record = stored(error)
        for phase in Phase:
            assert classify(error, phase) == classify(record, phase), (wrapping, sample, phase)


@pytest.mark.parametrize(
    ("error", "phase", "owner", "code"),
    [
        (SandboxDied("x"), Phase.ACT, Owner.SANDBOX, "SandboxDied"),
        (SandboxDied("x"), Phase.GRADE, Owner.SANDBOX, "SandboxDied"),
        (ToolboxError("x"), Phase.ACT, Owner.SERVER, "ToolboxError"),
        (DeadlineExceeded("mcp_call", 9), Phase.ACT, Owner.SERVER, "DeadlineExceeded:mcp_call"),
        (DeadlineExceeded("judge", 9), Phase.GRADE, Owner.JUDGE, "DeadlineExceeded:judge"),
        (DeadlineExceeded("odd", 9), Phase.ACT, Owner.UNKNOWN, "DeadlineExceeded:odd"),
        (OutOfMemory("x"), Phase.ACT, Owner.MODEL, "OutOfMemory"),
        (OutOfMemory("x"), Phase.GRADE, Owner.VERIFIER, "OutOfMemory"),
        (EndlessCommand("x"), Phase.START, Owner.SANDBOX, "EndlessCommand"),
        (VerifierCrashed("x"), Phase.GRADE, Owner.VERIFIER, "VerifierCrashed"),
        (TimeoutError(), Phase.ACT, Owner.UNKNOWN, "TimeoutError"),
        (ConnectionResetError(), Phase.ACT, Owner.UNKNOWN, "ConnectionResetError"),
        (ConnectionResetError(), Phase.COLLECT, Owner.SANDBOX, "ConnectionResetError"),
        (asyncio.CancelledError(), Phase.ACT, Owner.CANCELLED, "CancelledError"),
        (KeyboardInterrupt(), Phase.RUN, Owner.CANCELLED, "KeyboardInterrupt"),
        (EnvironmentStartTimeoutError("x"), Phase.START, Owner.SANDBOX, None),
        (ValueError("x"), Phase.ACT, Owner.UNKNOWN, "ValueError"),
    ],
)
def test_owner_and_code(
    error: BaseException, phase: Phase, owner: Owner, code: str | None, stored: Stored
) -> None:
    for fault in (classify(error, phase), classify(stored(error), phase)):
        assert fault.owner is owner
        assert fault.code == (code or type(error).__name__)
        assert fault.message == str(error)


@pytest.mark.parametrize("phase", [phase for phase in Phase if phase is not Phase.STOP])
def test_an_unknown_error_is_tried_again_graded_invalid_and_loud(
    phase: Phase, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, logger="envkit.fault"):
        fault = classify(ZeroDivisionError("div"), phase)
    assert (fault.owner, fault.policy) == (Owner.UNKNOWN, UNKNOWN_POLICY)
    assert not fault.policy.reward_valid
    assert "ZeroDivisionError" in caplog.text


def test_a_fault_of_the_teardown_never_takes_a_reward_away() -> None:
    for sample in samples():
        policy = classify(sample, Phase.STOP).policy
        assert (policy.retry, policy.reward_valid) == (False, True), sample
    assert classify(DeadlineExceeded("stop", 30), Phase.RUN).policy.reward_valid


def test_what_the_model_caused_is_valid_only_where_the_model_acts() -> None:
    valid = {phase for phase in Phase if classify(OutOfMemory("x"), phase).policy.reward_valid}
    assert valid == {Phase.ACT, Phase.COLLECT, Phase.RUN, Phase.STOP}


def test_an_agent_timeout_is_the_models_only_on_evidence() -> None:
    error = caused(AgentTimeoutError("Agent execution timed out after 600 seconds"), expired())
    assert not classify(error, Phase.ACT).policy.reward_valid
    assert not classify(error, Phase.ACT, use=WAITED).policy.reward_valid
    fault = classify(error, Phase.ACT, use=EVIDENCE)
    assert (fault.owner, fault.policy.reward_valid) == (Owner.MODEL, True)


@pytest.mark.parametrize("op", ["gateway_start", "mcp_connect", "mcp_list"])
def test_time_that_loading_the_tools_took_is_the_servers_and_no_timeout_of_the_agent(
    op: str,
) -> None:
    fault = classify(DeadlineExceeded(op, 60.0), Phase.ACT, use=EVIDENCE)
    assert (fault.owner, fault.code) == (Owner.SERVER, f"DeadlineExceeded:{op}")
    assert not fault.policy.reward_valid


def test_evidence_makes_nothing_but_an_agent_timeout_valid() -> None:
    for error in (TimeoutError(), ServerDisconnected("x"), ValueError("x")):
        assert not classify(error, Phase.ACT, use=EVIDENCE).policy.reward_valid


def test_an_inner_timeout_that_harbor_renamed_belongs_to_what_it_came_from(stored: Stored) -> None:
    inner = caused(TimeoutError(), ServerDisconnected("gateway gone"))
    error = caused(AgentTimeoutError("Agent execution timed out after None seconds"), inner)
    fault = classify(stored(error), Phase.ACT)
    assert (fault.owner, fault.code) == (Owner.SERVER, "ServerDisconnected")
    assert "AgentTimeoutError" in fault.message


def test_a_sandbox_that_is_gone_is_not_a_model_that_is_not_there(
    foreign: Foreign, stored: Stored
) -> None:
    for module, owner in (("modal.exception", Owner.SANDBOX), ("litellm.exceptions", Owner.ENGINE)):
        error = foreign("NotFoundError", module)("not found")
        assert classify(error, Phase.ACT).owner is owner
        assert classify(stored(error), Phase.ACT).owner is owner
        assert classify(error, Phase.ACT).policy.retry is (owner is Owner.SANDBOX)


def test_a_borrowed_name_is_not_the_models(foreign: Foreign, stored: Stored) -> None:
    for name in ("OutOfMemory", "DeadlineExceeded", "ContextWindowExceededError", "ModelFault"):
        error = foreign(name, "some.library")("mcp_call did not finish within 3 s")
        for fault in (classify(error, Phase.ACT), classify(stored(error), Phase.ACT)):
            assert fault.owner is Owner.UNKNOWN
            assert not fault.policy.reward_valid


def test_a_name_without_a_module_is_answered_as_harbor_can_see_it() -> None:
    record = {"exception_type": "NotFoundError", "exception_message": "x"}
    record["exception_traceback"] = "NoneType: None\n"
    assert classify(record, Phase.ACT).owner is Owner.UNKNOWN
    record["exception_type"] = "SandboxBuildFailedError"
    assert classify(record, Phase.ACT).owner is Owner.SANDBOX


@pytest.mark.parametrize("record", [{}, {"exception_type": None}, {"exception_traceback": "\n\n"}])
def test_a_broken_record_is_unknown(record: Mapping[str, object]) -> None:
    fault = classify(record, Phase.ACT)
    assert (fault.owner, fault.policy) == (Owner.UNKNOWN, UNKNOWN_POLICY)


def test_a_bug_while_handling_the_models_fault_is_not_the_models(stored: Stored) -> None:
    handled = during(AttributeError("bug"), OutOfMemory("x"))
    assert not classify(stored(handled), Phase.ACT).policy.reward_valid
    said = caused(RuntimeError("the command failed"), OutOfMemory("x"))
    assert classify(stored(said), Phase.ACT).owner is Owner.MODEL


def test_one_doubt_in_a_group_makes_it_invalid(stored: Stored) -> None:
    both = ExceptionGroup("g", [OutOfMemory("x"), ValueError("y")])
    known = ExceptionGroup("g", [OutOfMemory("x"), ValueError("y"), SandboxDied("z")])
    only = ExceptionGroup("g", [OutOfMemory("x"), ExceptionGroup("h", [EndlessCommand("y")])])
    assert classify(stored(both), Phase.ACT).owner is Owner.UNKNOWN
    assert classify(stored(known), Phase.ACT).code == "SandboxDied"
    assert classify(stored(only), Phase.ACT).policy.reward_valid


def test_a_message_cannot_pass_itself_off_as_another_class(stored: Stored) -> None:
    forged = (
        "x\n\nThe above exception was the direct cause of the following exception:\n\n"
        "Traceback (most recent call last):\nenvkit.fault.errors.OutOfMemory: mine"
    )
    for error in (ValueError(forged), SandboxDied(forged)):
        for fault in (classify(error, Phase.ACT), classify(stored(error), Phase.ACT)):
            assert fault.code == type(error).__name__
            assert not fault.policy.reward_valid


def test_an_exception_without_readable_text_is_classified_all_the_same() -> None:
    class Mute(ConnectionResetError):
        def __str__(self) -> str:
            raise ValueError

    assert classify(Mute(), Phase.ACT).code == "Mute"


def test_a_fault_survives_json() -> None:
    for sample in samples():
        fault = classify(sample, Phase.ACT)
        assert Fault.from_dict(fault.to_dict()) == fault
