# SPDX-License-Identifier: Apache-2.0
"""What a run writes down as it goes, and what another process makes of it."""

from pathlib import Path
from typing import Any

import orjson
from hypothesis import given
from hypothesis import strategies as st

from envkit.preflight.journal import JOURNAL_NAME, Journal, read_journal, summed
from envkit.preflight.types import Event, Notice, RunGauges, TrialEnded, TrialPhase, TrialStarted


def gauges(live: int, **shared: float) -> RunGauges:
    return RunGauges(live_boxes=live, loop_stall_ms=1.0, memory_mib=2.0, shared_cpu_s=shared)


def written(root: Path, *events: Event, cut_off: int = 0, over: bool = True) -> None:
    journal = Journal(root, cut_off=cut_off)
    assert [journal.note(event) for event in events] == [""] * len(events)
    if over:
        journal.close()


def lines(root: Path) -> list[dict[str, Any]]:
    return [orjson.loads(line) for line in (root / JOURNAL_NAME).read_bytes().splitlines()]


def test_every_event_is_a_line_with_its_time(make: Any, tmp_path: Path) -> None:
    record = make.record(make.plan().specs[0])
    events = (
        TrialStarted(trial_id="a", task="t", sample=0),
        TrialPhase(trial_id="a", phase="act"),
        gauges(3, runner=1.0),
        TrialEnded(record=record),
        Notice(line="half a letter: \ud800"),
    )
    written(tmp_path, *events)
    told = lines(tmp_path)
    names = ["began", "started", "phase", "gauges", "ended", "notice", "over"]
    assert [line["event"] for line in told] == names
    assert [line["at"] for line in told] == sorted(line["at"] for line in told)
    assert told[4]["dir"] == record.trial_dir.name


def test_the_processes_of_a_run_are_added_up(tmp_path: Path) -> None:
    written(tmp_path, gauges(3, runner=1.0), gauges(5, runner=2.0), over=False)
    written(tmp_path, gauges(4, runner=1.5, nursery=1.0), cut_off=2)
    told = read_journal(tmp_path)
    assert told.processes == 2
    assert told.cut_off == 2
    assert [each.live_boxes for each in told.gauges] == [3, 5, 4]
    assert told.shared_cpu_s == {"runner": 3.5, "nursery": 1.0}
    ends = [lines(tmp_path)[n]["at"] for n in (2, -1)]
    assert told.seconds == sum(ends)


@given(cut=st.integers(min_value=0, max_value=400))
def test_a_journal_torn_anywhere_is_read_up_to_there_and_written_on(
    tmp_path_factory: Any, cut: int
) -> None:
    root = tmp_path_factory.mktemp("torn")
    written(root, gauges(3), gauges(5), over=False)
    path = root / JOURNAL_NAME
    whole = path.read_bytes()
    path.write_bytes(whole[:cut])
    complete = whole[:cut].count(b"\n") + (whole[cut - 1 : cut + 1].endswith(b"}\n") and cut > 0)
    written(root, gauges(7))
    told = read_journal(root)
    assert told.processes == 1 + (complete > 0)
    assert [each.live_boxes for each in told.gauges] == [*[3, 5][: max(0, complete - 1)], 7]


def test_a_journal_that_cannot_be_written_says_so_once(tmp_path: Path) -> None:
    (tmp_path / JOURNAL_NAME).symlink_to("/dev/full")
    journal = Journal(tmp_path)
    assert "No space left" in journal.note(gauges(1))
    assert journal.note(gauges(2)) == ""
    journal.close()


def test_no_journal_tells_of_nothing(tmp_path: Path) -> None:
    told = read_journal(tmp_path)
    assert (told.processes, told.seconds, told.gauges) == (0, 0, ())


def test_numbers_are_summed_by_name() -> None:
    assert summed({"a": 1.0}, {"a": 2.0, "b": 3.0}) == {"a": 3.0, "b": 3.0}
    assert summed() == {}
