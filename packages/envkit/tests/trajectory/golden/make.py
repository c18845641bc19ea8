# SPDX-License-Identifier: Apache-2.0
"""Writes the stores that lie beside it: ``python make.py DIRECTORY``.

Contract: nothing is drawn by chance, so that the same envkit writes the same rows; ``rows.jsonl``
is made of the records and never of the files. They are of schema 1.0, of a later minor with a
column and keys that 1.0 does not have, and of another major. Run it with the oldest envkit that is
supported, and only where that changes.
"""

import json
import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from envkit.trajectory.columns import CHECKSUM, checksum, encode
from envkit.trajectory.digest import ids_digest
from envkit.trajectory.head import Head, head_of
from envkit.trajectory.plain import to_plain
from envkit.trajectory.segment import Row, encode_segment
from envkit.trajectory.types import (
    AttemptNote,
    CallRecord,
    EngineId,
    EngineRequest,
    Episode,
    FaultNote,
    Identity,
    Kind,
    Limits,
    Outcome,
    ParseFault,
    Sampling,
    Segment,
    Stop,
    Stream,
    Trajectory,
    Used,
)
from envkit.trajectory.writer import Writer

NOW, LATER, OTHER = "1.0", "1.9", "2.0"
FIRST = "segment-00000001.arrow"
AHEAD = ("north__000", "south__000", "east__001")
"""Rows that a later minor writes too."""

type Stretch = tuple[Kind, int, int]
"""Kind, how many tokens, turn."""

PROMPT: Stretch = (Kind.PROMPT, 9, 0)


def turns(count: int, said: int = 6, shown: int = 4) -> list[Stretch]:
    """The model and what it is shown, the last turn without."""
    both = [[(Kind.MODEL, said + n, n), (Kind.TOOL, shown, n)] for n in range(count)]
    return [PROMPT, *(each for turn in both for each in turn)][:-1]


def stream(layout: list[Stretch], *, seed: int, version: int, topk: int = 0) -> Stream:
    """Tokens over a layout; each turn is sampled by two versions, the second one newer."""
    segments = tuple(_segments(layout))
    length = segments[-1].stop if segments else 0
    place = np.arange(length)
    mask, versions = np.zeros(length, np.bool_), np.full(length, -1, np.int32)
    for each in segments:
        if each.kind is Kind.MODEL:
            middle = (each.start + each.stop) // 2
            mask[each.start : each.stop] = True
            versions[each.start : middle] = version + each.turn
            versions[middle : each.stop] = version + each.turn + 1
    ids = (place * 7919 + seed * 104_729) % 151_643
    logprobs = -((place * 37 + seed) % 64 + 1) / 16
    return Stream(
        token_ids=ids.astype(np.int32),
        loss_mask=mask,
        logprobs=np.where(mask, logprobs, np.nan).astype(np.float32),
        weight_version=versions,
        segments=segments,
        **(_alternatives(ids, mask, topk) if topk else {}),
    )


def _segments(layout: list[Stretch]) -> Iterator[Segment]:
    start = 0
    for kind, length, turn in layout:
        finish = "stop" if kind is Kind.MODEL else None
        yield Segment(kind=kind, start=start, stop=start + length, turn=turn, finish=finish)
        start += length


def _alternatives(ids: Any, mask: Any, topk: int) -> dict[str, Any]:
    """The sampled token first; the last token has one alternative fewer than it might."""
    near = ids[:, None] + np.arange(topk)
    logprobs = -(1 + np.arange(topk)) / 4 - np.zeros((len(ids), 1))
    there = np.repeat(mask[:, None], topk, 1)
    there[-1, -1] = False
    return {
        "topk_ids": np.where(there, near, -1).astype(np.int32),
        "topk_logprobs": np.where(there, logprobs, np.nan).astype(np.float32),
    }


def episode(found: Stream, stop: Stop, **more: Any) -> Episode:
    """What the loop saw of a stream: a request a turn, and two calls where there is a result."""
    models = [each for each in found.segments if each.kind is Kind.MODEL]
    shown = [each for each in found.segments if each.kind is Kind.TOOL]
    calls = tuple(_call(found, each, number) for each in shown for number in range(2))
    used = {"turns": len(models), "tool_calls": len(calls)}
    used |= {"sampled_tokens": int(found.loss_mask.sum()), "own_s": 2.5, "waited_s": 0.25}
    return Episode(
        stream=found,
        stop=stop,
        limits=Limits(context_tokens=4096, turns=8, tokens_per_turn=512, own_s=600.0),
        used=Used(**{**used, **more.pop("used", {})}),
        requests=tuple(_request(found, each) for each in models),
        calls=calls,
        **more,
    )


def _request(found: Stream, segment: Segment) -> EngineRequest:
    return EngineRequest(
        turn=segment.turn,
        started_s=0.5 + 2 * segment.turn,
        first_token_s=0.125,
        seconds=0.75,
        prompt_tokens=segment.start,
        sampled_tokens=segment.stop - segment.start,
        finish="stop",
        kv_version=int(found.weight_version[segment.start]),
        tries=1 + segment.turn % 2,
    )


def _call(found: Stream, shown: Segment, number: int) -> CallRecord:
    failed = number == 1
    return CallRecord(
        call_id=f"call-{shown.turn}-{number}",
        turn=shown.turn,
        name="read_file" if failed else "list_files",
        ok=not failed,
        started_s=1.25 + 2 * shown.turn,
        seconds=0.0625,
        fingerprint=f"{shown.turn}{number}" * 32,
        observation_sha256=ids_digest(found.token_ids[shown.start : shown.stop]),
        code="not_found" if failed else "",
        cut_tokens=17 * number,
    )


def identity(group: str, sample: int, **sampling: Any) -> Identity:
    """A rollout of a prompt."""
    return Identity(
        trajectory_id=f"{group}__{sample:03}",
        group_id=group,
        sample=sample,
        task=group,
        task_digest="a" * 64,
        image_digest="sha256:" + "b" * 64,
        harness="envkit mcp",
        harness_version="0.1.0",
        tokenizer_digest="c" * 64,
        template_digest="d" * 64,
        template_family="qwen3",
        engine=EngineId(
            model="tiny", model_digest="e" * 64, dtype="bfloat16", server="vllm 0.32.0"
        ),
        sampling=Sampling(seed=sample, **sampling),
    )


def graded(reward: float, *, live: bool = True, **more: Any) -> Outcome:
    """A valid reward."""
    return Outcome(
        reward=reward,
        reward_valid=True,
        loss_live=live,
        rewards={"reward": reward, "letters": 0.75},
        verdict="graded",
        phases={"start": 0.5, "act": 4.0, "grade": 1.5},
        **more,
    )


LOST = FaultNote(code="SandboxLost", owner="sandbox", phase="act", message="its box is gone")
KILLED = FaultNote(code="KilledByItself", owner="model", phase="act", message="it killed its box")
AGAIN = AttemptNote(
    number=1, started_at=1.75e9, seconds=3.5, reward=None, reward_valid=False, fault=LOST
)
LAST = AttemptNote(number=2, started_at=1.75e9 + 4, seconds=6.0, reward=0.5, reward_valid=True)


def rows() -> list[Trajectory]:
    """Of four prompts; the one with alternatives has a file of its own."""
    nudged = [*turns(3), (Kind.HARNESS, 3, 2), (Kind.MODEL, 5, 3)]
    fault = ParseFault(turn=0, code="unclosed", message="the call has no end")
    warm = {"temperature": 0.75, "logprobs_mode": "processed"}
    return [
        Trajectory(
            identity=identity("north", 0),
            episode=episode(
                stream(nudged, seed=1, version=4),
                Stop.FINAL,
                used={"nudged_at": 2},
                final_answer="It rose by 2.1 %: résumé, 報告, \U0001f4c8",
            ),
            outcome=graded(0.5, attempts=(AGAIN, LAST)),
        ),
        Trajectory(
            identity=identity("north", 1),
            episode=episode(stream(turns(1), seed=2, version=4), Stop.FAULT),
            outcome=graded(0.0, fault=KILLED),
        ),
        Trajectory(
            identity=identity("south", 0),
            episode=episode(stream(turns(2), seed=3, version=5), Stop.FAULT),
            outcome=Outcome(
                reward=None, reward_valid=False, loss_live=False, fault=LOST, attempts=(AGAIN,)
            ),
        ),
        Trajectory(
            identity=identity("south", 1),
            episode=episode(stream([], seed=4, version=5), Stop.FAULT),
            outcome=Outcome(reward=None, reward_valid=False, loss_live=False, fault=LOST),
        ),
        Trajectory(
            identity=identity("east", 0),
            episode=episode(
                stream(turns(2), seed=5, version=5), Stop.TURN_CAP, evaluation=True, final_answer=""
            ),
            outcome=graded(1.0),
        ),
        Trajectory(
            identity=identity("east", 1, **warm),
            episode=episode(
                stream(turns(2), seed=6, version=5), Stop.LENGTH, parse_faults=(fault,)
            ),
            outcome=graded(0.25, live=False),
        ),
        Trajectory(
            identity=identity("west", 0, top_logprobs=2),
            episode=episode(stream(turns(2), seed=7, version=6, topk=2), Stop.CONTEXT),
            outcome=graded(-1.0),
        ),
    ]


# --- what 1.0 does not have -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class LaterHead(Head):
    """What is known of a row in an index of a later minor."""

    mood: str


def later(row: Trajectory) -> Row:
    """A row with a column more among the others, and a key more in every record."""
    batch = encode(row)
    facts = json.loads(batch.column("facts")[0].as_py())
    _add_mood(facts)
    told = {name: batch.column(name) for name in batch.schema.names}
    doubts = [0.5] * len(row.episode.stream.token_ids)
    inner = batch.schema.field("segments").type.value_type
    moody = pa.list_(pa.struct([pa.field("mood", pa.string()), *inner]))
    segments = [{"mood": "good", **to_plain(each)} for each in row.episode.stream.segments]
    columns = {
        "doubts": pa.array([doubts], pa.list_(pa.float32())),
        **told,
        "facts": pa.array([json.dumps(facts)]),
        "segments": pa.array([segments], moody),
    }
    known = {each.name: getattr(head_of(row), each.name) for each in fields(Head)}
    return sealed(pa.RecordBatch.from_pydict(columns), LaterHead(**known, mood="good"))


def _add_mood(facts: Any) -> None:
    """To every record, wherever it stands."""
    episode, outcome = facts["episode"], facts["outcome"]
    whole = [facts, facts["identity"], episode, outcome]
    whole += [facts["identity"][name] for name in ("engine", "sampling")]
    whole += [episode["limits"], episode["used"], outcome["fault"], *outcome["attempts"]]
    for each in whole:
        if each is not None:
            each["mood"] = "good"
    for name in ("requests", "calls", "parse_faults"):
        if columns := episode[name]:
            columns["mood"] = ["good"] * len(columns["turn"])


def sealed(batch: pa.RecordBatch, head: Head) -> Row:
    """A row with the checksum of what it holds, in its place as the last column."""
    names = [name for name in batch.schema.names if name != CHECKSUM]
    value = checksum(batch)
    whole = batch.select(names).append_column(CHECKSUM, pa.array([value], pa.uint32()))
    return Row(head=head, checksum=value, batch=whole)


# --- files ----------------------------------------------------------------------------------------


def write(directory: Path) -> None:
    """All stores, and what the rows of the first two are."""
    made = rows()
    with Writer.open(directory / NOW, clock=lambda: 0.0) as writer:
        for each in made:
            writer.append(each)
    (directory / NOW / ".lock").unlink()
    _segment(directory / LATER, [later(each) for each in made if _id(each) in AHEAD])
    _segment(directory / OTHER, [sealed(encode(made[0]), head_of(made[0]))])
    lines = [json.dumps(_told(each), ensure_ascii=False, allow_nan=False) for each in made]
    (directory / "rows.jsonl").write_text("\n".join(lines) + "\n", "utf-8")


def _id(row: Trajectory) -> str:
    return row.identity.trajectory_id


def _segment(directory: Path, made: list[Row]) -> None:
    directory.mkdir()
    version = f"envkit.trajectory/{directory.name}"
    (directory / FIRST).write_bytes(encode_segment(made, version))


def _told(row: Trajectory) -> dict[str, Any]:
    """A row as JSON has it; what is no number is null."""
    without = replace(row.episode, stream=None)  # pyright: ignore[reportArgumentType]
    told = {**to_plain(without), "stream": _arrays(row.episode.stream)}
    return {**to_plain(replace(row, episode=without)), "episode": told}


def _arrays(found: Stream) -> dict[str, Any]:
    arrays = {each.name: getattr(found, each.name) for each in fields(Stream)}
    segments = to_plain(arrays.pop("segments"))
    return {**{name: _listed(each) for name, each in arrays.items()}, "segments": segments}


def _listed(value: Any) -> Any:
    if isinstance(value, np.ndarray | list):
        return [_listed(each) for each in (value.tolist() if hasattr(value, "tolist") else value)]
    return None if isinstance(value, float) and math.isnan(value) else value


if __name__ == "__main__":
    write(Path(sys.argv[1]))
