# SPDX-License-Identifier: Apache-2.0
import json
import os
from pathlib import Path

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envkit.audit import SCHEMA, examine
from envkit.audit.detect import DETECTORS
from envkit.audit.document import ReadError
from envkit.audit.read import read_document
from envkit.audit.types import Finding, Run

KEYS = "schema runs tools fingerprints detectors findings rewards ignored unreadable".split()


def test_the_json_has_exactly_its_keys(fixtures: Path) -> None:
    report = examine(fixtures).to_dict()
    assert list(report) == KEYS
    assert report["schema"] == SCHEMA
    assert set(report["tools"]["sheets"]) == {"calls", "failed", "low", "high", "runs"}
    assert set(report["fingerprints"][0]) == {"text", "tool", "count", "runs", "example"}
    assert set(report["fingerprints"][0]["example"]) == {"file", "step"}
    assert list(report["detectors"]) == [detector.name for detector in DETECTORS]
    assert set(report["detectors"]["polluted-zero"]) == {"findings", "runs", "judged"}
    assert report["rewards"] == {"recorded": 7, "valid": 3}
    assert set(report["unreadable"][0]) == {"file", "reason"}
    assert set(report["findings"][0]) == set(Finding.__dataclass_fields__)
    assert json.loads(orjson.dumps(report)) == report


def test_counts_of_the_hand_written_traces(fixtures: Path) -> None:
    report = examine(fixtures)
    assert (report.runs, report.ignored, len(report.unreadable)) == (13, 32, 3)
    assert {name: (row.calls, row.failed, row.runs) for name, row in report.tools.items()} == {
        "sheets": (12, 12, 3),
        "code_exec": (10, 8, 4),
        "pdf_search": (5, 1, 4),
        "final_answer": (3, 0, 3),
        "docs": (1, 0, 1),
    }
    found = {name: (row.findings, row.runs, row.judged) for name, row in report.detectors.items()}
    assert found == {
        "schema-rejection": (12, 3, 12),
        "package-discovery": (3, 3, 12),
        "command-missing": (4, 3, 12),
        "identical-calls": (3, 3, 12),
        "missing-verdict": (5, 5, 12),
        "turn-cap-no-answer": (3, 3, 11),
        "polluted-zero": (4, 4, 7),
    }


def test_the_interval_holds_the_rate_and_stays_inside(fixtures: Path) -> None:
    for row in examine(fixtures).tools.values():
        assert row.low is not None
        assert row.high is not None
        assert 0 <= row.low <= row.failed / row.calls <= row.high <= 1


def test_every_citation_leads_to_what_it_cites(fixtures: Path) -> None:
    for row in examine(fixtures).fingerprints:
        document = json.loads((fixtures / row.example.file).read_text("utf-8"))
        cited = (document.get("messages") or document["steps"])[row.example.step]
        words = row.text.split(":")[-1].split()[-1].strip(".'*")
        assert words in json.dumps(cited)


def test_errors_in_most_runs_come_first(traces, say) -> None:
    for task in ("task_a", "task_b"):
        traces.run(task, [("x", {}, say({"error": "seldom but everywhere"}))])
    traces.run("task_c", [("x", {"n": n}, say({"error": "often in one run"})) for n in range(9)])
    assert [(row.runs, row.count) for row in traces.audit().fingerprints] == [(2, 2), (1, 9)]


def test_one_broken_file_costs_no_other(traces, say) -> None:
    traces.run("task_a", [("x", {}, say("ok"))])
    for name, data in {
        "cut": b'{"messages": [{"role": "us',
        "binary": b"\x89PNG\x00\x01",
        "deep": b"[" * 9999 + b"]" * 9999,
        "empty": b"",
    }.items():
        path = traces.root / name / "trajectory.json"
        path.parent.mkdir()
        path.write_bytes(data)
    report = traces.audit()
    assert report.runs == 1
    lost = [item.file.split("/")[0] for item in report.unreadable]
    assert lost == ["binary", "cut", "deep", "empty"]


def test_hostile_names_and_texts_come_out_safe(traces, say) -> None:
    evil = "\x1b[2J\u202eBearer abcdefgh12345678 <script>alert(1)</script>"
    traces.run("task\x1b]0;owned\x07", [(f"tool{evil}", {}, say({"error": evil}))] * 3)
    text = orjson.dumps(traces.audit().to_dict()).decode()
    assert "abcdefgh12345678" not in text
    assert text.isprintable()
    assert "\\u001b" not in text


def test_a_file_name_that_is_no_text_is_read(tmp_path: Path) -> None:
    directory = os.fsencode(tmp_path) + b"/task_\xff"
    os.mkdir(directory)
    with open(directory + b"/trajectory.json", "wb") as file:
        file.write(b'[{"role": "user", "content": "q"}]')
    report = examine(tmp_path)
    assert report.runs == 1
    orjson.dumps(report.to_dict())


def test_an_empty_directory_is_a_report_of_nothing(tmp_path: Path) -> None:
    report = examine(tmp_path)
    assert (report.runs, report.foreign_share, report.ignored) == (0, None, 0)


FIELDS = st.sampled_from(
    "messages role content tool_calls function name arguments id type text tool_call_id steps"
    " source schema_version observation results error".split()
)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(FIELDS, inner, max_size=5),
    max_leaves=25,
)


@given(json_values)
@settings(max_examples=300)
def test_any_document_is_a_run_or_refused(value: object) -> None:
    root = Path("/root-of-nothing")
    for document in ({"messages": value}, {"schema_version": "ATIF-v1.0", "steps": value}, value):
        try:
            item = read_document(root / "trajectory.json", root, document)
        except ReadError:
            continue
        if isinstance(item, Run):
            for detector in DETECTORS:
                if detector.judges(item):
                    list(detector.find(item))


@pytest.mark.parametrize("detector", DETECTORS, ids=lambda detector: detector.name)
def test_a_detector_is_named_as_its_file_and_its_test(detector) -> None:
    stem = detector.name.replace("-", "_")
    assert detector.find.__module__ == f"envkit.audit.detect.{stem}"
    assert (Path(__file__).parent / "detect" / f"test_{stem}.py").exists()
    assert detector.needs
