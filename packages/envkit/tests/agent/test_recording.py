# SPDX-License-Identifier: Apache-2.0
"""A recording is read whole, or the line that is wrong is named."""

from pathlib import Path

import pytest

from envkit.agent.recording import read_recording
from envkit.fault import TaskError


def written(tmp_path: Path, *lines: str) -> Path:
    path = tmp_path / "calls.jsonl"
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def test_calls_and_answer_are_read_in_order(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        '{"tool": "pdf_server_read", "arguments": {"page": 1}}',
        "",
        '{"tool": "fs_server_read", "arguments": {}, "expect_error": true}',
        '{"final_answer": "zw\u00f6lf\\nby the contract"}',
        "",
    )
    recording = read_recording(path)
    assert [call.tool for call in recording.calls] == ["pdf_server_read", "fs_server_read"]
    assert [call.expect_error for call in recording.calls] == [False, True]
    assert recording.calls[0].arguments == {"page": 1}
    assert recording.final_answer == "zw\u00f6lf\nby the contract"
    assert recording.tools == {"pdf_server_read", "fs_server_read"}


@pytest.mark.parametrize(
    ("lines", "where", "what"),
    [
        (["{"], ":1", "not JSON"),
        (['{"tool": "a"}', "[1]"], ":2", "one JSON object a line"),
        (['{"arguments": {}}'], ":1", "no tool named"),
        (['{"tool": 3}'], ":1", "no tool named"),
        (['{"tool": "a", "arguments": [1]}'], ":1", "arguments is no object"),
        (['{"tool": "a", "think_s": "long"}'], ":1", "think_s is no number"),
        (['{"tool": "a", "think_s": true}'], ":1", "think_s is no number"),
        (['{"tool": "a", "think_s": -1}'], ":1", "think_s is no number"),
        (['{"tool": "a", "think_s": Infinity}'], ":1", "think_s is no number"),
        (['{"final_answer": "x"}', '{"tool": "a"}'], ":2", "nothing may follow"),
        ([""], "calls.jsonl", "no call in it"),
    ],
)
def test_a_broken_recording_is_one_clear_line(
    tmp_path: Path, lines: list[str], where: str, what: str
) -> None:
    with pytest.raises(TaskError, match=what) as caught:
        read_recording(written(tmp_path, *lines))
    assert where in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_or_binary_recording_is_named(tmp_path: Path) -> None:
    with pytest.raises(TaskError, match="cannot be read"):
        read_recording(tmp_path / "none.jsonl")
    (tmp_path / "bytes.jsonl").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(TaskError, match="cannot be read"):
        read_recording(tmp_path / "bytes.jsonl")


def test_a_recording_says_whether_it_knows_how_long_the_model_took(tmp_path: Path) -> None:
    silent, timed = '{"tool": "a"}', '{"tool": "a", "think_s": 4.5}'
    assert not read_recording(written(tmp_path, silent)).has_times
    recording = read_recording(written(tmp_path, silent, timed))
    assert recording.has_times
    assert [call.think_s for call in recording.calls] == [0.0, 4.5]
