# SPDX-License-Identifier: Apache-2.0
"""``envkit run`` killed at 72 points and resumed: ``python -m nox -s bench -- kill_run``.

Runs eight trials, four at once, of a model that a scripted engine plays, and kills the runner by
SIGKILL at each named point (before and after the write, the fsync and the rename of a segment and
of a verdict's record, and around what is said of them) and at fifty drawn by a seed: over the
events of a run, and over the fsyncs and renames of its files. Meanwhile somebody outside reads the
run's ``--events`` and keeps the set of trials that have ended. Then the run is resumed.

Held is: each trial that was said to have ended has its row when the runner is dead; after the
resumption every trial has exactly one row, by pyarrow alone as well; records and segments that were
there keep their inode, time and bytes; no trial with a record is started again; each is said once;
nothing is left behind. Then bytes of the store are flipped, and its files torn: each damage is
named or harms nothing, and costs no row but its own; a resumption stores again what is lost.
"""

from __future__ import annotations

import hashlib
import json
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from parts.machine import machine

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
PARTS = ROOT / "packages/envkit"
KILL_AT = PARTS / "tests/preflight/kill_at.py"
ENVKIT = (sys.executable, "-c", "from envkit.cli import main; main()")
TRIALS, AT_ONCE = 8, 4
NAMED = {
    "asked-on-disk": 1,
    "tokenizer": 1,
    "preparing": 1,
    "before-the-first-box": 1,
    "act": 3,
    "grade": 3,
    "record-before-write": 2,
    "record-before-fsync": 3,
    "record-before-rename": 4,
    "record-after-rename": 5,
    "record-on-disk-but-not-said": 3,
    "segment-before-write": 1,
    "segment-before-fsync": 1,
    "segment-after-fsync": 1,
    "segment-before-rename": 1,
    "segment-after-rename": 1,
    "segment-before-its-name-is-fsynced": 1,
    "segment-durable": 1,
    "ended-but-not-said": 3,
    "ended-and-said": 3,
    "cleanup": 1,
    "report": 1,
}
"""Point: the how manieth time the run comes there."""
SEED = 11
DRAWN = {"event": 24, "any-fsync": 13, "any-rename": 13}
"""Point, over the times that a whole run comes there: how many are drawn, by turns if it is more
than there are."""
FLIPS, CUTS = 400, 40
TIMEOUT_S = 300


def main() -> int:
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="kill-run-") as holder:
        root = Path(holder)
        with engine(root) as asked:
            whole = root / "whole"
            times = counted(asked, whole)
            kills = [*NAMED.items(), *drawn(times)]
            draw = random.Random(SEED)
            tried = [hit(asked, root / f"run{n}", *kill, draw) for n, kill in enumerate(kills)]
            rows = [each for each, _ in tried]
            damage = damaged(asked, whole)
    breaches = [*(b for each in rows for b in each["breaches"]), *damage["breaches"]]
    result = {
        "what": f"{len(rows)} kills of a run of {TRIALS} trials, {AT_ONCE} at once",
        "command": "python -m nox -s bench -- kill_run",
        "machine": machine(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "seconds": round(time.monotonic() - began, 1),
        "seed": SEED,
        "times_a_whole_run_comes_there": times,
        "drawn_but_never_come_to": [each for _, missed in tried for each in missed],
        "rows": rows,
        "damage": damage,
    }
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / "kill_run.json"
    path.write_text(json.dumps(result, indent=1) + "\n")
    print(damage_line(damage))
    print(f"{'BREACHED' if breaches else 'holds'}: {path.relative_to(ROOT)}")
    return 1 if breaches else 0


# --- the run --------------------------------------------------------------------------------------


@contextmanager
def engine(root: Path) -> Iterator[list[str]]:
    """A scripted engine, and the command line of a run that asks it."""
    sys.path.insert(0, str(PARTS))
    from tests.run.small import model_that_says
    from tests.trial.tiny import make_task

    for name in ("one", "other"):
        make_task(root / "tasks", name)
    with model_that_says(root) as (model, serving):
        words = ["run", str(root / "tasks"), "--engine", serving.url, "--tokenizer", str(model)]
        yield [*words, "--samples", str(TRIALS // 2), "--concurrency", str(AT_ONCE)]


def counted(asked: list[str], run_dir: Path) -> dict[str, int]:
    """How often a run that is not killed comes to the points that are drawn over."""
    done = run([*ENVKIT, *asked, *places(run_dir)])
    assert done.returncode == 0, done.stdout + done.stderr
    events = len((run_dir / "journal.jsonl").read_text().splitlines()) - 2
    files = TRIALS + len(segments(run_dir)) + 1  # records, segments and what was asked
    return {"event": events, "any-fsync": files, "any-rename": files}


def drawn(times: dict[str, int]) -> Iterator[tuple[str, int]]:
    draw = random.Random(SEED)
    for point, wanted in DRAWN.items():
        numbers = list(range(1, times[point] + 1))
        while wanted > 0:
            taken = sorted(draw.sample(numbers, min(wanted, len(numbers))))
            yield from ((point, number) for number in taken)
            wanted -= len(taken)


def places(run_dir: Path) -> list[str]:
    return ["--out", str(run_dir), "--events", str(run_dir) + ".events"]


# --- one kill -------------------------------------------------------------------------------------


def hit(
    asked: list[str], run_dir: Path, point: str, number: int, draw: random.Random
) -> tuple[dict[str, Any], list[list[Any]]]:
    """One kill, and the draws before it that this run never came to: an earlier one is drawn.

    How many events a run has, and how many segments it writes, depends on how fast it is.
    """
    missed: list[list[Any]] = []
    while True:
        each = told(row(asked, run_dir.with_name(f"{run_dir.name}-{len(missed)}"), point, number))
        if each["killed"] or point in NAMED or number == 1:
            return each, missed
        missed.append([point, number])
        number = draw.randrange(1, number)


def row(asked: list[str], run_dir: Path, point: str, number: int) -> dict[str, Any]:
    """One kill and what came of it."""
    events = Path(str(run_dir) + ".events")
    with Watcher(events) as watcher:
        words = [sys.executable, str(KILL_AT), point, str(number), *asked, *places(run_dir)]
        killed = run(words)
    heard, before, stored = watcher.ended, files(run_dir), stored_rows(run_dir)
    if not (run_dir / "run.json").exists():  # it was killed before it had promised anything
        again = [*ENVKIT, *asked, *places(run_dir), "--json"]
    else:
        again = [*ENVKIT, "run", "--resume", str(run_dir), *places(run_dir)[2:], "--json"]
    began = time.monotonic()
    with Watcher(events) as watcher:
        resumed = run(again)
    seconds = time.monotonic() - began
    token = json.loads((run_dir / "run.json").read_text())["run_token"]
    after = files(run_dir)
    found = {
        "point": point,
        "number": number,
        "killed": killed.returncode == -9,
        "heard_before": sorted(heard),
        "rows_before": stored,
        "records_before": records(before),
        "resume_exit": resumed.returncode,
        "resume_s": round(seconds, 2),
        "report": report_of(resumed.stdout),
        "changed": sorted(name for name, mark in before.items() if after.get(name) != mark),
        "started_again": sorted(set(started(run_dir)) & set(records(before))),
        "rows": stored_rows(run_dir),
        "heard": watcher.ended,
        "parts": sorted(path.name for path in half_files(run_dir)),
        "left": left(token),
    }
    return {**found, "breaches": breaches(found)}


def breaches(found: dict[str, Any]) -> list[str]:
    """What of the bar does not hold."""
    report, rows = found["report"], found["rows"]
    once = dict.fromkeys(names(), 1)
    checks = {
        "it was not killed": found["killed"],
        "the resumed run did not pass": (found["resume_exit"], report.get("verdict"))
        == (0, "PASS"),
        "a trial was said to have ended and has no row": set(found["heard_before"])
        <= found["rows_before"].keys(),
        "a row was there twice before": all(n == 1 for n in found["rows_before"].values()),
        "a trial is lost or repeated": rows == once,
        "a reward is missing": report.get("reward") == [TRIALS, 1.0],
        "the report has other trajectories": report.get("trajectories") == TRIALS,
        "a file that was there changed": not found["changed"],
        "a trial that had ended was started again": not found["started_again"],
        "a trial was said twice or never": Counter(found["heard"]) == Counter(once),
        "half a file is left": not found["parts"],
        "something is left in the end": found["left"] == {"processes": 0, "cgroups": 0, "files": 0},
    }
    return [name for name, held in checks.items() if not held]


def names() -> list[str]:
    return [f"{task}__{n:03d}" for task in ("one", "other") for n in range(TRIALS // 2)]


def report_of(text: str) -> dict[str, Any]:
    try:
        told = json.loads(text)
    except ValueError:
        return {"said": text[-500:]}
    return {
        "verdict": told["verdict"],
        "why": told["why"],
        "reward": [told["rewards"]["n"], told["rewards"]["mean"]],
        "resumed": told["resumed"],
        "trajectories": told["trajectories"]["trajectories"],
    }


def files(run_dir: Path) -> dict[str, list[Any]]:
    """Each record and each segment that is there: what names its file, and what is in it."""
    return {
        str(path.relative_to(run_dir)): [
            path.stat().st_ino,
            path.stat().st_mtime_ns,
            hashlib.sha256(path.read_bytes()).hexdigest(),
        ]
        for path in (*run_dir.glob("trials/*/envkit.json"), *segments(run_dir))
    }


def half_files(run_dir: Path) -> Iterator[Path]:
    """What was set aside with the trial it is of is nobody's."""
    return (path for path in run_dir.glob("**/.*.part") if "cut-off" not in path.parts)


def records(found: dict[str, list[Any]]) -> list[str]:
    return sorted(Path(name).parts[1] for name in found if name.startswith("trials"))


def segments(run_dir: Path) -> list[Path]:
    return sorted(run_dir.glob("trajectories/segment-*.arrow"))


def stored_rows(run_dir: Path) -> dict[str, int]:
    """Rows by id, as any reader of Arrow sees them: nothing of envkit is asked."""
    found: Counter[str] = Counter()
    for path in segments(run_dir):
        with pa.OSFile(str(path)) as file:
            found.update(pa.ipc.open_file(file).read_all()["trajectory_id"].to_pylist())
    return dict(sorted(found.items()))


def started(run_dir: Path) -> Iterator[str]:
    """The trials that the last process of a run started."""
    path = run_dir / "journal.jsonl"
    read = [json.loads(text) for text in path.read_text().splitlines()]
    last = max(n for n, each in enumerate(read) if each["event"] == "began")
    return (each["trial"] for each in read[last:] if each["event"] == "started")


class Watcher:
    """Somebody outside, who reads the events of a run as they come."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self.ended: list[str] = []
        self._read = 0

    def __enter__(self) -> Watcher:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        self._take()

    def _watch(self) -> None:
        while not self._over.wait(0.005):
            self._take()

    def _take(self) -> None:
        data = self._path.read_bytes() if self._path.exists() else b""
        whole = data[: data.rfind(b"\n") + 1]
        for text in whole[self._read :].splitlines():
            self.ended.append(json.loads(text)["trial"])
        self._read = len(whole)


def left(token: str) -> dict[str, int]:
    """What carries a run's token now."""
    groups = [path for path in Path("/sys/fs/cgroup").glob(f"**/envkit-{token}*") if path.is_dir()]
    return {
        "processes": sum(f"ENVKIT_RUN={token}".encode() in each for each in environments()),
        "cgroups": len({path.name for path in groups}),
        "files": int(Path("/tmp", f"envkit-run-{token}").exists()),
    }


def environments() -> Iterator[list[bytes]]:
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            yield path.read_bytes().split(b"\0")
        except OSError:
            continue  # gone meanwhile


def run(words: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        words, cwd=ROOT, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )


# --- damage ---------------------------------------------------------------------------------------


def damaged(asked: list[str], run_dir: Path) -> dict[str, Any]:
    """Flipped bytes and torn files, in a store of several segments."""
    good = read(run_dir)
    assert sorted(good["rows"]) == names()
    assert not good["bad"]
    draw = random.Random(SEED)
    rows = [flip(run_dir, good, draw) for _ in range(FLIPS)]
    rows += [cut(run_dir, good, draw) for _ in range(CUTS)]
    healed = heal(run_dir, good)
    wrong = [each for each in rows if each["wrong"]]
    unnamed = [each for each in rows if each["lost"] and not each["named"]]
    others = [each for each in rows if each["other_rows_lost"]]
    checks = {
        "a damaged row was read as if it were sound": not wrong,
        "a row was lost and nothing was named": not unnamed,
        "a damage cost other rows": not others,
        "a resumption did not store again what was torn": healed["rows"] == names(),
        "a resumption did not name what was torn": bool(healed["named"]),
        "a resumption changed what a row holds": healed["same"],
    }
    return {
        "segments": len(segments(run_dir)),
        "bytes": sum(path.stat().st_size for path in segments(run_dir)),
        "flips": FLIPS,
        "flips_named": sum(each["named"] for each in rows[:FLIPS]),
        "flips_without_effect": sum(not each["named"] for each in rows[:FLIPS]),
        "flips_that_cost_a_row": sum(bool(each["lost"]) for each in rows[:FLIPS]),
        "cuts": CUTS,
        "cuts_named": sum(each["named"] for each in rows[FLIPS:]),
        "healed": healed,
        "breaches": [name for name, held in checks.items() if not held],
    }


def flip(run_dir: Path, good: dict[str, Any], draw: random.Random) -> dict[str, Any]:
    """One bit of one byte."""
    path = draw.choice(segments(run_dir))
    data = bytearray(path.read_bytes())
    data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
    return spoilt(run_dir, good, path, bytes(data), most=1)


def cut(run_dir: Path, good: dict[str, Any], draw: random.Random) -> dict[str, Any]:
    """A file that ends too early; it may cost the rows behind the cut, of this file alone."""
    path = draw.choice(segments(run_dir))
    data = path.read_bytes()
    mine = len(rows_of(path))
    return spoilt(run_dir, good, path, data[: draw.randrange(len(data))], most=mine)


def spoilt(
    run_dir: Path, good: dict[str, Any], path: Path, data: bytes, *, most: int
) -> dict[str, Any]:
    """What is read of the store with other bytes in one file, which are then put right."""
    sound, mine = path.read_bytes(), rows_of(path)
    path.write_bytes(data)
    try:
        now = read(run_dir)
    finally:
        path.write_bytes(sound)
    lost = sorted(good["rows"].keys() - now["rows"].keys())
    return {
        "lost": lost,
        "other_rows_lost": len(lost) > most or not set(lost) <= set(mine),
        "named": any(path.name in each for each in now["bad"]),
        "wrong": any(good["rows"].get(name) != mark for name, mark in now["rows"].items()),
    }


def heal(run_dir: Path, good: dict[str, Any]) -> dict[str, Any]:
    """The first segment loses its head and its end; the run is resumed."""
    path = segments(run_dir)[0]
    lost = rows_of(path)
    path.write_bytes(path.read_bytes()[40:200])
    done = run([*ENVKIT, "run", "--resume", str(run_dir), *places(run_dir)[2:], "--json"])
    told = json.loads(done.stdout)
    now = read(run_dir)
    return {
        "lost": lost,
        "exit": done.returncode,
        "named": [each.rpartition("/")[2] for each in told["trajectories"]["damage"]],
        "started": sorted(started(run_dir)),
        "rows": sorted(now["rows"]),
        "same": now["rows"] == good["rows"],
    }


def read(run_dir: Path) -> dict[str, Any]:
    """Good rows of a store by what is in them, and what is said of the others."""
    from envkit.trajectory.store import Store
    from envkit.trajectory.types import Trajectory

    rows: dict[str, str] = {}
    bad: list[str] = []
    for each in Store(run_dir / "trajectories").scan():
        if isinstance(each, Trajectory):
            rows[each.identity.trajectory_id] = mark(each)
        else:
            bad.append(str(each))
    return {"rows": rows, "bad": bad}


def mark(trajectory: Any) -> str:
    """A digest over all of a row."""
    stream = trajectory.episode.stream
    arrays = [stream.token_ids, stream.loss_mask, stream.weight_version]
    parts = [np.ascontiguousarray(each).tobytes() for each in (*arrays, stream.logprobs)]
    rest = [trajectory.identity, trajectory.outcome, stream.segments]
    rest += [getattr(trajectory.episode, n) for n in type(trajectory.episode).__slots__[1:]]
    return hashlib.sha256(b"|".join([*parts, repr(rest).encode()])).hexdigest()


def rows_of(path: Path) -> list[str]:
    with pa.OSFile(str(path)) as file:
        return pa.ipc.open_file(file).read_all()["trajectory_id"].to_pylist()


# --- output ---------------------------------------------------------------------------------------


def told(each: dict[str, Any]) -> dict[str, Any]:
    """A row, printed: the whole takes its time."""
    print(line(each), flush=True)
    return each


def line(each: dict[str, Any]) -> str:
    verdict = "; ".join(each["breaches"]) or "holds"
    return (
        f"{each['point']:<36} {each['number']:>4}  {len(each['records_before'])} records, "
        f"{len(each['rows_before'])} rows, {len(each['heard_before'])} heard; "
        f"resumed in {each['resume_s']:4.1f} s  {verdict}"
    )


def damage_line(found: dict[str, Any]) -> str:
    verdict = "; ".join(found["breaches"]) or "holds"
    return (
        f"{found['flips']} flips in {found['bytes']:,} bytes of {found['segments']} segments: "
        f"{found['flips_named']} named, {found['flips_without_effect']} without effect, "
        f"{found['flips_that_cost_a_row']} cost a row; {found['cuts']} cuts: "
        f"{found['cuts_named']} named  {verdict}"
    )


if __name__ == "__main__":
    sys.exit(main())
