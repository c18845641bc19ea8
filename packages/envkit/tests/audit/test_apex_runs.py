# SPDX-License-Identifier: Apache-2.0
"""The 62 real runs, where they are at hand: our counts against a hand count made before."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from envkit.audit import Report, examine
from envkit.audit.read import read
from envkit.audit.types import Run

ROOT = Path(__file__).resolve().parents[4]
CORPUS = ROOT.parent / "shared" / "corpora" / "apex_runs"
HAND = ROOT / "benchmarks" / "audit_hand_count.json"


@pytest.fixture(scope="module")
def corpus() -> Path:
    if not CORPUS.is_dir():
        pytest.skip("not run: shared corpora absent")
    return CORPUS


@pytest.fixture(scope="module")
def report(corpus: Path) -> Report:
    return examine(corpus)


def counted(run: Run) -> dict[str, dict[str, int]]:
    tools: dict[str, dict[str, int]] = {}
    for call in run.calls:
        row = tools.setdefault(call.tool, {"calls": 0, "failed": 0})
        row["calls"] += 1
        row["failed"] += call.failure is not None
    return tools


def test_ten_runs_agree_with_the_hand_count_call_by_call(corpus: Path) -> None:
    hand: dict[str, Any] = json.loads(HAND.read_text("utf-8"))["runs"]
    runs = {item.id: counted(item) for item in read(corpus) if isinstance(item, Run)}
    for run, tools in hand.items():
        wanted = {name: {"calls": r["calls"], "failed": r["failed"]} for name, r in tools.items()}
        assert runs[run] == wanted, run


SEEN_AS = {
    "schema-rejection": ("schema-rejection", "missing-argument"),
    "command-missing": ("command-missing",),
    "package-discovery": ("module-missing",),
}


def test_reasons_of_the_hand_count_are_what_the_detectors_find(report: Report) -> None:
    hand: dict[str, Any] = json.loads(HAND.read_text("utf-8"))["runs"]
    for run, tools in hand.items():
        for detector, reasons in SEEN_AS.items():
            wanted = sum(row["reasons"].get(r, 0) for row in tools.values() for r in reasons)
            found = [f for f in report.findings if (f.run, f.detector) == (run, detector)]
            assert len(found) == wanted, (run, detector)


def test_all_runs_are_read_and_every_sidecar_counted(report: Report) -> None:
    assert (report.runs, report.ignored, list(report.unreadable)) == (62, 234, [])


def test_the_faults_everybody_met_are_on_top(report: Report) -> None:
    top = report.fingerprints[:15]
    assert (top[0].text, top[0].runs) == ("python: not found", 27)
    for module in ("pandas", "openpyxl", "numpy"):
        assert any(row.text.endswith(f"No module named {module}") for row in top), module


def test_every_citation_leads_to_a_tool_result(corpus: Path, report: Report) -> None:
    for row in report.fingerprints:
        document = json.loads((corpus / row.example.file).read_text("utf-8"))
        assert document["messages"][row.example.step]["role"] == "tool"


def test_ungraded_runs_are_counted_and_are_no_zeros(report: Report) -> None:
    assert report.detectors["missing-verdict"].runs == 15
    assert report.detectors["turn-cap-no-answer"].runs == 15
    assert len(report.rewards.recorded) == 47


def test_is_read_within_five_seconds(corpus: Path) -> None:
    start = time.monotonic()
    examine(corpus)
    assert time.monotonic() - start < 5
