# SPDX-License-Identifier: Apache-2.0
"""Bar 3: the trajectory store: ``python -m nox -s bench -- bar03_trajectory_store [256]``.

The same rows are written twice: by our writer, and as Parquet of the very same columns as
``pyarrow.parquet.write_table`` does by itself: snappy, one row group. Read are all columns of all
rows into Arrow memory, as either library does it by itself (both use all cores), ours with every
row's bytes proven first; and one row by its id with the file opened anew, of Parquet the row group
it is known to lie in. A process that wrote nothing reads; rounds of ours and the peer take turns,
ours several times in each, so that both are seen for about as long; both must give the same values.
How fast checked `Trajectory` objects come is stated beside it and has no peer.

Data: ids drawn from a Zipf law over 151,643 tokens with earlier stretches said again, as tool
results and quotes do; logprobs are float32 with all their bits; turns, calls and requests as an
agent of 550 tokens a turn has them. Rows are lognormal, median 20,000 tokens, 2,000 to 128,000.

Holds when at 30 % model tokens a token takes at most 5.2 bytes, all files of all shares of model
tokens give back what was written, a full read is five times as fast as Parquet's and one row
twenty times.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from parts.machine import machine

from envkit.trajectory.columns import decode, encode
from envkit.trajectory.digest import ids_digest
from envkit.trajectory.invariants import mask_of
from envkit.trajectory.store import Store
from envkit.trajectory.types import (
    AttemptNote,
    CallRecord,
    EngineId,
    EngineRequest,
    Episode,
    Identity,
    Kind,
    Limits,
    Outcome,
    Sampling,
    Segment,
    Stop,
    Stream,
    Trajectory,
    Used,
)
from envkit.trajectory.writer import Writer

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
SHARES = (0.1, 0.3, 0.5, 1.0)
"""Of model tokens."""
JUDGED = 0.3
MOST_BYTES, FASTER, FASTER_ONE = 5.2, 5.0, 20.0
ROUNDS = 25
AGAIN = 4
"""Reads of ours in a round."""
VOCABULARY = 151_643
SAID_AGAIN = 0.35
"""How often a stretch is one that stood before."""


# --- data -----------------------------------------------------------------------------------------


class Writing:
    """Makes trajectories; the same for the same seed."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        weights = 1 / np.arange(1, VOCABULARY + 1) ** 1.05
        self.chances = np.cumsum(weights / weights.sum())
        order = np.arange(VOCABULARY) + self.random.normal(0, 8000, VOCABULARY)
        self.ids = np.argsort(order).astype(np.int32)

    def tokens(self, length: int) -> Any:
        ids, end = np.empty(length, np.int32), 0
        while end < length:
            if end > 200 and self.random.random() < SAID_AGAIN:
                start = int(self.random.integers(0, end - 100))
                stretch = ids[start : start + int(self.random.integers(5, 80))]
            else:
                drawn = np.searchsorted(self.chances, self.random.random(40))
                stretch = self.ids[np.minimum(drawn, VOCABULARY - 1)]
            stretch = stretch[: length - end]
            ids[end : end + len(stretch)] = stretch
            end += len(stretch)
        return ids

    def segments(self, length: int, share: float) -> tuple[Segment, ...]:
        """A prompt of a tenth, then turns; of everything the share is the model's."""
        prompt = 1 if share == 1.0 else length // 10
        made = [Segment(kind=Kind.PROMPT, start=0, stop=prompt, turn=0)]
        model, tool = 550 * share, 550 * (1 - share - 0.1)
        turn = 0
        while made[-1].stop < length:
            for kind, mean in ((Kind.MODEL, model), (Kind.TOOL, tool)):
                start = made[-1].stop
                size = int(mean * self.random.uniform(0.5, 1.5)) if mean > 0 else 0
                stop = min(length, start + size)
                if stop > start:
                    finish = "stop" if kind is Kind.MODEL else None
                    made.append(
                        Segment(kind=kind, start=start, stop=stop, turn=turn, finish=finish)
                    )
            turn += 1
        return tuple(made)

    def trajectory(self, number: int, share: float) -> Trajectory:
        length = int(np.clip(np.exp(self.random.normal(np.log(20_000), 1)), 2_000, 128_000))
        segments = self.segments(length, share)
        mask = mask_of(segments, length)
        logprobs = -self.random.lognormal(-3, 2.5, length).astype(np.float32)
        stream = Stream(
            token_ids=self.tokens(length),
            loss_mask=mask,
            logprobs=np.where(mask, logprobs, np.float32(np.nan)),
            weight_version=np.where(mask, 7 + (np.arange(length) > 0.8 * length), -1).astype(
                np.int32
            ),
            segments=segments,
        )
        return Trajectory(
            identity=self.identity(number),
            episode=self.episode(stream),
            outcome=Outcome(
                reward=0.5,
                reward_valid=True,
                loss_live=True,
                rewards={"reward": 0.5, "answer": 1.0, "sources": 0.0},
                verdict="graded",
                attempts=(
                    AttemptNote(
                        number=1, started_at=1.7e9, seconds=99.0, reward=0.5, reward_valid=True
                    ),
                ),
                phases=dict.fromkeys(("start", "setup", "act", "collect", "grade"), 1.25),
            ),
        )

    def identity(self, number: int) -> Identity:
        return Identity(
            trajectory_id=f"task-{number // 16:03d}__{number % 16:03d}",
            group_id=f"task-{number // 16:03d}",
            sample=number % 16,
            task=f"task-{number // 16:03d}",
            task_digest=self.digest(),
            image_digest=self.digest(),
            harness="envkit mcp",
            harness_version="0.1.0",
            tokenizer_digest=self.digest(),
            template_digest=self.digest(),
            template_family="qwen3",
            engine=EngineId(model="policy", model_digest=self.digest(), dtype="bfloat16"),
            sampling=Sampling(logprobs_mode="processed"),
        )

    def digest(self) -> str:
        return self.random.bytes(32).hex()

    def episode(self, stream: Stream) -> Episode:
        models = [each for each in stream.segments if each.kind is Kind.MODEL]
        shown = [each for each in stream.segments if each.kind is Kind.TOOL]
        seconds = self.random.exponential(3.0, (len(models), 3))
        requests = tuple(
            EngineRequest(
                turn=each.turn,
                started_s=float(s[0]),
                first_token_s=float(s[1]),
                seconds=float(s[2]),
                prompt_tokens=each.start,
                sampled_tokens=each.stop - each.start,
                finish="stop",
                kv_version=7,
            )
            for each, s in zip(models, seconds, strict=True)
        )
        calls = tuple(
            CallRecord(
                call_id=f"call-{each.turn}-1",
                turn=each.turn,
                name="sheets_read_range",
                ok=True,
                started_s=float(self.random.exponential(9.0)),
                seconds=float(self.random.exponential(0.3)),
                fingerprint=self.digest(),
                observation_sha256=ids_digest(stream.token_ids[each.start : each.stop]),
            )
            for each in shown
            if each.turn in {model.turn for model in models}
        )
        return Episode(
            stream=stream,
            stop=Stop.FINAL,
            limits=Limits(),
            used=Used(
                turns=len(models),
                tool_calls=len(calls),
                sampled_tokens=int(stream.loss_mask.sum()),
                own_s=float(seconds.sum()),
            ),
            requests=requests,
            calls=calls,
            final_answer="The margin was 13.2 %, two points under the plan.",
        )


# --- ours and the peer ----------------------------------------------------------------------------


def write_ours(folder: Path, rows: list[Trajectory]) -> int:
    with Writer.open(folder, clock=lambda: 0.0) as writer:
        for row in rows:
            writer.append(row)
    return sum(file.stat().st_size for file in folder.glob("*.arrow"))


def write_parquet(path: Path, table: pa.Table) -> int:
    """As pyarrow does by itself: snappy, row groups of up to a million rows."""
    pq.write_table(table, path)
    return path.stat().st_size


def rows_of(table: pa.Table) -> list[Trajectory]:
    """What a trainer makes of a table, whoever read it."""
    return [decode(table.slice(n, 1).combine_chunks().to_batches()[0]) for n in range(len(table))]


def read_ours(folder: Path) -> list[pa.RecordBatch]:
    return [each for each in Store(folder).batches() if isinstance(each, pa.RecordBatch)]


def read_one_ours(folder: Path, row: str) -> Any:
    return Store(folder).batch(row)


def read_one_parquet(path: Path, group: int, row: str) -> Any:
    """By someone who knows in which group it lies."""
    table = pq.ParquetFile(path).read_row_group(group)
    return table.slice(table.column("trajectory_id").to_pylist().index(row), 1)


def group_of(path: Path, row: str) -> int:
    file = pq.ParquetFile(path)
    for group in range(file.num_row_groups):
        ids = file.read_row_group(group, columns=["trajectory_id"]).column(0).to_pylist()
        if row in ids:
            return group
    raise SystemExit(f"{row} is in no row group")


# --- measuring ------------------------------------------------------------------------------------


def in_turn(rounds: int, again: int = 1, **measured: Callable[[], Any]) -> dict[str, list[float]]:
    """Seconds of each, round after round, ours so often; a first round warms the caches."""
    seconds: dict[str, list[float]] = {name: [] for name in measured}
    for number in range(rounds + 1):
        for name, run in measured.items():
            for _ in range(again if name == "ours" else 1):
                began = time.perf_counter()
                done = run()
                took = time.perf_counter() - began
                del done
                if number:
                    seconds[name].append(took)
    return seconds


def read_times(ours: Path, parquet: Path, one: str, group: int) -> dict[str, Any]:
    """Seconds of all readings, by a process that does nothing else."""
    return {
        "full_s": in_turn(
            ROUNDS,
            AGAIN,
            ours=lambda: read_ours(ours),
            parquet=lambda: pq.read_table(parquet),
        ),
        "one_s": in_turn(
            ROUNDS,
            ours=lambda: read_one_ours(ours, one),
            parquet=lambda: read_one_parquet(parquet, group, one),
        ),
        "objects_s": in_turn(3, ours=lambda: list(Store(ours))),
    }


def measure(folder: Path, rows: list[Trajectory]) -> dict[str, Any]:
    tokens = sum(len(row.episode.stream.token_ids) for row in rows)
    ours, parquet = folder / "ours", folder / "rows.parquet"
    table = pa.Table.from_batches([encode(row) for row in rows])
    sizes = {
        "ours": write_ours(ours, rows),
        "parquet": write_parquet(parquet, table),
    }
    one = rows[len(rows) // 2].identity.trajectory_id
    group = group_of(parquet, one)
    middle = rows[len(rows) // 2]
    same = (
        all_equal(rows_of(pa.Table.from_batches(read_ours(ours))), rows)
        and all_equal(rows_of(pq.read_table(parquet)), rows)
        and all_equal([decode(read_one_ours(ours, one))], [middle])
        and all_equal(rows_of(read_one_parquet(parquet, group, one)), [middle])
    )
    lossless = all_equal(Store(ours), rows)
    os.sync()  # what is still to be written would be read against
    return {
        "rows": len(rows),
        "tokens": tokens,
        "model_share": sum(row.episode.used.sampled_tokens for row in rows) / tokens,
        "bytes_a_token": {name: size / tokens for name, size in sizes.items()},
        "same": same,
        "lossless": lossless,
        **elsewhere(ours, parquet, one, group),
    }


def elsewhere(ours: Path, parquet: Path, one: str, group: int) -> dict[str, Any]:
    """`read_times` in a process of its own."""
    command = [sys.executable, __file__, "read", str(ours), str(parquet), one, str(group)]
    said = subprocess.run(command, check=True, capture_output=True, text=True, timeout=300)
    return json.loads(said.stdout)


def all_equal(left: Iterable[Any], right: Iterable[Any]) -> bool:
    return all(equal(*pair) for pair in zip(left, right, strict=True))


def equal(left: Any, right: Any) -> bool:
    """To the bit, arrays included."""
    if isinstance(left, np.ndarray):
        return left.dtype == right.dtype and left.tobytes() == right.tobytes()
    if hasattr(left, "__dataclass_fields__"):
        return all(equal(getattr(left, n), getattr(right, n)) for n in left.__dataclass_fields__)
    if isinstance(left, tuple):
        return len(left) == len(right) and all(map(equal, left, right))
    return left == right


def main(count: int) -> int:
    measured: dict[str, dict[str, Any]] = {}
    for share in SHARES:
        writing = Writing(seed=round(100 * share))
        rows = [writing.trajectory(number, share) for number in range(count)]
        with tempfile.TemporaryDirectory() as folder:
            measured[f"{share:.0%}"] = measure(Path(folder), rows)
        show(share, measured[f"{share:.0%}"])
    judged = measured[f"{JUDGED:.0%}"]
    size = judged["bytes_a_token"]["ours"]
    faster, faster_one = (ratio(judged[key]) for key in ("full_s", "one_s"))
    breaches = failed(
        {
            f"{size:.2f} bytes a token": size <= MOST_BYTES,
            "values differ": all(each["same"] for each in measured.values()),
            "not lossless": all(each["lossless"] for each in measured.values()),
            f"{faster:.1f} times as fast": faster >= FASTER,
            f"{faster_one:.1f} times as fast for one": faster_one >= FASTER_ONE,
        }.items()
    )
    result = {
        "what": f"{count} trajectories in our store and in Parquet, at four shares of model tokens",
        "command": " ".join(["python", *sys.argv]),
        "machine": {**machine(), "pyarrow": pa.__version__},
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "bytes_a_token": round(size, 3),
        "faster": round(faster, 2),
        "faster_one": round(faster_one, 2),
        "breaches": breaches,
        "by_model_share": {name: raw(each) for name, each in measured.items()},
    }
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / "bar03_trajectory_store.json"
    path.write_text(json.dumps(result) + "\n")
    print(f"{'; '.join(breaches) or 'holds'}: {path.relative_to(ROOT)}")
    print(f"{size:.2f} bytes a token at {JUDGED:.0%} model tokens")
    print(f"Parquet / ours: {faster:.1f} for all rows, {faster_one:.1f} for one")
    return 1 if breaches else 0


def ratio(seconds: dict[str, list[float]]) -> float:
    """Of medians: rounds took turns, so what disturbed one disturbed its neighbour."""
    return statistics.median(seconds["parquet"]) / statistics.median(seconds["ours"])


def failed(checks: Iterable[tuple[str, bool]]) -> list[str]:
    return [name for name, holds in checks if not holds]


def show(share: float, done: dict[str, Any]) -> None:
    speeds = ", ".join(
        f"{name} {done['tokens'] / statistics.median(each) / 1e6:.0f}"
        for name, each in done["full_s"].items()
    )
    sizes = ", ".join(f"{name} {size:.2f}" for name, size in done["bytes_a_token"].items())
    ones = ", ".join(f"{n} {1000 * statistics.median(s):.2f}" for n, s in done["one_s"].items())
    objects = done["tokens"] / statistics.median(done["objects_s"]["ours"]) / 1e6
    print(
        f"{share:>4.0%} ({done['model_share']:.1%} model): bytes a token {sizes};"
        f" million tokens/s {speeds}, as objects {objects:.0f}; one row in ms {ones}",
        flush=True,
    )


def raw(done: dict[str, Any]) -> dict[str, Any]:
    kept = dict(done)
    for key in ("full_s", "one_s", "objects_s"):
        kept[key] = {name: [round(s, 6) for s in each] for name, each in done[key].items()}
    return kept


if __name__ == "__main__":
    if sys.argv[1:2] == ["read"]:
        ours, parquet, one, group = sys.argv[2:]
        print(json.dumps(read_times(Path(ours), Path(parquet), one, int(group))))
        sys.exit(0)
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 256))
