# SPDX-License-Identifier: Apache-2.0
"""Read the rows of a trajectory store, or of one segment of it.

A row whose trial lies beside the store is read there, where the whole results are; no run counts
twice. A citation names the trajectory below the store, and the turn: ``envkit show`` shows both.
Where the run has no copy of the tokenizer, or this installation cannot read one, calls are known by
their fingerprints, outcomes and the digests of what the model saw, and not by their words.

pyarrow is imported where a store is read, and only there.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from envkit.audit import own
from envkit.audit.find import relative
from envkit.audit.openai_messages import make_call
from envkit.audit.types import Call, Ignored, Run, Unreadable

if TYPE_CHECKING:
    from envkit.agent.hear import Ear
    from envkit.trajectory.store import Bad
    from envkit.trajectory.text import CallSeen
    from envkit.trajectory.types import Trajectory


def read_store(
    path: Path, root: Path, seen: Container[str]
) -> Iterator[Run | Unreadable | Ignored]:
    """Rows of a directory of segments, or of one; ``seen`` has the ids that were read already."""
    from envkit.trajectory.errors import TrajectoryError
    from envkit.trajectory.types import Trajectory

    place = relative(path, root)
    try:
        for row in _rows(path):
            if not isinstance(row, Trajectory):
                yield _damaged(row, place)
            elif row.identity.trajectory_id in seen:
                yield Ignored()
            else:
                yield _run(row, place, path)
    except (OSError, TrajectoryError) as error:
        yield Unreadable(file=place, reason=str(error))


def _rows(path: Path) -> Iterator[Trajectory | Bad]:
    from envkit.trajectory.store import Store, scan_segment

    return Store(path).scan() if path.is_dir() else scan_segment(path)


def _damaged(bad: Bad, place: str) -> Unreadable:
    from envkit.trajectory.errors import BrokenInvariant

    if isinstance(bad, BrokenInvariant):
        return Unreadable(file=f"{place}/{bad.row}", reason=f"{bad.field}: {bad.problem}")
    file = Path(bad.file).name if bad.file else ""
    return Unreadable(file="/".join(filter(None, (place, file, bad.row))), reason=bad.problem)


def _run(row: Trajectory, place: str, path: Path) -> Run:
    from envkit.trajectory.plain import to_plain

    who, episode, stop = row.identity, row.episode, row.episode.stop.value
    outcome: dict[str, Any] = to_plain(row.outcome)
    file = f"{place}/{who.trajectory_id}"
    return Run(
        id=file,
        file=file,
        task=who.task,
        form="trajectory",
        calls=tuple(_calls(row, _ear(row, path))),
        turns=episode.used.turns,
        turn_cap=episode.limits.turns or None,
        answered=own.answered(stop, None),
        last_step=max(0, episode.used.turns - 1),
        stop=stop,
        verdict=own.verdict_of(outcome, file),
        faults=own.faults_of(outcome),
    )


def _ear(row: Trajectory, path: Path) -> Ear | None:
    """How its text is had; None where it is not."""
    from envkit.fault import TemplateRefused

    try:
        from envkit.agent.hear import COPIES, ear
    except ModuleNotFoundError:  # the extras that read tokenizers are not installed
        return None
    digest = row.identity.tokenizer_digest
    above = (path if path.is_dir() else path.parent, *path.absolute().parents)[:3]
    copies = [place / COPIES / digest for place in above if digest]
    copy = next((each for each in copies if (each / "tokenizer.json").exists()), None)
    try:
        heard = ear(copy, family=row.identity.template_family) if copy else None
    except TemplateRefused:
        return None
    return heard if heard and heard.digest == digest else None


def _calls(row: Trajectory, ear: Ear | None) -> Iterator[Call]:
    if ear is None:
        for record in row.episode.calls:
            flags = {"ok": record.ok}
            said = record.observation_sha256 if record.ok else record.code
            yield make_call(record.name, record.fingerprint, record.turn, record.turn, said, flags)
        return
    from envkit.trajectory.text import turns

    for turn in turns(row.episode, ear.decode, hear=ear.hear(row.episode)):
        yield from _heard(turn.calls)


def _heard(calls: Sequence[CallSeen]) -> Iterator[Call]:
    for each in calls:
        record = each.record
        arguments = record.fingerprint if each.arguments is None else dict(each.arguments)
        said = (each.result or "").removeprefix("Error: ") or record.code
        flags = {"ok": record.ok}
        yield make_call(record.name, arguments, record.turn, record.turn, said, flags)
