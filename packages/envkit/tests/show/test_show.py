# SPDX-License-Identifier: Apache-2.0
"""``envkit show`` from the command line to what is printed and written."""

import json
import re
import shutil
import unicodedata
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
import typer
from rich.console import Console

from envkit.agent.hear import ear
from envkit.cli import app
from envkit.show.page import listing_html, story_html
from envkit.show.rows import listing
from envkit.show.source import rows as rows_of
from envkit.show.source import source_of
from envkit.show.story import tell
from envkit.show.terminal import print_listing, print_story
from envkit.trajectory.episode_file import write_episode
from envkit.trajectory.types import Trajectory

from .conftest import HOSTILE


class Ran:
    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err


@pytest.fixture
def envkit(capsys: pytest.CaptureFixture[str]) -> Any:
    def ran(*words: object) -> Ran:
        try:
            code = app([str(word) for word in words], prog_name="envkit", standalone_mode=False)
        except typer.Exit as ended:
            code = ended.exit_code
        out, err = capsys.readouterr()
        return Ran(code or 0, out, err)

    return ran


def unfolded(text: str) -> str:
    return " ".join(text.split())


def test_a_run_is_a_list_with_a_summary(envkit: Any, run: Path) -> None:
    done = envkit("show", run)
    assert done.code == 0
    for name in ("north-depot__003", "hostile", "failed", "full", "cut_off", "engine_died"):
        assert re.search(rf"^{name} ", done.out, re.MULTILINE), name
    said = unfolded(done.out)
    assert "6 trajectories" in said
    assert "over 5 valid of 6" in said
    assert "EngineUnreachable (engine) 1" in said
    assert "all invalid as 0: " in said


def test_one_trajectory_is_a_story_with_every_part(envkit: Any, run: Path) -> None:
    said = unfolded(envkit("show", run, "--id", "north-depot").out)
    for part in (
        "north-depot__003 reward 1",
        "valid: graded",
        "final: the model gave its answer",
        "engine tiny, vllm 0.32.0",
        "weights 3 to 4",
        "temperature 1",
        "── prompt",
        "── turn 0 ── sampled",
        '→ list_files(path="/cards"',
        "ok in 500 ms",
        "cannot be read: unclosed",
        "harness adds a repair",
        "not trained",
        "not shown here; --full shows all",
        "least likely tokens",
        "answer There are 412.",
    ):
        assert part in said, part


def test_full_cuts_nothing(envkit: Any, run: Path) -> None:
    short = envkit("show", run, "--id", "north-depot").out
    whole = envkit("show", run, "--id", "north-depot", "--full").out
    assert "row 75: " not in short
    assert "row 75: " in whole


def test_an_invalid_reward_says_whose_fault_it_is(envkit: Any, run: Path) -> None:
    said = unfolded(envkit("show", run, "--id", "engine_died").out)
    assert "reward 0 invalid" in said
    assert "EngineUnreachable, the engine's, in act: connection refused" in said


def test_a_call_that_failed_says_so_on_every_medium(
    envkit: Any, run: Path, rows: dict[str, Trajectory], model: Path
) -> None:
    assert "failed not_found in 500 ms" in unfolded(envkit("show", run, "--id", "failed").out)
    page = story_html(tell(rows["failed"], ear(model)))
    assert ">failed not_found</span>" in page
    assert 'class="call failed"' in page


def test_results_that_the_model_saw_cut_say_so(envkit: Any, run: Path) -> None:
    assert "the model was not shown" in envkit("show", run, "--id", "full").out


@pytest.mark.parametrize("where", ["run", "store", "segment"])
def test_a_run_its_store_and_its_segment_show_the_same(envkit: Any, run: Path, where: str) -> None:
    store = run / "trajectories"
    (segment,) = store.glob("*.arrow")
    path = {"run": run, "store": store, "segment": segment}[where]
    assert envkit("show", path, "--id", "failed").out == envkit("show", run, "--id", "failed").out
    assert len(json.loads(envkit("show", path, "--json").out)["trajectories"]) == 6


def test_without_the_copy_of_the_tokenizer_one_line_says_so(
    envkit: Any, run: Path, model: Path, tmp_path: Path
) -> None:
    shutil.copytree(run / "trajectories", tmp_path / "trajectories")
    done = envkit("show", tmp_path, "--id", "failed")
    assert done.code == 0
    assert done.out.count("no copy of tokenizer") == 1
    assert "turn 0" in done.out
    assert "no such file" not in done.out
    given = envkit("show", tmp_path, "--id", "failed", "--tokenizer", model)
    assert given.out == envkit("show", run, "--id", "failed").out


def test_a_tokenizer_of_another_model_is_refused(envkit: Any, run: Path, tmp_path: Path) -> None:
    from .recorded import model_dir

    other = model_dir(tmp_path, "glm")
    done = envkit("show", run, "--id", "failed", "--tokenizer", other)
    assert done.code == 2
    assert "the trajectory was made with" in done.err
    assert done.err.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--id", "nobody"], "no such trajectory"),
        (["--id", "f"], "say more"),
    ],
)
def test_an_id_that_names_no_one_trajectory_is_one_line(
    envkit: Any, run: Path, words: list[str], said: str
) -> None:
    done = envkit("show", run, *words)
    assert (done.code, done.out) == (2, "")
    assert said in done.err
    assert done.err.count("\n") == 1


def test_where_there_is_nothing_to_show_one_line_says_what_would_be(
    envkit: Any, tmp_path: Path
) -> None:
    done = envkit("show", tmp_path)
    assert done.code == 2
    assert done.err.count("\n") == 1


def test_damage_is_named_and_costs_no_other_row(envkit: Any, run: Path, tmp_path: Path) -> None:
    shutil.copytree(run, tmp_path / "run")
    (segment,) = (tmp_path / "run/trajectories").glob("*.arrow")
    data = bytearray(segment.read_bytes())
    data[len(data) // 2] ^= 0xFF
    segment.write_bytes(data)
    shown = json.loads(envkit("show", tmp_path / "run", "--json").out)
    assert len(shown["damaged"]) == 1
    assert len(shown["trajectories"]) == 5
    assert "damaged" in envkit("show", tmp_path / "run").out


def test_text_of_boxes_cannot_move_colour_or_mark_up_a_terminal(
    rows: dict[str, Trajectory], model: Path
) -> None:
    story = tell(rows["hostile"], ear(model))
    with_colours = Console(force_terminal=True, color_system="truecolor", width=200, record=False)
    with with_colours.capture() as got:
        print_story(story, with_colours, full=True)
        print_listing(listing(rows.values()), with_colours)
    out = got.get()
    ours = re.sub(r"\x1b\[[0-9;]*m", "", out)
    allowed = {"\n"}
    bad = {c for c in ours if unicodedata.category(c) in {"Cc", "Cf", "Zl", "Zp"}} - allowed
    assert bad == set()
    for part in ("\\x1b]0;owned\\x07", "[bold]not bold[/bold] :smile:", "\\u202eright to left"):
        assert part in ours, part


class Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def test_the_page_runs_nothing_loads_nothing_and_shows_hostile_text_as_text(
    rows: dict[str, Trajectory], model: Path
) -> None:
    for page in (
        story_html(tell(rows["hostile"], ear(model))),
        listing_html(listing(rows.values())),
    ):
        reader = Reader()
        reader.feed(page)
        assert not {"script", "img", "iframe", "link", "object", "embed", "b-"} & set(reader.tags)
        names = {name for name, _ in reader.attributes}
        assert not any(name.startswith("on") for name in names)
        assert "src" not in names
        targets = [value for name, value in reader.attributes if name == "href"]
        assert all(str(value).startswith("#") for value in targets)
        assert not re.search(r"url\(|@import|https?://", page)
    whole = "".join(reader_text(story_html(tell(rows["hostile"], ear(model)))))
    assert "<script>alert(1)</script><img src=x onerror=alert(1)> &lt;b&gt;" in whole
    assert "\\x1b]0;owned\\x07" in whole


def reader_text(page: str) -> list[str]:
    reader = Reader()
    reader.feed(page)
    return reader.text


def test_the_page_holds_whole_texts_and_folds_them(
    rows: dict[str, Trajectory], model: Path
) -> None:
    page = story_html(tell(rows["plain"], ear(model)))
    assert "row 75: " in page
    assert "<details><summary>all of it: " in page


def test_html_is_written_beside_what_is_printed(envkit: Any, run: Path, tmp_path: Path) -> None:
    done = envkit("show", run, "--id", "failed", "--html", tmp_path / "one.html")
    assert done.code == 0
    assert "no such file" in (tmp_path / "one.html").read_text()
    refused = envkit("show", run, "--html", tmp_path / "nowhere" / "x.html")
    assert refused.code == 2
    assert refused.err.count("\n") == 1


def test_json_has_the_texts_as_they_are(envkit: Any, run: Path) -> None:
    told = json.loads(envkit("show", run, "--id", "hostile", "--json").out)
    assert told["schema"] == "envkit.show/1"
    assert told["turns"][0]["calls"][0]["result"] == HOSTILE
    assert told["turns"][1]["request"]["turn"] == 1


def test_rows_are_read_one_after_the_other(run: Path) -> None:
    source = source_of(run)
    assert source is not None
    assert sum(isinstance(each, Trajectory) for each in rows_of(source)) == 6


def test_a_trial_without_a_record_has_no_reward_and_one_with_a_damaged_record_is_named(
    envkit: Any, rows: dict[str, Trajectory], tmp_path: Path
) -> None:
    for name in ("plain", "failed"):
        agent = tmp_path / name / "agent"
        agent.mkdir(parents=True)
        write_episode(agent / "episode.bin", rows[name].identity, rows[name].episode)
    (tmp_path / "failed" / "envkit.json").write_text('{"schema": "envkit.tri')
    shown = json.loads(envkit("show", tmp_path, "--json").out)
    assert [(each["trajectory_id"], each["reward"]) for each in shown["trajectories"]] == [
        ("north-depot__003", None)
    ]
    (damaged,) = shown["damaged"]
    assert damaged.startswith(f"{tmp_path}/failed/envkit.json: trajectory 'failed': no record")
    done = envkit("show", tmp_path / "failed")
    assert (done.code, done.err.count("\n")) == (2, 1)
