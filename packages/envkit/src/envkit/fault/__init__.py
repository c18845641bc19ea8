# SPDX-License-Identifier: Apache-2.0
"""Who owns a failure, and whether its reward may be trained on.

::

    EnvkitError                   owner      retry  grade  reward valid
    ├── SandboxError              sandbox    yes    no     no
    │   ├── SandboxUnavailable    sandbox    no     no     no
    │   ├── SandboxStartFailed    sandbox    yes    no     no
    │   ├── SandboxDied           sandbox    yes    no     no
    │   ├── HostOverloaded        sandbox    yes    no     no
    │   ├── TransferFailed        sandbox    yes    no     no
    │   └── NotIsolated           sandbox    no     yes    no
    ├── ServerError               server     yes    yes    no
    │   ├── ServerStartFailed     server     yes    no     no
    │   ├── ServerDisconnected    server     yes    yes    no
    │   ├── ServerGarbage         server     yes    yes    no
    │   ├── MissingTools          server     yes    no     no
    │   ├── ExtraTools            server     yes    no     no
    │   ├── TokenExpired          server     yes    yes    no
    │   └── UnexpectedToolError   server     no     yes    no
    ├── EngineError               engine     yes    yes    no
    │   ├── EngineUnreachable     engine     yes    yes    no
    │   ├── EngineBusy            engine     yes    yes    no
    │   ├── EngineFailed          engine     yes    yes    no
    │   ├── EngineGarbage         engine     yes    yes    no
    │   ├── EngineAborted         engine     yes    yes    no
    │   ├── WeightsChanged        engine     yes    yes    no
    │   ├── EngineRefused         engine     no     no     no
    │   └── UntrainableSample     engine     no     no     no
    │       ├── NoTokenIds        engine     no     no     no
    │       ├── UnequalLengths    engine     no     no     no
    │       ├── OutOfVocabulary   engine     no     no     no
    │       ├── PromptAltered     engine     no     no     no
    │       ├── NoLogprobs        engine     no     no     no
    │       ├── BadLogprobs       engine     no     no     no
    │       ├── OtherDistribution engine     no     no     no
    │       ├── WrongStop         engine     no     no     no
    │       ├── TooManyTokens     engine     no     no     no
    │       └── UnreadableVersion engine     no     no     no
    ├── JudgeError                judge      yes    yes    no
    │   └── NoVerdict             judge      no     yes    no
    ├── VerifierError             verifier   no     yes    no
    │   ├── VerifierCrashed       verifier   no     yes    no
    │   ├── RewardMissing         verifier   no     yes    no
    │   └── RewardUnreadable      verifier   no     yes    no
    ├── TaskError                 task       no     no     no
    ├── HarnessError              harness    no     yes    no
    │   ├── PromptTooLong         harness    no     yes    no
    │   ├── TemplateRefused       harness    no     no     no
    │   └── ReplayDiffers         harness    yes    no     no
    ├── ModelFault                model      no     yes    YES
    │   ├── OutOfMemory           model      no     yes    YES
    │   ├── ProcessLimit          model      no     yes    YES
    │   ├── DiskFull              model      no     yes    YES
    │   ├── EndlessCommand        model      no     yes    YES
    │   └── KilledOwnBox          model      no     yes    YES
    ├── DeadlineExceeded          by its operation (`envkit.deadline`), retried, reward invalid
    └── ForeignError              as the class it stands for
    anything else                 `envkit.fault.table`, a superset of Harbor's own policy
    unknown                       unknown    once   yes    no, and loudly

Two promises. No reward is valid unless we know that what happened is the model's own doing. And
masking is no hiding place: what the model's own action caused is the model's, graded as it stands.
A fault of the teardown (`Phase.STOP`) never takes a reward away.

types      owners, phases, policies, the fault on a record
errors     the tree above
table      every other class we know by name and module, with reasons where Harbor says otherwise
text       the chain of exceptions, read from traceback text
record     exceptions as JSON and back
classify   exception or stored record → `Fault`, the same for both
"""

from envkit.fault.classify import BudgetUse, classify
from envkit.fault.errors import (
    BadLogprobs,
    DiskFull,
    EndlessCommand,
    EngineAborted,
    EngineBusy,
    EngineError,
    EngineFailed,
    EngineGarbage,
    EngineRefused,
    EngineUnreachable,
    EnvkitError,
    ExtraTools,
    ForeignError,
    HarnessError,
    HostOverloaded,
    JudgeError,
    KilledOwnBox,
    MissingTools,
    ModelFault,
    NoLogprobs,
    NotIsolated,
    NoTokenIds,
    NoVerdict,
    OtherDistribution,
    OutOfMemory,
    OutOfVocabulary,
    ProcessLimit,
    PromptAltered,
    PromptTooLong,
    ReplayDiffers,
    RewardMissing,
    RewardUnreadable,
    SandboxDied,
    SandboxError,
    SandboxStartFailed,
    SandboxUnavailable,
    ServerDisconnected,
    ServerError,
    ServerGarbage,
    ServerStartFailed,
    TaskError,
    TemplateRefused,
    TokenExpired,
    TooManyTokens,
    TransferFailed,
    UnequalLengths,
    UnexpectedToolError,
    UnreadableVersion,
    UntrainableSample,
    VerifierCrashed,
    VerifierError,
    WeightsChanged,
    WrongStop,
)
from envkit.fault.record import from_record, to_record
from envkit.fault.table import error_policy_overrides
from envkit.fault.types import UNKNOWN_POLICY, Fault, Owner, Phase, Policy

__all__ = [
    "UNKNOWN_POLICY",
    "BadLogprobs",
    "BudgetUse",
    "DiskFull",
    "EndlessCommand",
    "EngineAborted",
    "EngineBusy",
    "EngineError",
    "EngineFailed",
    "EngineGarbage",
    "EngineRefused",
    "EngineUnreachable",
    "EnvkitError",
    "ExtraTools",
    "Fault",
    "ForeignError",
    "HarnessError",
    "HostOverloaded",
    "JudgeError",
    "KilledOwnBox",
    "MissingTools",
    "ModelFault",
    "NoLogprobs",
    "NoTokenIds",
    "NoVerdict",
    "NotIsolated",
    "OtherDistribution",
    "OutOfMemory",
    "OutOfVocabulary",
    "Owner",
    "Phase",
    "Policy",
    "ProcessLimit",
    "PromptAltered",
    "PromptTooLong",
    "ReplayDiffers",
    "RewardMissing",
    "RewardUnreadable",
    "SandboxDied",
    "SandboxError",
    "SandboxStartFailed",
    "SandboxUnavailable",
    "ServerDisconnected",
    "ServerError",
    "ServerGarbage",
    "ServerStartFailed",
    "TaskError",
    "TemplateRefused",
    "TokenExpired",
    "TooManyTokens",
    "TransferFailed",
    "UnequalLengths",
    "UnexpectedToolError",
    "UnreadableVersion",
    "UntrainableSample",
    "VerifierCrashed",
    "VerifierError",
    "WeightsChanged",
    "WrongStop",
    "classify",
    "error_policy_overrides",
    "from_record",
    "to_record",
]
