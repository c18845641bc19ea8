# SPDX-License-Identifier: Apache-2.0
"""The tree of envkit's own errors. Each class carries its owner and its policy.

Every error is built from plain positional arguments that JSON can hold, so it survives pickling
and `envkit.fault.to_record` without code of its own.
"""

from typing import ClassVar

from envkit.fault.types import (
    FINAL,
    FINAL_GRADED,
    RERUN,
    RERUN_GRADED,
    UNKNOWN_POLICY,
    VALID,
    Owner,
    Policy,
)


class EnvkitError(Exception):
    """Base of everything envkit raises on purpose."""

    owner: ClassVar[Owner] = Owner.UNKNOWN
    policy: ClassVar[Policy] = UNKNOWN_POLICY


class SandboxError(EnvkitError):
    """The box or its provider failed."""

    owner = Owner.SANDBOX
    policy = RERUN


class SandboxUnavailable(SandboxError):
    """No box can be made on this machine; the message is the one line that fixes it."""

    policy = FINAL


class SandboxStartFailed(SandboxError):
    """A box did not come up."""


class SandboxDied(SandboxError):
    """A box that was up is gone, and not by the model's doing."""


class HostOverloaded(SandboxError):
    """This machine had too little for a box: no core, no memory. Not the model's doing."""


class TransferFailed(SandboxError):
    """A file could not be carried into or out of a box."""


class NotIsolated(SandboxError):
    """What another trial made can be seen in this one's box: it would be so again."""

    policy = FINAL_GRADED


class ServerError(EnvkitError):
    """An MCP server or the gateway failed."""

    owner = Owner.SERVER
    policy = RERUN_GRADED


class ServerStartFailed(ServerError):
    """A server did not come up, or did not accept its first connection."""

    policy = RERUN


class ServerDisconnected(ServerError):
    """The connection to a server is gone; its client is never used again."""


class ServerGarbage(ServerError):
    """A server answered with something that is not the protocol."""


class MissingTools(ServerError):
    """A server does not list the tools the task needs."""

    policy = RERUN


class ExtraTools(ServerError):
    """A server lists tools that the task's world does not expect."""

    policy = RERUN


class TokenExpired(ServerError):
    """A server that let this client in no longer accepts its token."""


class UnexpectedToolError(ServerError):
    """A recorded call that must succeed returned an error; the same call would fail again."""

    policy = FINAL_GRADED


class EngineError(EnvkitError):
    """The inference engine or model provider failed."""

    owner = Owner.ENGINE
    policy = RERUN_GRADED


class EngineUnreachable(EngineError):
    """No connection to the engine, or it broke before the answer was whole."""


class EngineBusy(EngineError):
    """The engine has no room for the request now: 408, 425, 429 or 503."""

    def __init__(self, message: str = "", retry_after_s: float = 0.0) -> None:
        super().__init__(message, retry_after_s)
        self.retry_after_s = retry_after_s
        """When to come again, by the engine's own word."""

    def __str__(self) -> str:
        return str(self.args[0])


class EngineFailed(EngineError):
    """The engine answered that it broke inside."""


class EngineGarbage(EngineError):
    """The engine answered with something that is not its protocol, or with half of it."""


class EngineAborted(EngineError):
    """The engine ended the request of its own accord."""


class WeightsChanged(EngineError):
    """The weights changed while the engine sampled, and it does not tell at which token."""


class EngineRefused(EngineError):
    """The engine says no to what was asked; it would say so again."""

    policy = FINAL


class UntrainableSample(EngineError):
    """A whole answer that may not be trained on: it is never asked for again.

    Whether it is sound may hang on what was sampled, and drawing until an answer pleases is
    another distribution than the model's.
    """

    policy = FINAL


class NoTokenIds(UntrainableSample):
    """Text without the ids it was sampled as."""


class UnequalLengths(UntrainableSample):
    """Ids, logprobs and weight versions do not speak of the same tokens."""


class OutOfVocabulary(UntrainableSample):
    """An id that the model's vocabulary does not have."""


class PromptAltered(UntrainableSample):
    """The engine sampled after other ids than it was sent."""


class NoLogprobs(UntrainableSample):
    """A sampled token without its logarithm of probability."""


class BadLogprobs(UntrainableSample):
    """A logprob no sampled token can have: above 0, not a number, or a floor put in its place."""


class OtherDistribution(UntrainableSample):
    """Logprobs of another distribution than the one sampled from."""


class WrongStop(UntrainableSample):
    """It says it stopped at a token that was not to stop it, or for a reason nobody asked for."""


class TooManyTokens(UntrainableSample):
    """More tokens than were asked for."""


class UnreadableVersion(UntrainableSample):
    """A weight version that is not a whole number: nobody could tell which is the older."""


class JudgeError(EnvkitError):
    """A request to a judging model failed; asking again can succeed."""

    owner = Owner.JUDGE
    policy = RERUN_GRADED


class NoVerdict(JudgeError):
    """The judge could not be brought to a verdict: there is no reward, least of all 0.

    The trajectory stands, so it is graded again later rather than run again.
    """

    policy = FINAL_GRADED


class VerifierError(EnvkitError):
    """The task's verifier could not judge. The trajectory stands: grade again, do not run again."""

    owner = Owner.VERIFIER
    policy = FINAL_GRADED


class VerifierCrashed(VerifierError):
    """The verifier's own program failed."""


class RewardMissing(VerifierError):
    """The verifier ended without writing a reward."""


class RewardUnreadable(VerifierError):
    """The verifier wrote a reward that is not finite numbers by name."""


class TaskError(EnvkitError):
    """The task directory is wrong: what, where, what to do, in one line."""

    owner = Owner.TASK
    policy = FINAL


class HarnessError(EnvkitError):
    """The loop around the model failed, or was used wrongly."""

    owner = Owner.HARNESS
    policy = FINAL_GRADED


class PromptTooLong(HarnessError):
    """The engine was sent more than its context takes: the loop counts the room itself."""


class TemplateRefused(HarnessError):
    """No trustworthy token stream can be made with this tokenizer or chat template."""

    policy = FINAL


class ReplayDiffers(HarnessError):
    """A trial cannot go on where it was killed: replaying it came to something else."""

    policy = RERUN


class ModelFault(EnvkitError):
    """What the model's own action caused. Valid, graded as it stands, never retried."""

    owner = Owner.MODEL
    policy = VALID


class OutOfMemory(ModelFault):
    """The model's command used up the memory of its own box."""


class ProcessLimit(ModelFault):
    """The model's command used up the processes of its own box."""


class DiskFull(ModelFault):
    """The model's command used up the disk of its own box."""


class EndlessCommand(ModelFault):
    """The model's command did not end within the time it was given."""

    output: str = ""
    """What it said until then, where that is known; it does not survive pickling."""


class KilledOwnBox(ModelFault):
    """The model's command killed what its own box needs to live."""


class ForeignError(EnvkitError):
    """An error of somebody else's class read back from a record.

    Its message starts with the original class (``builtins.ConnectionResetError: …``), by which it
    is classified.
    """
