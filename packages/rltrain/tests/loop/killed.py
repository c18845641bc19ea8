# SPDX-License-Identifier: Apache-2.0
"""Runs that are killed and gone on with: ``killed.py CASES PLACE``, results as JSON on stdout.

Every run is a process of its own, forked from this one, which has imported all that is large. A
case is killed by SIGKILL where one function is entered or left, or so many seconds after it began,
and gone on with; what it ends in is compared with a run that nobody killed: the bytes of the last
checkpoint's shards, and every number of every step that is no time. Not a test by itself.
"""

from __future__ import annotations

import json
import math
import os
import shutil
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import torch

import rltrain.loop.run  # noqa: F401
from rltrain.cli_fit import Asked, train
from rltrain.policy.ranks import MEETING

sys.path.insert(0, str(Path(__file__).parents[3] / "envkit/tests/preflight"))
from kill_at import LEFT, Point, kill_at

DURABLE, CHECKPOINT = "envkit.durable", "rltrain.loop.checkpoint"
BACKEND = "rltrain.policy.fsdp.backend:FsdpBackend"
COMMIT = "commit.json"
POINTS: dict[str, tuple[Point, int]] = {
    "directory-begun": (Point(function="rltrain.loop.directory:begin", when=LEFT), 1),
    "before-a-step": (Point(function="rltrain.loop.fit:Fit.step"), 4),
    "before-the-optimizer-step": (Point(function=f"{BACKEND}._rate"), 4),
    "in-the-optimizer-step": (Point(function="torch.optim.adam:_single_tensor_adam"), 4),
    "after-the-optimizer-step": (Point(function=f"{BACKEND}.forget"), 4),
    "numbers-logged": (Point(function="rltrain.track.metrics:Metrics.log", when=LEFT), 4),
    "checkpoint-begun": (Point(function=f"{CHECKPOINT}:begin", when=LEFT), 2),
    "shard-write": (Point(function="torch.distributed.checkpoint.filesystem:_write_item"), 90),
    "shards-written": (Point(function=f"{BACKEND}.save", when=LEFT), 2),
    "shards-on-disk": (Point(function=f"{CHECKPOINT}:_mark", when=LEFT), 3),
    "commit-before-write": (Point(function=f"{DURABLE}:write_part", file=COMMIT), 2),
    "commit-before-rename": (Point(function=f"{DURABLE}:publish", file=COMMIT), 2),
    "commit-written": (Point(function=f"{DURABLE}:write_durably", when=LEFT, file=COMMIT), 2),
    "commit": (Point(function=f"{CHECKPOINT}:publish", when=LEFT), 2),
    "prune": (Point(function=f"{CHECKPOINT}:prune"), 3),
    "older-taken-away": (Point(function=f"{CHECKPOINT}:_remove", when=LEFT), 1),
    "first-checkpoint": (Point(function=f"{CHECKPOINT}:begin"), 1),
}
"""Where, and the how manieth time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What became of a case."""

    name: str
    killed: bool
    """By our signal, and not ended before."""
    steps_logged: int
    """When it was dead."""
    checkpoints: int
    resumed: int
    """Exit status of the run that went on."""
    resumed_at: int
    same_weights: bool
    """And optimizer: the bytes of the last checkpoint's shards."""
    same_numbers: bool
    left: list[str]
    """What should not be there in the end."""


LARGE = ("peft", "torch.utils.tensorboard", "transformers.models.qwen3.modeling_qwen3")
"""What a run imports when it needs it."""


def main(cases: dict[str, Any], place: Path) -> list[dict[str, Any]]:
    torch.set_num_threads(1)
    for name in LARGE:
        import_module(name)
    whole = place / "whole"
    asked = _asked(cases, whole)
    began = time.monotonic()
    assert _waited(_forked(lambda: train(asked), place / "whole.log")) == 0, "see whole.log"
    took = time.monotonic() - began
    found = [
        _case(name, _asked(cases, place / name), whole, _point(name)) for name in cases["points"]
    ]
    for number, share in enumerate(cases.get("moments", ())):
        name = f"moment-{number}"
        found.append(_case(name, _asked(cases, place / name), whole, share * took))
    if cases.get("two_ranks"):
        found += _two_ranks(cases, place)
    return [asdict(each) for each in found]


def _two_ranks(cases: dict[str, Any], place: Path) -> list[Found]:
    """The second rank dies; the run goes on with two ranks, and with one.

    What dropout draws is each rank's own, so there is none.
    """
    cases = {**cases, "settings": [*cases["settings"], "policy.lora.dropout=0.0"]}
    whole, out = place / "whole-2", place / "rank-dies"
    assert _ranks(_asked(cases, whole), 2, place / "whole-2.log") == [0, 0], "see whole-2.log"
    log = out.with_suffix(".log")
    first, second = _ranks(_asked(cases, out), 2, log, POINTS["after-the-optimizer-step"])
    assert first != 0, "the first rank went on alone"
    alone = Path(shutil.copytree(out, place / "goes-on-alone"))
    found: list[Found] = []
    for root, ranks in ((out, 2), (alone, 1)):
        logged, kept = len(_numbers(root)), len(_checkpoints(root))
        resumed = max(_ranks(_again(root), ranks, log))
        same = _shards(root) == _shards(whole)
        numbers = _numbers(root) == _numbers(whole)
        if ranks == 1:  # sums come in another order, shards in other files
            same = numbers = _near(_numbers(root), _numbers(whole))
        found.append(
            Found(
                name=root.name,
                killed=second == -signal.SIGKILL,
                steps_logged=logged,
                checkpoints=kept,
                resumed=resumed,
                resumed_at=-1,
                same_weights=same,
                same_numbers=numbers,
                left=[each.name for each in (root / "checkpoints").glob(".*")],
            )
        )
    return found


def _near(one: list[dict[str, Any]], other: list[dict[str, Any]]) -> bool:
    """Numbers of the same steps, but for how sums were rounded."""
    return len(one) == len(other) and all(
        math.isclose(value or 0.0, there[name] or 0.0, rel_tol=1e-3, abs_tol=1e-5)
        for here, there in zip(one, other, strict=True)
        for name, value in here.items()
    )


def _ranks(asked: Asked, ranks: int, log: Path, kill: tuple[Point, int] | None = None) -> list[int]:
    """Exit statuses; the last rank is killed at a point."""
    meeting = log.with_suffix(f".meeting-{time.monotonic_ns()}")

    def run(rank: int) -> int:
        os.environ |= {
            "RANK": str(rank),
            "WORLD_SIZE": str(ranks),
            MEETING: f"file://{meeting}",
        }
        if kill and rank == ranks - 1:
            kill_at(*kill)
        return train(asked)

    pids = [_forked(lambda rank=rank: run(rank), log) for rank in range(ranks)]
    return [_waited(pid) for pid in pids]


def _point(name: str) -> tuple[Point, int]:
    return POINTS[name]


def _asked(cases: dict[str, Any], out: Path) -> Asked:
    return Asked(
        recipe=None,
        trajectories=Path(cases["store"]),
        out=out,
        resume=None,
        settings=cases["settings"],
        dry_run=False,
        as_json=True,
    )


def _case(name: str, asked: Asked, whole: Path, where: tuple[Point, int] | float) -> Found:
    out = asked.out
    assert out is not None
    log = out.with_suffix(".log")
    status = _waited(_killed(asked, where, log))
    logged, kept = len(_numbers(out)), len(_checkpoints(out))
    again = _again(out) if (out / "run.json").exists() else asked
    told = out.with_suffix(".json")
    resumed = _waited(_forked(lambda: train(again), log, told))
    return Found(
        name=name,
        killed=status == -signal.SIGKILL,
        steps_logged=logged,
        checkpoints=kept,
        resumed=resumed,
        resumed_at=json.loads(told.read_text("utf-8") or "{}").get("resumed_at", -1),
        same_weights=_shards(out) == _shards(whole),
        same_numbers=_numbers(out) == _numbers(whole),
        left=[each.name for each in (out / "checkpoints").glob(".*")],
    )


def _again(out: Path) -> Asked:
    return Asked(
        recipe=None,
        trajectories=None,
        out=None,
        resume=out,
        settings=[],
        dry_run=False,
        as_json=True,
    )


def _killed(asked: Asked, where: tuple[Point, int] | float, log: Path) -> int:
    if not isinstance(where, float):
        return _forked(lambda: _train_until(asked, *where), log)
    pid = _forked(lambda: train(asked), log)
    threading.Timer(where, _kill, [pid]).start()
    return pid


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def _train_until(asked: Asked, point: Point, number: int) -> int:
    kill_at(point, number)
    return train(asked)


def _forked(run: Callable[[], int], log: Path, told: Path | None = None) -> int:
    """Process id of a run whose words go into files."""
    if pid := os.fork():
        return pid
    status = 1
    try:
        os.dup2(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND), 2)
        os.dup2(os.open(told or os.devnull, os.O_WRONLY | os.O_CREAT), 1)
        status = run()
        sys.stdout.flush()
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def _waited(pid: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def _checkpoints(out: Path) -> list[Path]:
    return sorted((out / "checkpoints").glob("step-*"))


def _shards(out: Path) -> list[bytes]:
    last = _checkpoints(out)[-1]
    return [last.name.encode(), *(f.read_bytes() for f in sorted(last.rglob("*.distcp")))]


def _numbers(out: Path) -> list[dict[str, Any]]:
    """Of every step that was logged, but for times."""
    file = out / "metrics.jsonl"
    lines = file.read_bytes().split(b"\n")[:-1] if file.exists() else []
    rows = [json.loads(line) for line in lines]
    return [
        {name: value for name, value in row.items() if not name.startswith(("seconds/", "time"))}
        for row in rows
    ]


if __name__ == "__main__":
    told = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    out = os.dup(1)
    found = main(told, Path(sys.argv[2]))
    os.write(out, json.dumps(found).encode())
