# SPDX-License-Identifier: Apache-2.0
"""Every error class we know by name and module, and what follows from it.

A superset of the names in the installed Harbor's ``harbor.models.trial.error_policy`` (a test
compares them) without importing Harbor. Harbor looks at the bare name alone and takes a name it
does not know for a valid reward; here a name that several libraries use is told apart by its
module, and a name nobody claims is invalid. Rows that answer otherwise than Harbor say why.
"""

import builtins
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from envkit.fault.errors import EnvkitError
from envkit.fault.types import (
    FINAL,
    FINAL_GRADED,
    RERUN,
    RERUN_GRADED,
    UNKNOWN_POLICY,
    VALID,
    Owner,
    Phase,
    Policy,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What follows from one class of errors."""

    owner: Owner | Mapping[Phase, Owner]
    """A mapping where one class serves many: whose it is then depends on the phase."""
    policy: Policy
    modules: tuple[str, ...] = ()
    """Only classes of these packages; empty: of any."""
    wraps: bool = False
    """Says only that something inside failed: what is inside decides where it is known."""
    why: str = ""
    """Where we answer otherwise than Harbor: the reason."""

    def owner_in(self, phase: Phase) -> Owner:
        """Whose doing it is in this phase."""
        return self.owner if isinstance(self.owner, Owner) else self.owner.get(phase, Owner.UNKNOWN)


UNKNOWN_ROW: Final = Row(owner=Owner.UNKNOWN, policy=UNKNOWN_POLICY)

BY_PHASE: Final[Mapping[Phase, Owner]] = MappingProxyType(
    {
        Phase.START: Owner.SANDBOX,
        Phase.COLLECT: Owner.SANDBOX,
        Phase.GRADE: Owner.VERIFIER,
        Phase.STOP: Owner.SANDBOX,
    }
)
"""While the agent acts a bare connection error may be an engine's, a server's or a box's."""

OPERATIONS: Final[Mapping[str, Row]] = MappingProxyType(
    {
        "download": Row(owner=Owner.SANDBOX, policy=RERUN),
        "start": Row(owner=Owner.SANDBOX, policy=RERUN),
        "stop": Row(owner=Owner.SANDBOX, policy=RERUN),
        "exec": Row(owner=Owner.SANDBOX, policy=RERUN_GRADED),
        "transfer": Row(owner=Owner.SANDBOX, policy=RERUN),
        "world_generate": Row(owner=Owner.TASK, policy=RERUN),
        "world_wait": Row(owner=Owner.TASK, policy=RERUN),
        "gateway_start": Row(owner=Owner.SERVER, policy=RERUN),
        "mcp_connect": Row(owner=Owner.SERVER, policy=RERUN),
        "mcp_list": Row(owner=Owner.SERVER, policy=RERUN),
        "mcp_call": Row(owner=Owner.SERVER, policy=RERUN_GRADED),
        "mcp_close": Row(owner=Owner.SERVER, policy=RERUN),
        "generate": Row(owner=Owner.ENGINE, policy=RERUN_GRADED),
        "generate_idle": Row(owner=Owner.ENGINE, policy=RERUN_GRADED),
        "engine_start": Row(owner=Owner.ENGINE, policy=RERUN),
        "engine_stop": Row(owner=Owner.ENGINE, policy=RERUN),
        "judge": Row(owner=Owner.JUDGE, policy=RERUN_GRADED),
        "verify": Row(owner=Owner.VERIFIER, policy=FINAL_GRADED),
        "setup": Row(owner=Owner.HARNESS, policy=RERUN),
        "hook": Row(owner=Owner.HARNESS, policy=FINAL_GRADED),
    }
)
"""Whose a passed deadline is, by operation. An operation not named here is unknown."""

TEARDOWN: Final = frozenset({"stop", "mcp_close"})
"""Operations that only tear down: running out of time there takes no reward away."""

_PROVIDERS = ("litellm", "openai", "anthropic", "harbor.llms", "harbor.agents")
_NETWORK = (
    *("httpx", "httpx2", "httpcore", "httpcore2", "aiohttp", "requests", "urllib3"),
    *("grpclib", "anyio", "websockets"),
)

type _Rows = Iterator[tuple[str, Row]]


def _rows(row: Row, names: str) -> _Rows:
    return ((name, row) for name in names.split())


def _harbor_sandbox() -> _Rows:
    sandbox = Row(owner=Owner.SANDBOX, policy=RERUN)
    wrapper = Row(owner=Owner.SANDBOX, policy=RERUN, wraps=True)
    yield from _rows(
        sandbox,
        "SandboxBuildFailedError HealthcheckError SSHAccessError GKEExecStreamClosedError"
        " GKEPodNotFoundError RuntimeRequestError",
    )
    # Both say that a box was over its memory, not whose command was: without that they are the
    # sandbox's. Where the limit is known to be hit by the model's command, `OutOfMemory` is raised.
    yield from _rows(sandbox, "SandboxLikelyOutOfMemoryError MemoryLimitExceededError")
    yield from _rows(
        wrapper, "EnvironmentStartTimeoutError AddTestsDirError DownloadVerifierDirError"
    )
    yield from _rows(
        Row(owner=Owner.SANDBOX, policy=FINAL), "ServiceOperationsUnsupportedError VercelScopeError"
    )


def _harbor_engine() -> _Rows:
    yield from _rows(
        Row(owner=Owner.ENGINE, policy=RERUN_GRADED),
        "ApiRateLimitError ApiInternalServerError ApiOverloadedError ApiConnectionClosedError"
        " ApiResponseStalledError UnknownApiError ApiConnectionError ApiUsageLimitError"
        " NetworkConnectionError",
    )
    yield from _rows(
        Row(owner=Owner.ENGINE, policy=RERUN_GRADED, modules=_PROVIDERS),
        "ApiError RateLimitError InternalServerError ServiceUnavailableError APIConnectionError"
        " APIError APITimeoutError Timeout",
    )
    yield from _rows(
        Row(owner=Owner.ENGINE, policy=FINAL_GRADED),
        "UnsupportedModelParametersError UnprocessableEntityError UnsupportedParamsError"
        " APIResponseValidationError BudgetExceededError",
    )
    yield from _rows(
        Row(owner=Owner.ENGINE, policy=FINAL_GRADED, modules=_PROVIDERS), "BadRequestError"
    )
    yield from _rows(
        Row(owner=Owner.ENGINE, policy=FINAL),
        "AgentAuthenticationError ModelNotFoundError ApiProviderResourceNotFoundError",
    )
    yield from _rows(
        Row(owner=Owner.ENGINE, policy=FINAL, modules=(*_PROVIDERS, "harbor.auth")),
        "AuthenticationError PermissionDeniedError",
    )
    yield from _rows(
        Row(
            owner=Owner.ENGINE,
            policy=FINAL,
            modules=_PROVIDERS,
            why="Harbor takes every NotFoundError for a model that is not there and never retries;"
            " Modal's of the same name is a sandbox that is gone. By name alone it is unknown.",
        ),
        "NotFoundError",
    )


def _harbor_rest() -> _Rows:
    yield from _rows(
        Row(owner=Owner.VERIFIER, policy=FINAL_GRADED),
        "VerifierTimeoutError RewardFileNotFoundError RewardFileEmptyError"
        " VerifierOutputParseError",
    )
    yield from _rows(Row(owner=Owner.HARNESS, policy=RERUN, wraps=True), "AgentSetupTimeoutError")
    yield from _rows(
        Row(owner=Owner.HARNESS, policy=FINAL), "DspyImportError MissingExtraError RegradeError"
    )
    yield from _rows(
        Row(owner=Owner.MODEL, policy=VALID, modules=_PROVIDERS),
        "ContextWindowExceededError OutputTokenExceededError ContextLengthExceededError"
        " OutputLengthExceededError AgentSafetyRefusalError ContentPolicyViolationError",
    )
    yield from _rows(
        Row(
            owner=Owner.UNKNOWN,
            policy=UNKNOWN_POLICY,
            wraps=True,
            why="Harbor calls it a valid reward, but any TimeoutError raised inside the agent"
            " becomes one. It is the model's only on evidence that the model's own tokens and"
            " commands used up the budget (`BudgetUse`).",
        ),
        "AgentTimeoutError",
    )
    yield from _rows(
        Row(
            owner=Owner.HARNESS,
            policy=RERUN_GRADED,
            wraps=True,
            why="Harbor calls it a valid reward, but an installed agent also exits non-zero when"
            " it cannot start, loses its network or is killed. Nothing here says that the model"
            " did it.",
        ),
        "NonZeroAgentExitCodeError",
    )


def _deadlines() -> _Rows:
    """By name alone: whose it is depends on the operation (`OPERATIONS`)."""
    row = Row(owner=Owner.UNKNOWN, policy=RERUN_GRADED, modules=("envkit",))
    yield from _rows(row, "DeadlineExceeded")


def _cancelled() -> _Rows:
    yield from _rows(Row(owner=Owner.CANCELLED, policy=FINAL), "CancelledError KeyboardInterrupt")


def _providers_of_boxes() -> _Rows:
    modal, docker = ("modal",), ("docker",)
    yield from _rows(
        Row(owner=Owner.SANDBOX, policy=RERUN, modules=modal),
        "NotFoundError TimeoutError SandboxTimeoutError ExecTimeoutError ConnectionError"
        " InternalError ServiceError InternalFailure ResourceExhaustedError RemoteError"
        " ConflictError SandboxTerminatedError ClientClosed",
    )
    yield from _rows(
        Row(owner=Owner.SANDBOX, policy=FINAL, modules=modal),
        "AuthError PermissionDeniedError InvalidError VersionError",
    )
    yield from _rows(
        Row(owner=Owner.SANDBOX, policy=RERUN, modules=docker),
        "APIError NotFound ContainerError DockerException BuildError",
    )
    yield from _rows(
        Row(owner=Owner.SANDBOX, policy=FINAL, modules=docker), "ImageNotFound InvalidVersion"
    )
    yield from _rows(
        Row(owner=Owner.SANDBOX, policy=RERUN, modules=("harbor.environments",)), "ApiError"
    )


def _network() -> _Rows:
    """Errors of connections that nobody gave a name: an infrastructure fault is never a valid 0."""
    bare = Row(
        owner=BY_PHASE,
        policy=RERUN_GRADED,
        why="Harbor does not know it, so it takes it for a valid reward, even after retries.",
    )
    yield from _rows(
        bare,
        "ConnectionError ConnectionResetError ConnectionRefusedError ConnectionAbortedError"
        " BrokenPipeError",
    )
    yield from _rows(
        Row(
            owner=Owner.UNKNOWN,
            policy=UNKNOWN_POLICY,
            why="Harbor does not know it, so it takes it for a valid reward; and inside its own"
            " waits it renames it to the timeout of the phase. Which operation ran out of time is"
            " lost, so nobody owns it: envkit raises DeadlineExceeded instead.",
            modules=("builtins", "asyncio", "concurrent"),
        ),
        "TimeoutError",
    )
    yield from _rows(
        Row(owner=BY_PHASE, policy=RERUN_GRADED, modules=_NETWORK),
        "TransportError TimeoutException ConnectTimeout ReadTimeout WriteTimeout PoolTimeout"
        " NetworkError ConnectError ReadError WriteError CloseError RemoteProtocolError"
        " Timeout ClientConnectionError ServerDisconnectedError ServerTimeoutError ClientOSError"
        " ClientPayloadError ConnectionClosed ConnectionClosedError ClosedResourceError"
        " BrokenResourceError EndOfStream ProtocolError ChunkedEncodingError ConnectionError"
        " MaxRetryError GRPCError StreamTerminatedError",
    )
    yield from _rows(Row(owner=Owner.SERVER, policy=RERUN_GRADED, modules=("mcp",)), "MCPError")


def row_of_own(error: type[EnvkitError]) -> Row:
    """The row that a class of envkit's tree, or a subclass of one, carries itself."""
    return Row(owner=error.owner, policy=error.policy, modules=("envkit",))


def _tree(error: type[EnvkitError] = EnvkitError) -> _Rows:
    yield error.__name__, row_of_own(error)
    for child in error.__subclasses__():
        yield from _tree(child)


def _collect(rows: Iterable[tuple[str, Row]]) -> Mapping[str, tuple[Row, ...]]:
    table: dict[str, tuple[Row, ...]] = {}
    for name, row in rows:
        table[name] = (*table.get(name, ()), row)
    return MappingProxyType(table)


def _all() -> _Rows:
    for group in (_harbor_sandbox, _harbor_engine, _harbor_rest, _cancelled):
        yield from group()
    for group in (_deadlines, _providers_of_boxes, _network, _tree):
        yield from group()


TABLE: Final[Mapping[str, tuple[Row, ...]]] = _collect(_all())
"""Rows by bare class name; several where several libraries use the name."""


def row_of(path: str) -> Row | None:
    """The row of a class by its dotted path; None where nobody claims it."""
    rows = TABLE.get(path.rpartition(".")[2], ())
    matches = [row for row in rows if not row.modules or _within(path, row.modules)]
    return max(matches, key=lambda row: len(row.modules) > 0, default=None)


def _within(path: str, modules: tuple[str, ...]) -> bool:
    return path.startswith(tuple(f"{module}." for module in modules))


def row_by_name(name: str) -> Row:
    """What the bare name says, which is all Harbor looks at: what its rows agree on, or unknown."""
    first, *others = TABLE.get(name, (UNKNOWN_ROW,))
    if any(row.policy != first.policy for row in others):
        return UNKNOWN_ROW
    if any(row.owner != first.owner for row in others):
        return Row(owner=Owner.UNKNOWN, policy=first.policy)
    return first


def error_policy_overrides() -> dict[str, dict[str, bool]]:
    """What ``override_error_policy`` of Harbor ≥ 0.26's trial and job configuration takes.

    Every name of the table, every subclass of `EnvkitError` loaded by now, and every built-in
    exception, since Harbor takes a name it does not know for a valid reward. Harbor 0.25 has no
    such setting: there, and for whatever depends on module, chain, phase or evidence, `classify`
    reads the stored record.
    """
    answers = {name: row_by_name(name).policy for name in {*TABLE, *_builtins()}}
    answers |= {name: row.policy for name, row in _tree() if name not in TABLE}
    return {name: _override(policy) for name, policy in sorted(answers.items())}


def _builtins() -> set[str]:
    values = vars(builtins).values()
    found = (value for value in values if isinstance(value, type))
    return {value.__name__ for value in found if issubclass(value, BaseException)}


def _override(policy: Policy) -> dict[str, bool]:
    return {
        "should_retry": policy.retry,
        "should_grade": policy.grade,
        "has_valid_reward": policy.reward_valid,
    }
