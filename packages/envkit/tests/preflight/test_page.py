# SPDX-License-Identifier: Apache-2.0
"""The page as a browser has it: no complaint, no request, and no more bytes than it may have."""

import asyncio
import json
import re
import shutil
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from envkit.preflight.course import Track, course_of
from envkit.preflight.report_html import to_html
from envkit.preflight.run import run
from envkit.preflight.types import Report, RunGauges, TrialEnded, TrialPhase, TrialStarted

from .conftest import PHASES
from .test_report_files import Seen, clean_report, hostile_report

PAGE_MOST = 2_000_000
"""Bytes."""
ITS_MAKERS = (".google.com", ".googleapis.com")
"""Whom Chromium asks of its own accord, whatever it shows."""


@dataclass(frozen=True, kw_only=True)
class Rendered:
    complaints: list[str]
    requests: set[str]


@pytest.fixture(scope="module")
def chromium() -> str:
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if found is None:
        pytest.skip("not run: Chromium absent")
    return found


def render(chromium: str, page: str, where: Path) -> Rendered:
    """Loads a page without any network and tells what the browser said and asked for."""
    (where / "page.html").write_text(page)
    log = where / "net.json"
    done = subprocess.run(
        [
            chromium, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic",
            "--no-first-run", "--disable-background-networking", "--disable-component-update",
            "--disable-sync", "--host-resolver-rules=MAP * ~NOTFOUND", "--enable-logging=stderr",
            f"--user-data-dir={where / 'profile'}", f"--log-net-log={log}", "--dump-dom",
            (where / "page.html").as_uri(),
        ],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    assert "</html>" in done.stdout
    events = json.loads(log.read_text())["events"]
    urls = {event["params"]["url"] for event in events if "url" in event.get("params", {})}
    hosts = {url: urlsplit(url).hostname or "" for url in urls if url.startswith("http")}
    return Rendered(
        complaints=[line for line in done.stderr.splitlines() if ":CONSOLE" in line],
        requests={url for url, host in hosts.items() if not host.endswith(ITS_MAKERS)},
    )


def crowd(make: Any, trials: int, *, died: bool = False) -> Report:
    """A run of so many trials, each through all phases; all of them lost, with long logs."""
    plan = make.plan(tuple(f"task-{n}" for n in range(8)), -(-trials // 8))
    plan = replace(plan, specs=plan.specs[:trials], concurrency=trials)
    lost = make.attempt(reward=None, faults=(make.fault(),))
    script = {s.trial_id: make.record(s, *((lost,) if died else ())) for s in plan.specs}
    for spec in plan.specs if died else ():
        place = spec.out_dir / spec.trial_id / "verifier"
        place.mkdir(parents=True)
        for name in ("test-stdout.txt", "test-stderr.txt"):
            (place / name).write_text(("<&> " * 60 + "\n") * 20)
    work = run(plan, make.launcher(script=script), make.view(), supplies=make.roomy)
    report = asyncio.run(work)
    return replace(report, course=course_of(played(report), report.records))


def played(report: Report) -> Track:
    """Six minutes of gauges, and each trial through its phases, twenty-five begun a second."""
    track = Track()
    for n in range(1440):
        live = min(report.trials, 6 * n, 4 * (1440 - n))
        gauges = RunGauges(live_boxes=live, loop_stall_ms=n % 40, memory_mib=11.0 * live)
        track.note(0.25 * n, gauges)
    for n, record in enumerate(report.records):
        at = 0.04 * n
        track.note(at, TrialStarted(trial_id=record.trial_id, task=record.task, sample=0))
        for k, phase in enumerate(PHASES):
            track.note(at + 20.0 * k, TrialPhase(trial_id=record.trial_id, phase=phase))
        track.note(at + 150.0, TrialEnded(record=record))
    return track


@pytest.mark.integration
@pytest.mark.parametrize("which", [clean_report, hostile_report])
def test_a_browser_finds_nothing_to_complain_of_and_nothing_to_load(
    which: Any, make: Any, chromium: str, tmp_path: Path
) -> None:
    seen = render(chromium, to_html(which(make)), tmp_path)
    assert seen.complaints == []
    assert seen.requests == set()


@pytest.mark.integration
def test_a_page_that_did_either_would_be_found_out(
    make: Any, chromium: str, tmp_path: Path
) -> None:
    page = to_html(clean_report(make))
    ours = '<img src="http://elsewhere.invalid/x.png"><script>nothing.at.all</script>'
    (tmp_path / "with").mkdir()
    (tmp_path / "without").mkdir()
    policed = render(chromium, page.replace("</main>", f"{ours}</main>"), tmp_path / "with")
    assert len(policed.complaints) == 2
    assert policed.requests == set()
    free = re.sub("<meta http-equiv[^>]*>", "", page).replace("</main>", f"{ours}</main>")
    seen = render(chromium, free, tmp_path / "without")
    assert seen.requests == {"http://elsewhere.invalid/x.png"}
    assert seen.complaints


@pytest.mark.parametrize("trials", [1, 6, 550])
def test_a_page_of_any_number_of_trials_is_small(make: Any, trials: int) -> None:
    page = to_html(crowd(make, trials))
    assert Seen(page).tags.count("rect") >= trials
    assert len(page.encode()) < PAGE_MOST


def test_a_page_of_550_lost_trials_is_small_and_shows_how_to_see_them_again(make: Any) -> None:
    page = to_html(crowd(make, 550, died=True))
    seen = Seen(page)
    assert len(page.encode()) < PAGE_MOST
    assert seen.text.count("Run it again: envkit preflight") == 200
    assert seen.text.count("--- verifier/test-stdout.txt") == 50
    assert "And 350 more failed trials, in report.json." in seen.text
