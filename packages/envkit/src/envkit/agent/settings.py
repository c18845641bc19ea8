# SPDX-License-Identifier: Apache-2.0
"""What the model's agent is told, as plain data that crosses into the trial's process.

Contract: a name or value that means nothing is refused in one line, before anything starts.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, Self

from pydantic import TypeAdapter, ValidationError

from envkit.agent.engine import EngineOptions
from envkit.agent.toolbelt.extras import EXTRAS
from envkit.deadline import Budgets
from envkit.fault import HarnessError
from envkit.retry import Backoff
from envkit.trajectory.types import Limits, Sampling

TOOLBELTS: Final = ("mcp", "code")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSettings:
    """Of one trial."""

    engine: EngineOptions
    tokenizer: Path
    """Directory of the model's tokenizer and chat template."""
    family: str = ""
    """Of the chat template, where it is not to be found out."""
    template: str = ""
    """File of a chat template in place of the directory's."""
    variables: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What the chat template takes beside the messages, such as ``enable_thinking``."""
    parser: str = ""
    """Of the model's calls, where it is not the family's."""
    toolbelt: Literal["mcp", "code"] = "mcp"
    extras: tuple[str, ...] = ()
    sampling: Sampling = field(default_factory=Sampling)
    limits: Limits = field(default_factory=Limits)
    evaluation: bool = False
    """No nudge; all else is as in training."""
    budgets: Budgets = field(default_factory=Budgets)
    expected_tools: tuple[str, ...] = ()
    """All that the trial's servers may list; nothing where the world does not say."""
    journal: bool = False
    """Keep each turn on the disk as it is sampled, so that a killed episode can go on."""
    resume_from: str = ""
    """Directory of the attempt of this trial that was killed, to go on where it was."""

    @classmethod
    def read(
        cls,
        *,
        engine: str | Mapping[str, Any],
        tokenizer: str | Path,
        toolbelt: str = "mcp",
        extras: Sequence[str] = (),
        sampling: Mapping[str, Any] | None = None,
        limits: Mapping[str, Any] | None = None,
        budgets: Mapping[str, Any] | None = None,
        expected_tools: Sequence[str] = (),
        **more: Any,
    ) -> Self:
        """From the keyword arguments of an agent; ``engine`` is a URL or `EngineOptions` by name.

        Raises:
            HarnessError: one of them means nothing.
        """
        kept = _made("budgets", Budgets, budgets)
        options: dict[str, Any] = {"url": engine} if isinstance(engine, str) else dict(engine)
        if isinstance(options.get("backoff"), Mapping):
            options["backoff"] = _made("engine.backoff", Backoff, options["backoff"])
        return _made(
            "agent",
            cls,
            {
                "engine": _made("engine", EngineOptions, {"budgets": kept, **options}),
                "tokenizer": Path(tokenizer),
                "toolbelt": _one_of("toolbelt", toolbelt, TOOLBELTS),
                "extras": tuple(_one_of("extras", each, EXTRAS) for each in extras),
                "sampling": _made("sampling", Sampling, sampling),
                "limits": _made("limits", Limits, limits),
                "budgets": kept,
                "expected_tools": tuple(expected_tools),
                **more,
            },
        )


def _made[T](what: str, make: type[T], fields: Mapping[str, Any] | None) -> T:
    known: tuple[str, ...] = getattr(make, "__slots__", ())
    for name in fields or {}:
        if name not in known:
            raise HarnessError(f"{what}: there is no {name!r}; there are {', '.join(known)}")
    try:
        return _reader(make).validate_python(dict(fields or {}))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise HarnessError(f"{what}: {first['loc'][0]}: {first['msg']}") from error


@functools.cache
def _reader[T](make: type[T]) -> TypeAdapter[T]:
    return TypeAdapter(make)


def _one_of(what: str, value: str, known: Sequence[str]) -> str:
    if value not in known:
        raise HarnessError(f"{what}: there is no {value!r}; there are {', '.join(known)}")
    return value
