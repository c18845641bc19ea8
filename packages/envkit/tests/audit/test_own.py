# SPDX-License-Identifier: Apache-2.0
"""What envkit's own exports say: the stop decides, not the look of the last turn."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings

from envkit.audit import examine, own
from envkit.audit.read import read
from envkit.audit.types import Owner, Run, Unreadable
from envkit.trajectory.atif import to_atif
from envkit.trajectory.types import Stop, Trajectory
from envkit.trajectory.writer import Writer

from ..trajectory.rows import trajectories, trajectory
from .conftest import Traces


def text(ids: list[int]) -> str:
    return " ".join(map(str, ids))


def exported(row: Trajectory) -> dict[str, object]:
    return to_atif(row.identity, row.episode, text, outcome=row.outcome)  # pyright: ignore[reportArgumentType]


def test_the_stops_are_those_of_trajectories() -> None:
    assert {stop.value for stop in Stop} == own.STOPS


@given(row=trajectories())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
def test_an_exported_trajectory_is_read_as_what_it_was(
    row: Trajectory, tmp_path_factory: pytest.TempPathFactory
) -> None:
    assume(all(call.name for call in row.episode.calls))
    traces = Traces(tmp_path_factory.mktemp("atif"))
    traces.write(traces.root / "trajectory.json", exported(row))
    (run,) = read(traces.root)
    assert isinstance(run, Run)
    agrees(run, row)


@given(row=trajectories())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
def test_a_stored_trajectory_is_read_as_what_it_was(
    row: Trajectory, tmp_path_factory: pytest.TempPathFactory
) -> None:
    store = tmp_path_factory.mktemp("run") / "trajectories"
    with Writer.open(store) as writer:
        writer.append(row)
    (run,) = (item for item in read(store.parent) if isinstance(item, Run))
    agrees(run, row)
    assert [(call.tool, call.failure is None) for call in run.calls] == [
        (record.name, record.ok) for record in row.episode.calls
    ]
    assert run.id == f"trajectories/{row.identity.trajectory_id}"


def agrees(run: Run, row: Trajectory) -> None:
    """A run and the row it was made from."""
    assert run.stop == row.episode.stop.value
    assert run.answered == (row.episode.stop is Stop.FINAL)
    assert run.task == row.identity.task
    assert run.verdict is not None
    if row.outcome.reward is None:
        assert not run.verdict.graded
    else:
        assert (run.verdict.reward, run.verdict.valid) == (
            row.outcome.reward,
            row.outcome.reward_valid,
        )
    assert [fault.code for fault in run.faults] == (
        [row.outcome.fault.code] if row.outcome.fault else []
    )
    assert all(fault.reward_valid == (fault.owner is Owner.MODEL) for fault in run.faults)


def test_a_turn_that_was_cut_off_is_no_answer(traces: Traces) -> None:
    document = exported(trajectory("last_turn_speaks"))
    for stop, answered in (("length", False), ("context", False), ("final", True)):
        document["extra"] = {**document["extra"], "stop": stop}  # pyright: ignore
        traces.write(traces.root / f"{stop}.json", document)
        run = next(item for item in read(traces.root / f"{stop}.json") if isinstance(item, Run))
        assert run.answered is answered


def test_what_others_call_a_stop_is_not_believed(traces: Traces) -> None:
    document = exported(trajectory("foreign"))
    document["extra"] = {"stop": "because", "outcome": {"reward": 0, "verdict": "graded"}}
    traces.write(traces.root / "trajectory.json", document)
    (run,) = read(traces.root)
    assert isinstance(run, Run)
    assert (run.stop, run.verdict) == ("", None)


def test_a_row_whose_trial_lies_beside_it_counts_once(traces: Traces) -> None:
    run = traces.root / "run"
    with Writer.open(run / "trajectories") as writer:
        for name in ("north__000", "south__000"):
            writer.append(trajectory(name))
    trial = run / "trials/north__000.attempt2"
    traces.write(trial / "agent/trajectory.json", exported(trajectory("north__000")))
    traces.write(trial / "envkit.json", {"verdict": "graded", "reward": 1.0, "reward_valid": True})
    runs = [item.id for item in read(traces.root) if isinstance(item, Run)]
    assert runs == ["run/trials/north__000.attempt2", "run/trajectories/south__000"]


def test_a_damaged_row_is_named_and_costs_no_other(traces: Traces) -> None:
    store = traces.root / "trajectories"
    with Writer.open(store) as writer:
        for name in ("north", "south", "east"):
            writer.append(trajectory(name))
    (segment,) = store.glob("*.arrow")
    data = bytearray(segment.read_bytes())
    data[len(data) // 2] ^= 0xFF
    segment.write_bytes(data)
    items = list(read(traces.root))
    assert sum(isinstance(item, Run) for item in items) == 2
    (bad,) = (item for item in items if isinstance(item, Unreadable))
    assert bad.file.startswith("trajectories/segment-")
    assert str(traces.root) not in bad.file + bad.reason


def test_a_single_segment_can_be_audited(traces: Traces) -> None:
    with Writer.open(traces.root / "store") as writer:
        writer.append(trajectory("north"))
    (segment,) = (traces.root / "store").glob("*.arrow")
    assert examine(Path(segment)).runs == 1
