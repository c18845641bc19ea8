# SPDX-License-Identifier: Apache-2.0
"""The page, the terminal text, log tails, and where they are kept."""

import asyncio
import io
import json
import os
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from envkit.fault import HarnessError, ServerDisconnected
from envkit.preflight.command import finish
from envkit.preflight.logs import TAIL_LINES, log_tail
from envkit.preflight.markup import Html, el
from envkit.preflight.options import Options
from envkit.preflight.place import KEPT_RUNS, MARK, keep, open_place, release
from envkit.preflight.report import could_not_run
from envkit.preflight.report_html import to_html
from envkit.preflight.report_text import print_report
from envkit.preflight.run import run
from envkit.preflight.types import BrokenTask, Leftover, Report, Verdict

HOSTILE = "</td><script>alert(1)</script>\x1b[2J\x1b]0;t\x07\u202e'\"><img src=x onerror=y>"


class Seen(HTMLParser):
    """Tags and text of a page; fails on a tag that does not close."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.text = ""
        self.attributes: set[str] = set()
        self.addresses: set[str] = set()
        self.ids: list[str] = []
        self._open: list[str] = []
        self.feed(page)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.append(tag)
        self.attributes |= {name for name, _ in attrs}
        self.addresses |= {value for name, value in attrs if name == "href"}
        self.ids += [value for name, value in attrs if name == "id"]
        self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: Any) -> None:
        self.tags.append(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def hostile_report(make: Any) -> Report:
    plan = make.plan((HOSTILE.replace("/", "_"), "workbook"), 3, agent="replay")
    died = make.attempt(reward=None, faults=(make.fault(ServerDisconnected(HOSTILE)),))
    first = plan.specs[0]
    logs = first.out_dir / first.trial_id
    (logs / "verifier").mkdir(parents=True)
    (logs / "verifier" / "test-stdout.txt").write_text(f"line\n{HOSTILE}\n")
    plan = make.plan(
        (HOSTILE.replace("/", "_"), "workbook"),
        3,
        broken=(
            BrokenTask(trial_id="bad__000", name=HOSTILE, dir=Path("/x"), problems=(HOSTILE,)),
        ),
    )
    launcher = make.launcher(
        script={first.trial_id: make.record(first, died, make.attempt(2, reward=0.5))},
        leftover=[(), (Leftover(kind="process", what=HOSTILE),)],
    )
    work = run(plan, launcher, make.view(), supplies=make.roomy, settle_s=0.0)
    return asyncio.run(work)


def clean_report(make: Any) -> Report:
    work = run(make.plan(), make.launcher(), make.view(), supplies=make.roomy)
    return asyncio.run(work)


def printed(report: Report, width: int = 120) -> str:
    console = Console(width=width, file=io.StringIO(), _environ={})
    print_report(report, console)
    return console.file.getvalue()  # type: ignore[attr-defined]


def test_hostile_text_stays_text_in_the_page(make: Any) -> None:
    page = to_html(hostile_report(make))
    seen = Seen(page)
    assert {"script", "img"}.isdisjoint(seen.tags)
    assert not any(name.startswith("on") for name in seen.attributes)
    assert "alert(1)" in seen.text
    assert not re.search("[\x00-\x08\x0b-\x1f\u202e]", page)


def test_the_page_needs_nothing_but_itself(make: Any) -> None:
    page = to_html(hostile_report(make))
    seen = Seen(page)
    assert {"link", "iframe", "object", "embed", "base"}.isdisjoint(seen.tags)
    assert {"src", "srcset", "action"}.isdisjoint(seen.attributes)
    assert seen.addresses == {f"#{name}" for name in seen.ids}  # its own contents, all of them
    assert len(set(seen.ids)) == len(seen.ids)
    assert "url(" not in page
    assert "@import" not in page
    assert "default-src 'none'" in page.replace("&#x27;", "'")


def test_the_page_shows_every_part(make: Any) -> None:
    text = Seen(to_html(hostile_report(make))).text
    for heading in (
        "Tasks", "Faults by owner and class", "Failed trials", "Left behind",
        "Concurrency and memory over time", "Phases over time", "Seconds by phase",
        "Slowest operations",
    ):  # fmt: skip
        assert heading in text
    assert "--- verifier/test-stdout.txt" in text
    assert "--concurrency 1 --repeat 1 --seed 0" in text


def test_a_report_of_a_run_that_never_started_is_a_page_too() -> None:
    text = Seen(to_html(could_not_run(["no user namespaces; run: sysctl"]))).text
    assert "COULD NOT RUN" in text
    assert "no user namespaces; run: sysctl" in text


def test_hostile_text_can_neither_colour_nor_forge_a_terminal_line(make: Any) -> None:
    text = printed(hostile_report(make))
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert [line for line in text.splitlines() if line.startswith("PASS")] == []
    assert len([line for line in text.splitlines() if line.startswith("FAIL  ")]) == 1


SNAPSHOT = """\
phase    n     p50     p95     p99     max
start    6  400 ms  400 ms  400 ms  400 ms
gateway  6  600 ms  600 ms  600 ms  600 ms
setup    6  100 ms  100 ms  100 ms  100 ms
act      6   2.0 s   2.0 s   2.0 s   2.0 s
collect  6  200 ms  200 ms  200 ms  200 ms
grade    6   1.0 s   1.0 s   1.0 s   1.0 s
stop     6  100 ms  100 ms  100 ms  100 ms

6 trials, 6 attempts in TIME: 6 live at the peak, 640 MiB, 0.75 CPU s a trial
reward mean 1.000 over 6 valid of 6 (95 % Wilson interval 0.610 to 1.000; all invalid as 0: 1.000, as 1: 1.000)

PASS  6 trials with reward 1.0 everywhere, 6 at once
      fault rate 0 % (95 % Wilson interval 0 % to 39.03 %), 0.5 % allowed
      nothing left behind
"""  # noqa: E501 (as printed)


def test_the_text_of_a_clean_run_is_as_it_was(make: Any) -> None:
    text = re.sub(r" in \d[^:]*:", " in TIME:", printed(clean_report(make)))
    assert "\n".join(line.rstrip() for line in text.splitlines()) + "\n" == SNAPSHOT


FAILED = """\
6 trials, 6 attempts in TIME: 6 live at the peak, 640 MiB, 0.75 CPU s a trial
reward mean 0.917 over 6 valid of 6 (95 % t interval 0.702 to 1.000; all invalid as 0: 0.917, as 1: 0.917)
faults 16.67 % (95 % Wilson interval 3.01 % to 56.35 %)

fault        count  run again  owner    example
SandboxDied      1          0  sandbox  fact__001 in act: box 3 exited with 137

fact__000  earned 0.5
  again envkit preflight DIR/tasks/fact --agent replay --env local --concurrency 1 --repeat 1 --seed 0
fact__001  sandbox fault SandboxDied in act: box 3 exited with 137
  again envkit preflight DIR/tasks/fact --agent replay --env local --concurrency 1 --repeat 1 --seed 0

not to be trained on (wrong_reward)  fact
not to be trained on (faults)  fact

left behind  process  41 sleep
FAIL  1 of 6 attempts faulted: 16.67 % (95 % Wilson interval 3.01 % to 56.35 %), 0.5 % allowed
      1 trial did not earn the 1.0 that replay must earn: fact (1)
      left behind: 1 process; what is still there goes with: envkit doctor --reap
"""  # noqa: E501 (as printed)


def test_the_text_of_a_failed_run_says_what_to_act_on_and_last_why(
    make: Any, tmp_path: Path
) -> None:
    plan = make.plan()
    died = make.attempt(faults=(make.fault(),))
    script = {
        "fact__000": make.record(plan.specs[0], make.attempt(reward=0.5)),
        "fact__001": make.record(plan.specs[2], died),
    }
    left = [(), (Leftover(kind="process", what="41 sleep"),)]
    launcher = make.launcher(script=script, leftover=left)
    work = run(plan, launcher, make.view(), supplies=make.roomy, settle_s=0.0)
    text = printed(asyncio.run(work)).replace(str(tmp_path), "DIR")
    lines = [line.rstrip() for line in re.sub(r" in \d[^:]*:", " in TIME:", text).splitlines()]
    assert "\n".join(lines[9:]) + "\n" == FAILED


def test_the_text_of_hundreds_of_lost_trials_fits_on_two_screens(make: Any) -> None:
    plan = make.plan(tuple(f"task-{n}" for n in range(50)), 11)
    faults = [make.fault(type(f"Error{n}", (Exception,), {})("lost")) for n in range(30)]
    script = {
        spec.trial_id: make.record(spec, make.attempt(reward=None, faults=(faults[n % 30],)))
        for n, spec in enumerate(plan.specs)
    }
    leaks = tuple(Leftover(kind="file", what=f"/tmp/{n}") for n in range(40))
    launcher = make.launcher(script=script, leftover=[(), leaks])
    work = run(plan, launcher, make.view(), supplies=make.roomy, settle_s=0.0)
    text = printed(asyncio.run(work))
    assert len(text.splitlines()) <= 60
    assert "and 545 more failed trials, in the report's files" in text
    assert "and 20 more classes, in the report's files" in text
    assert "task-17 and 40 more" in text
    assert "and 30 more left behind, in the report's files" in text


def test_on_a_narrow_terminal_figures_fold_between_words_and_commands_stay_whole(
    make: Any,
) -> None:
    plan = make.plan()
    script = {"fact__000": make.record(plan.specs[0], make.attempt(reward=0.5))}
    work = run(plan, make.launcher(script=script), make.view(), supplies=make.roomy)
    lines = printed(asyncio.run(work), width=80).splitlines()
    start = next(n for n, line in enumerate(lines) if line.startswith("reward mean"))
    assert " ".join(lines[start : start + 2]).endswith("all invalid as 0: 0.917, as 1: 0.917)")
    assert [line for line in lines if "--seed 0" in line and "again envkit preflight" in line]


@given(st.text(), st.text())
def test_any_text_is_only_text_in_markup(child: str, attribute: str) -> None:
    seen = Seen(el("p", child, title=attribute))
    assert seen.tags == ["p"]
    assert seen.attributes == {"title"}


def test_only_markup_that_was_built_passes_unescaped() -> None:
    assert el("p", Html("<b>x</b>"), "<b>y</b>") == "<p><b>x</b>&lt;b&gt;y&lt;/b&gt;</p>"


def test_a_log_tail_is_the_end_of_the_log_however_long_it_is(tmp_path: Path) -> None:
    (tmp_path / "trial.log").write_text("\n".join(f"line {n}" for n in range(100_000)))
    tail = log_tail(tmp_path)
    assert tail[0] == "--- trial.log"
    assert tail[-1] == "line 99999"
    assert len(tail) == TAIL_LINES + 1


def test_a_log_that_is_a_link_out_of_its_trial_is_not_followed(tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("the key")
    trial = tmp_path / "trial"
    (trial / "agent").mkdir(parents=True)
    (trial / "trial.log").symlink_to(secret)
    (trial / "verifier").symlink_to(tmp_path)
    (tmp_path / "test-stdout.txt").write_text("the key")
    os.mkfifo(trial / "agent" / "pipe.log")
    assert "the key" not in "\n".join(log_tail(trial))


def test_a_trial_without_a_directory_has_no_log(tmp_path: Path) -> None:
    assert log_tail(tmp_path / "never-made") == ()


def test_a_report_directory_holds_the_report_and_is_reused(make: Any, tmp_path: Path) -> None:
    report = clean_report(make)
    for _ in range(2):
        place = open_place(tmp_path / "r", "token")
        (place.trials / "old").mkdir()
        keep(place, report)
        release(place)
    assert json.loads((tmp_path / "r" / "report.json").read_text())["verdict"] == "PASS"
    assert (tmp_path / "r" / "report.html").read_text().startswith("<!doctype html>")
    assert sorted(path.name for path in (tmp_path / "r").iterdir()) == [
        ".envkit-preflight", "quarantine.json", "report.html", "report.json", "trials",
    ]  # fmt: skip
    assert list(open_place(tmp_path / "r", "token").trials.iterdir()) == []


def test_a_directory_with_other_files_is_never_taken(tmp_path: Path) -> None:
    (tmp_path / "trials").mkdir()
    (tmp_path / "trials" / "thesis.txt").write_text("years of work")
    with pytest.raises(HarnessError, match="holds files of something else"):
        open_place(tmp_path, "token")
    assert (tmp_path / "trials" / "thesis.txt").exists()


def test_a_report_directory_that_is_a_file_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(HarnessError, match="--report DIR"):
        open_place(tmp_path / "file", "token")


def test_a_run_that_passed_leaves_no_files_that_nobody_asked_for(
    make: Any, tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    place = open_place(None, "token")
    keep(place, clean_report(make))
    assert not place.root.exists()
    release(place)
    place = open_place(None, "token")
    keep(place, hostile_report(make))
    assert place.trials.exists()


def run_in_cache(number: int, report: Report) -> Path:
    place = open_place(None, f"run{number}")
    keep(place, report)
    release(place)
    os.utime(place.root / MARK, (number, number))
    return place.root


def test_only_the_newest_runs_to_look_at_are_kept(
    make: Any, tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    report = hostile_report(make)
    roots = [run_in_cache(number, report) for number in range(KEPT_RUNS + 3)]
    assert [root for root in roots if root.exists()] == roots[-KEPT_RUNS:]
    interrupted = replace(report, verdict=Verdict.INTERRUPTED)
    assert run_in_cache(1000, interrupted).exists()
    assert [root for root in roots if root.exists()] == roots[-KEPT_RUNS + 1 :]


def test_a_run_that_still_runs_and_what_is_no_run_are_never_removed(
    make: Any, tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    running = open_place(None, "running")
    os.utime(running.root / MARK, (0, 0))
    foreign = running.root.parent / "mine"
    foreign.mkdir()
    report = hostile_report(make)
    for number in range(1, KEPT_RUNS + 3):
        run_in_cache(number, report)
    assert running.trials.exists()
    assert foreign.exists()


def test_a_run_whose_process_was_killed_makes_room_like_any_other(
    make: Any, tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    killed = open_place(None, "killed")
    release(killed)  # as the kernel does
    assert (killed.root / MARK).read_text() == str(os.getpid())
    os.utime(killed.root / MARK, (0, 0))
    report = hostile_report(make)
    for number in range(1, KEPT_RUNS + 1):
        run_in_cache(number, report)
    assert not killed.root.exists()


def test_report_files_that_cannot_be_written_do_not_cost_the_report(
    make: Any, tmp_path: Path, capsys: Any
) -> None:
    report = clean_report(make)
    place = open_place(tmp_path / "r", "token")
    place.page.mkdir()
    options = Options(
        source=tmp_path, agent="replay", env="local", concurrency=1, repeat=None, limit=None,
        max_fault_rate="0.5", seed=0, as_json=True, report_dir=tmp_path / "r",
    )  # fmt: skip
    assert finish(options, report, place) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["verdict"] == "PASS"
    assert len(err.splitlines()) == 1
    assert "report.html" in err
    assert "--report DIR" in err
