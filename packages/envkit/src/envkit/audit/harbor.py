# SPDX-License-Identifier: Apache-2.0
"""Read a Harbor trial directory, also one that `envkit` preflighted, without importing Harbor.

What is read: ``result.json`` (rewards; exceptions at the top *and* on each step: a multi-step trial
keeps them there and leaves the top empty), ``envkit.json`` (our own record, which decides when it
is there), ``config.json`` (turn cap), the ATIF trajectories of the agent. A trial without a result
is still a run: what vanishes from the denominator is never missed.

An attempt that was retried is a run whose calls count; only the last one was to have a verdict.
Exceptions are classified by `envkit.fault`, so unknown means invalid, whatever Harbor says.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from envkit import fault
from envkit.audit import atif, own
from envkit.audit.document import ReadError, load
from envkit.audit.find import count_files, relative
from envkit.audit.shape import integer, is_object, mapping, number, sequence, string
from envkit.audit.types import Call, Ignored, Run, RunFault, Unreadable, Verdict

_CAPS: Final = ("max_turns", "max_steps", "max_iterations", "max_episodes")
_PHASES: Final = (
    ("verifier", fault.Phase.GRADE),
    ("agent_execution", fault.Phase.ACT),
    ("agent_setup", fault.Phase.SETUP),
    ("environment_setup", fault.Phase.START),
)
_ATTEMPT: Final = re.compile(r"(.+)\.attempt(\d{1,4})")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Trace:
    """What the agent's trajectories say."""

    file: str = ""
    calls: tuple[Call, ...] = ()
    turns: int = 0
    answered: bool | None = None
    last_step: int | None = None
    stop: str = ""
    turn_cap: int | None = None
    files: int = 0


def read_trial(path: Path, root: Path) -> Iterator[Run | Unreadable | Ignored]:
    """The run of a trial directory, after whatever in it could not be read."""
    result = yield from _optional(path / "result.json", root)
    record = yield from _optional(path / "envkit.json", root)
    config = yield from _optional(path / "config.json", root)
    trace = yield from _trace(path, root)
    if not result and not record and not trace.files:
        yield Unreadable(file=relative(path, root), reason="a trial without a result or trajectory")
        return
    yield Ignored(count=max(0, count_files(path) - trace.files - bool(result)))
    yield _run(path, root, result, record, config, trace)


def _optional(path: Path, root: Path) -> Generator[Unreadable, None, dict[str, Any]]:
    """An object that need not exist; one that exists and cannot be read is named."""
    if not path.exists():
        return {}
    try:
        return _object(path, root)
    except ReadError as error:
        yield Unreadable(file=relative(path, root), reason=str(error))
        return {}


def _object(path: Path, root: Path) -> dict[str, Any]:
    document = load(path, root)
    if not is_object(document):
        raise ReadError("wrong shape: not an object")
    return document


def _trace(path: Path, root: Path) -> Generator[Unreadable, None, _Trace]:
    """All trajectories of the trial in order: the agent's, or one for each step."""
    traces: list[_Trace] = []
    for file in _trajectories(path):
        try:
            traces.append(_read_trace(file, root))
        except ReadError as error:
            yield Unreadable(file=relative(file, root), reason=str(error))
    if not traces:
        return _Trace()
    calls = tuple(call for trace in traces for call in trace.calls)
    turns = sum(trace.turns for trace in traces)
    return replace(traces[-1], calls=calls, turns=turns, files=len(traces))


def _trajectories(path: Path) -> list[Path]:
    steps = sorted((path / "steps").glob("*/agent/trajectory.json"))
    single = path / "agent" / "trajectory.json"
    return [single, *steps] if single.exists() else steps


def _read_trace(path: Path, root: Path) -> _Trace:
    document = load(path, root)
    if not atif.is_atif(document):
        raise ReadError("wrong shape: schema_version does not name ATIF")
    steps = atif.checked_steps(document)
    file = relative(path, root)
    calls = tuple(replace(call, file=file) for call in atif.step_calls(steps))
    return _Trace(
        file=file,
        calls=calls,
        turns=atif.turns(steps),
        answered=atif.answered(steps, calls),
        last_step=len(steps) - 1,
        stop=own.stop_of(document),
        turn_cap=own.turn_cap_of(document),
    )


def _run(
    path: Path,
    root: Path,
    result: dict[str, Any],
    record: dict[str, Any],
    config: dict[str, Any],
    trace: _Trace,
) -> Run:
    faults = _recorded_fault(record) if record else tuple(_stored_faults(result))
    config = mapping(result.get("config")) or config
    source = relative(path / ("envkit.json" if record else "result.json"), root)
    verdict = own.verdict_of(record, source) if record else _verdict(result, source, faults)
    stop = trace.stop or _stop(result)
    return Run(
        id=relative(path, root),
        file=trace.file or source,
        task=_task(path, result, record, config),
        form="harbor",
        calls=trace.calls,
        has_calls=trace.files > 0,
        turns=trace.turns,
        turn_cap=_turn_cap(config) or trace.turn_cap,
        answered=own.answered(stop, trace.answered),
        last_step=trace.last_step,
        stop=stop,
        verdict=None if _was_retried(path) else _explained(verdict, path, root),
        faults=faults,
    )


def _task(
    path: Path, result: dict[str, Any], record: dict[str, Any], config: dict[str, Any]
) -> str:
    configured = Path(string(mapping(config.get("task")).get("path"))).name
    return string(record.get("task")) or configured or string(result.get("task_name")) or path.name


def _stop(result: dict[str, Any]) -> str:
    """Why our own agent says that it ended, where its trajectory is missing."""
    metadata = mapping(mapping(result.get("agent_result")).get("metadata"))
    return own.known_stop(metadata.get("stop"))


def _turn_cap(config: dict[str, Any]) -> int | None:
    agent = mapping(config.get("agent"))
    places = (mapping(agent.get("kwargs")), agent)
    caps = (integer(place.get(key)) for place in places for key in _CAPS)
    return next((cap for cap in caps if cap), None)


def _recorded_fault(record: dict[str, Any]) -> tuple[RunFault, ...]:
    """The fault on our own record, which is classified already."""
    data = mapping(record.get("fault"))
    if not data:
        return ()
    valid = mapping(data.get("policy")).get("reward_valid") is True
    code, message = string(data.get("code")), string(data.get("message"))
    owner = own.owner_named(string(data.get("owner")))
    return (RunFault(code=code, owner=owner, message=message, reward_valid=valid),)


def _stored_faults(result: dict[str, Any]) -> Iterator[RunFault]:
    """Harbor's exceptions: the trial's first, then those of its steps."""
    for place in (result, *map(mapping, sequence(result.get("step_results")))):
        stored = mapping(place.get("exception_info"))
        if stored:
            found = fault.classify(stored, _phase(place))
            yield RunFault(
                code=found.code,
                owner=own.owner_named(found.owner),
                message=found.message,
                reward_valid=found.policy.reward_valid,
            )


def _phase(place: dict[str, Any]) -> fault.Phase:
    """The last phase that began."""
    for key, phase in _PHASES:
        if mapping(place.get(key)).get("started_at"):
            return phase
    return fault.Phase.RUN


def _verdict(result: dict[str, Any], source: str, faults: tuple[RunFault, ...]) -> Verdict:
    if not result:
        return Verdict(source=source, problem="no result: the trial did not finish")
    reward = _reward(result)
    if reward is None:
        because = f": {faults[0].code}" if faults else ""
        return Verdict(source=source, problem=f"no reward was recorded{because}")
    valid = result.get("reward_valid") is not False and all(f.reward_valid for f in faults)
    return Verdict(source=source, reward=reward, valid=valid)


def _reward(result: dict[str, Any]) -> float | None:
    """The trial's reward; of a multi-step trial without one, the last step's."""
    steps = [mapping(step) for step in sequence(result.get("step_results"))]
    for place in (result, *reversed(steps)):
        rewards = mapping(mapping(place.get("verifier_result")).get("rewards"))
        values = [value for item in rewards.values() if (value := number(item)) is not None]
        if values:
            named = number(rewards.get("reward"))
            return sum(values) / len(values) if named is None else named
    return None


def trial_name(path: Path) -> str:
    """The trial that a directory holds an attempt of."""
    named = _ATTEMPT.fullmatch(path.name)
    return named[1] if named else path.name


def _was_retried(path: Path) -> bool:
    """Whether ``NAME.attempt2`` lies beside ``NAME``: then the verdict was left to that one."""
    named = _ATTEMPT.fullmatch(path.name)
    base, number = (named[1], int(named[2])) if named else (path.name, 1)
    return (path.parent / f"{base}.attempt{number + 1}").is_dir()


def _explained(verdict: Verdict, path: Path, root: Path) -> Verdict:
    """A missing verdict with what the verifier's own file says about it."""
    reward = path / "verifier" / "reward.json"
    if verdict.graded or not reward.exists():
        return verdict
    try:
        load(reward, root)
    except ReadError as error:
        return replace(verdict, problem=f"{verdict.problem}; verifier/reward.json: {error}")
    return verdict
