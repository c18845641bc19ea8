# SPDX-License-Identifier: Apache-2.0
"""The page, read back with a parser of HTML."""

from collections.abc import Mapping
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from rltrain.track.catalogue import TOPICS
from rltrain.track.page import DENSE, POLICY, to_html
from rltrain.track.run import read_run
from rltrain.track.summary import summarise

from .runs import NAMES, numbers, run

SECTIONS = [
    "Reward",
    "Entropy",
    "Clipped by sign",
    "Lengths",
    "Behaviour",
    "Staleness",
    "Log-prob difference",
    "Gradient norm and learning rate",
    "Groups",
    "Time split",
    "Settings",
    "Manifest",
]


class Page(HTMLParser):
    """Tags, attributes, and the text of each section."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.sections: dict[str, str] = {}
        self.text = ""
        self._inside: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._inside.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._inside.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data
        inside = self._inside[-1] if self._inside else ""
        if inside == "h2":
            self.sections[data] = ""
        elif self.sections and inside != "summary":
            self.sections[list(self.sections)[-1]] += f" {data}"

    def count(self, tag: str) -> int:
        return sum(name == tag for name, _ in self.tags)


def html_of(path: Path, steps: Mapping[int, Mapping[str, float | None]], **options: Any) -> str:
    read = read_run(run(path, steps, **options))
    return to_html(read, summarise(read))


def page(path: Path, steps: Mapping[int, Mapping[str, float | None]], **options: Any) -> Page:
    return Page(html_of(path, steps, **options))


def test_every_section_is_there_and_none_is_empty(tmp_path: Path) -> None:
    made = page(tmp_path, {step: numbers(step) for step in (1, 2, 3)})
    assert list(made.sections) == SECTIONS
    assert "not measured" not in made.text
    assert made.count("figure") == made.count("svg") == sum(len(topic.drawings) for topic in TOPICS)


def test_sections_without_numbers_say_so_in_one_line(tmp_path: Path) -> None:
    made = page(tmp_path, {1: {}, 2: {"loss/entropy": None}}, manifest={}, settings="")
    assert list(made.sections) == SECTIONS
    assert [text.strip() for text in made.sections.values()] == [
        *["not measured"] * 10,
        "there is no config.toml",
        "there is no run.json, or nothing is in it",
    ]
    assert made.count("svg") == 0


@pytest.mark.parametrize("name", NAMES)
def test_each_number_alone_makes_a_page(tmp_path: Path, name: str) -> None:
    made = page(tmp_path, {1: {name: 0.5}, 2: {name: None}, 3: {name: 0.25}})
    assert list(made.sections) == SECTIONS
    assert made.count("svg") == (name not in ("reward/low", "reward/high", "reward/count"))


def test_what_is_absent_of_a_section_is_named(tmp_path: Path) -> None:
    made = page(tmp_path, {1: {"behaviour/turns": 3.0}})
    said = "not measured: Tokens of a turn, Tool calls that went well, Cut off"
    assert said in made.sections["Behaviour"]


def test_a_number_of_another_name_has_a_section_too(tmp_path: Path) -> None:
    made = page(tmp_path, {1: {"<evaluation>/mean": 0.5}})
    assert list(made.sections) == [*SECTIONS[:10], "Other numbers", *SECTIONS[10:]]
    assert "<evaluation>/mean" in made.sections["Other numbers"]


def test_the_reward_stands_with_its_fault_share_and_bounds(tmp_path: Path) -> None:
    steps = {1: {"reward/mean": 0.5, "reward/fault_share": 0.25, "reward/low": 0.375}}
    made = page(tmp_path, {1: {**steps[1], "reward/high": 0.625}})
    assert "reward at step 1, fault share 25 %, bounds 0.375 to 0.625" in made.text
    titles = [part for part in ("Mean of the valid", "Fault share") if part in made.text]
    assert len(titles) == 2
    assert made.sections["Reward"].index("Mean of") < made.sections["Reward"].index("Fault share")


def test_a_log_prob_difference_over_the_bound_is_counted_and_marked(tmp_path: Path) -> None:
    made = page(tmp_path, {1: {"logprob/difference": 0.01}, 2: {"logprob/difference": 0.031}})
    assert "0.03 or more in 1 of 2 measured steps." in made.sections["Log-prob difference"]
    assert ("b", {"class": "bad"}) in made.tags
    healthy = page(tmp_path / "a", {1: {"logprob/difference": 0.01}})
    assert ("b", {"class": "bad"}) not in healthy.tags


def test_seconds_are_summed_by_part(tmp_path: Path) -> None:
    row = {"seconds/read": 10.0, "seconds/step": 30.0, "seconds/total": 40.0}
    once = {**row, "seconds/checkpoint": 40.0, "seconds/total": 80.0}
    made = page(tmp_path, {1: row, 2: once})
    cells = made.sections["Time split"].split()
    said = " ".join(cells)
    assert "read 16.7 % 20.0 s 10.0 s" in said
    assert "step 50 % 1 min 00 s 30.0 s" in said
    assert "checkpoint 33.3 % 40.0 s 20.0 s" in said


def test_text_of_a_run_is_only_text(tmp_path: Path) -> None:
    attack = "</pre></style><script>alert(1)</script><img src=x onerror=alert(1)>"
    made = page(
        tmp_path,
        {1: {**numbers(1), attack: 1.0}},
        manifest={"policy": attack, attack: [attack], "seed": {"a": attack}},
        settings=attack,
    )
    assert {tag for tag, _ in made.tags}.isdisjoint({"script", "img"})
    assert made.sections["Settings"].strip() == attack
    assert made.sections["Manifest"].count("<script>") == 4


def test_nothing_is_loaded_from_anywhere(tmp_path: Path) -> None:
    made = page(tmp_path, {step: numbers(step) for step in (1, 2)})
    (policy,) = [each for tag, each in made.tags if each.get("http-equiv")]
    assert policy["content"] == POLICY == "default-src 'none'; style-src 'unsafe-inline'"
    assert {tag for tag, _ in made.tags}.isdisjoint({"script", "link", "iframe", "img", "object"})
    for _, attributes in made.tags:
        assert "src" not in attributes
        assert not [name for name in attributes if name.startswith("on")]
        assert (attributes.get("href") or "#").startswith("#")
    assert "url(" not in html_of(tmp_path / "b", {1: numbers(1)})
    assert "@import" not in made.text


def test_links_of_the_contents_lead_somewhere(tmp_path: Path) -> None:
    made = page(tmp_path, {1: {}})
    places = {attributes["id"] for _, attributes in made.tags if "id" in attributes}
    links = {(each["href"] or "")[1:] for tag, each in made.tags if tag == "a"}
    assert links == places
    assert len(links) == len(SECTIONS)


def test_colours_of_a_drawing_are_in_the_style_for_light_and_dark(tmp_path: Path) -> None:
    made = page(tmp_path, {step: numbers(step) for step in (1, 2)})
    used = {
        kind
        for tag, attributes in made.tags
        if tag in ("path", "circle", "text")
        for kind in (attributes.get("class") or "").split()
        if kind.startswith("c") and kind[1:].isdigit()
    }
    assert used == {f"c{n}" for n in range(10)}
    for kind in used:
        assert made.text.count(f"--{kind}: #") == 3  # light, dark, print
        assert f".{kind} {{ --c: var(--{kind}); }}" in made.text


def test_a_long_run_stays_small_and_says_what_its_tables_leave_out(tmp_path: Path) -> None:
    html = html_of(tmp_path, {step: numbers(step) for step in range(1, 3001)})
    assert len(html) < 1_000_000
    assert DENSE in html
    assert "as figures, 200 of 3000 steps" in html
    assert '<td class="n">3000</td>' in html


def test_a_short_run_has_every_step_in_its_tables(tmp_path: Path) -> None:
    html = html_of(tmp_path, {step: numbers(step) for step in range(1, 31)})
    assert DENSE not in html
    assert all(html.count(f'<td class="n">{step}</td>') >= 10 for step in range(1, 31))
