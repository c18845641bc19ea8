# SPDX-License-Identifier: Apache-2.0
import json
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rltrain.refused import Refused
from rltrain.track.metrics import METRICS, History, Metrics, Step, cut_after, read_metrics


def written(path: Path, steps: Sequence[int]) -> Path:
    with Metrics(path, clock=lambda: 1.5) as metrics:
        for step in steps:
            metrics.log(step, {"loss/value": step / 4})
    return path


def steps_of(path: Path) -> list[int]:
    return [step.step for step in read_metrics(path).steps]


def test_what_was_logged_is_read_back(tmp_path: Path) -> None:
    path = written(tmp_path / METRICS, [0, 1, 5])
    assert read_metrics(path) == History(
        steps=tuple(
            Step(step=step, numbers={"time": 1.5, "loss/value": step / 4}) for step in (0, 1, 5)
        )
    )


def test_the_time_is_that_of_the_clock(tmp_path: Path) -> None:
    before = time.time()
    with Metrics(tmp_path / METRICS) as metrics:
        metrics.log(1, {})
    read = read_metrics(tmp_path / METRICS).steps[0].numbers["time"]
    assert read is not None
    assert before <= read <= time.time()


@pytest.mark.parametrize("value", [None, math.nan, math.inf, -math.inf])
def test_what_is_not_measured_or_not_finite_is_null(tmp_path: Path, value: float | None) -> None:
    with Metrics(tmp_path / METRICS) as metrics:
        metrics.log(1, {"loss/kl": value, "length/max": 7})
    row = json.loads((tmp_path / METRICS).read_text())
    assert (row["loss/kl"], row["length/max"]) == (None, 7)


def test_a_line_is_there_as_soon_as_it_is_logged(tmp_path: Path) -> None:
    program = (
        "import os, signal, sys; from pathlib import Path; from rltrain.track.metrics import *\n"
        "metrics = Metrics(Path(sys.argv[1])); metrics.log(1, {}); metrics.log(2, {})\n"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    killed = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / METRICS)], check=False, timeout=60
    )
    assert killed.returncode == -signal.SIGKILL
    assert steps_of(tmp_path / METRICS) == [1, 2]


def test_sync_puts_its_own_file_on_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    real = os.fsync

    def fsync(fd: int) -> None:
        synced.append(os.readlink(f"/proc/self/fd/{fd}"))
        real(fd)

    with Metrics(tmp_path / METRICS) as metrics:
        metrics.log(1, {})
        monkeypatch.setattr(os, "fsync", fsync)
        metrics.sync()
        assert synced == [str(tmp_path / METRICS)]


@pytest.mark.parametrize("step", [3, 2, -1])
def test_a_step_is_logged_once_and_in_order(tmp_path: Path, step: int) -> None:
    with Metrics(tmp_path / METRICS) as metrics:
        metrics.log(3, {})
        with pytest.raises(ValueError, match=f"step {step} does not come after 3"):
            metrics.log(step, {})
    assert steps_of(tmp_path / METRICS) == [3]


def test_a_file_that_is_opened_again_knows_its_last_step(tmp_path: Path) -> None:
    path = written(tmp_path / METRICS, [1, 2])
    with Metrics(path) as metrics, pytest.raises(ValueError, match="step 2 does not come after 2"):
        metrics.log(2, {})


def test_a_cut_last_line_is_left_out_and_told_of(tmp_path: Path) -> None:
    path = written(tmp_path / METRICS, [1, 2])
    path.write_bytes(path.read_bytes()[:-1])
    history = read_metrics(path)
    assert [step.step for step in history.steps] == [1]
    assert history.remark == "line 2 is cut, as a kill leaves it, and left out"


def test_nothing_is_told_of_a_whole_file(tmp_path: Path) -> None:
    assert read_metrics(written(tmp_path / METRICS, [1])).remark == ""


@pytest.mark.parametrize("left", [1, 20, -1])
def test_logging_goes_on_behind_a_cut_line(tmp_path: Path, left: int) -> None:
    path = written(tmp_path / METRICS, [1, 2])
    first, second = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(first + second[:left])
    written(path, [2, 3])
    assert steps_of(path) == [1, 2, 3]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"{", "is no JSON"),
        (b"\xff", "is no JSON"),
        (b"", "is no JSON"),
        (b"[1]", "is no JSON object"),
        (b'{"loss/value": 1}', "has no whole number as its step"),
        (b'{"step": 2.0}', "has no whole number as its step"),
        (b'{"step": null}', "has no whole number as its step"),
        (b'{"step": 1}', "step 1 comes after step 1"),
        (b'{"step": 0}', "step 0 comes after step 1"),
        (b'{"step": 2, "loss/kl": "0.1"}', "loss/kl is '0.1', neither a number nor null"),
        (b'{"step": 2, "loss/kl": true}', "loss/kl is True, neither a number nor null"),
        (b'{"step": 2, "loss/kl": NaN}', "loss/kl is nan, neither a number nor null"),
        (b'{"step": 2, "loss/kl": 1e999}', "loss/kl is inf, neither a number nor null"),
        (b'{"step": 2, "loss/kl": 1' + b"0" * 400 + b"}", "int too large to convert to float"),
        (b"[" * 100_000, "maximum recursion depth exceeded"),
    ],
)
def test_a_damaged_line_is_refused_by_its_number(tmp_path: Path, line: bytes, said: str) -> None:
    path = tmp_path / METRICS
    path.write_bytes(b'{"step": 1}\n' + line + b'\n{"step": 9}\n')
    with pytest.raises(Refused) as refused:
        read_metrics(path)
    assert str(refused.value).startswith(f"{path}, line 2: {said}")
    with pytest.raises(Refused):
        Metrics(path)


def test_no_file_is_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="No such file or directory; a run writes it"):
        read_metrics(tmp_path / METRICS)


@settings(deadline=None)
@given(steps=st.sets(st.integers(0, 30)), last=st.integers(-2, 32), tail=st.binary(max_size=3))
def test_cutting_keeps_the_steps_up_to_one_byte_for_byte(
    tmp_path_factory: pytest.TempPathFactory, steps: set[int], last: int, tail: bytes
) -> None:
    path = written(tmp_path_factory.mktemp("run") / METRICS, sorted(steps))
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines) + tail.replace(b"\n", b""))
    cut_after(path, last)
    kept = sum(step <= last for step in steps)
    assert path.read_bytes() == b"".join(lines[:kept])


def test_cutting_does_not_read_what_it_takes_off(tmp_path: Path) -> None:
    path = written(tmp_path / METRICS, [1, 2])
    whole = path.read_bytes()
    path.write_bytes(whole + b"\0\0\0\n{}\n")
    cut_after(path, 2)
    assert path.read_bytes() == whole


def test_cutting_refuses_damage_in_what_it_keeps(tmp_path: Path) -> None:
    path = tmp_path / METRICS
    path.write_bytes(b'{"step": 1}\n{"step": "x"}\n{"step": 3}\n')
    with pytest.raises(Refused, match="line 2"):
        cut_after(path, 3)
    assert path.read_bytes().count(b"\n") == 3


def test_cutting_where_nothing_is_makes_nothing(tmp_path: Path) -> None:
    cut_after(tmp_path / METRICS, 3)
    assert list(tmp_path.iterdir()) == []


def test_cutting_replaces_the_file_whole(tmp_path: Path) -> None:
    path = written(tmp_path / METRICS, [1, 2, 3])
    before = path.open("rb")
    with before:
        cut_after(path, 1)
        assert before.read().count(b"\n") == 3
    assert steps_of(path) == [1]
