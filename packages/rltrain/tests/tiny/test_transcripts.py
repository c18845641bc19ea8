# SPDX-License-Identifier: Apache-2.0
from pathlib import Path

import pytest

from rltrain.refused import Refused
from rltrain.tiny.transcripts import read_transcripts

from .recordings import write_recordings


def test_calls_of_one_tool_that_follow_each_other_are_one_turn(tmp_path: Path) -> None:
    first, second = read_transcripts(write_recordings(tmp_path))
    assert [[call.name for call in turn.calls] for turn in first.turns] == [
        ["list_files"],
        ["read_file", "read_file"],
    ]
    assert first.turns[1].results[0] == "no rules"
    assert (first.answer, second.answer) == ("amber", "birch")
    assert [each.name for each in first.tools] == ["list_files", "read_file"]


def test_samples_of_one_task_are_one_transcript(tmp_path: Path) -> None:
    write_recordings(tmp_path / "a")
    write_recordings(tmp_path / "b")
    assert len(read_transcripts(tmp_path)) == 2


def test_a_directory_without_recordings_is_refused_with_what_makes_them(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="record some: envkit preflight TASKS --agent replay"):
        read_transcripts(tmp_path)


NO_OBJECT = '{"steps": [{"message": "Look."}, 3], "agent": {"tool_definitions": []}}'


@pytest.mark.parametrize("text", ["{}", "[]", "no JSON", '{"steps": [], "agent": {}}', NO_OBJECT])
def test_what_is_no_recording_is_refused_by_its_name(tmp_path: Path, text: str) -> None:
    (tmp_path / "trajectory.json").write_text(text, "utf-8")
    with pytest.raises(Refused, match=r"trajectory\.json: is no recording of a replay"):
        read_transcripts(tmp_path)
