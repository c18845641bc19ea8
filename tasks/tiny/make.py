# SPDX-License-Identifier: Apache-2.0
"""Write the 32 tasks beside this file, and the cards of their world: ``python make.py [OUT]``.

Four kinds of eight tasks, one a card: what the card says, a copy of it, both, and both of the card
that it names. Within a kind every keeper, colour and place is right once, so that whatever does the
same in all tasks earns an eighth at most.

Contract: the same files each time. The world is ``worlds/card-index``; its world.toml is not
written here.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

NAMES = ("apple", "cedar", "fig", "hazel", "lemon", "olive", "quince", "walnut")
KEEPERS = ("Ada", "Ben", "Cleo", "Dan", "Eva", "Finn", "Gia", "Hugo")
COLOURS = ("amber", "blue", "coral", "green", "orange", "pink", "teal", "white")
PLACES = ("alpha", "bravo", "charlie", "delta", "echo", "foxtrot", "golf", "hotel")
KINDS = ("look", "file", "both", "next")
READ = "filesystem_server_read_text_file"
COPY = "filesystem_server_copy_file"


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """A file of the world."""

    name: str
    keeper: str
    colour: str
    following: str
    """Name of another card."""

    @property
    def path(self) -> str:
        """As tools name it."""
        return f"/cards/{self.name}.txt"

    @property
    def text(self) -> str:
        """What it says."""
        return f"Keeper: {self.keeper}\nColour: {self.colour}\nNext: {self.following}\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One task."""

    kind: str
    card: Card
    """What its instruction names."""
    asked: Card
    """What is asked about: the card, or the one that it names."""
    place: str

    @property
    def name(self) -> str:
        """Of its directory."""
        return f"{self.kind}-{self.card.name}"

    @property
    def copied_to(self) -> str:
        """Where the copy goes, as tools name it; empty where none is asked for."""
        return "" if self.kind == "look" else f"/tray/{self.place}.txt"

    @property
    def answer(self) -> str:
        """The final answer."""
        return self.place if self.kind == "file" else f"{self.asked.keeper}, {self.asked.colour}"


def cards() -> tuple[Card, ...]:
    """All of them."""
    return tuple(
        Card(
            name=name,
            keeper=KEEPERS[(3 * number + 2) % len(KEEPERS)],
            colour=COLOURS[(5 * number + 1) % len(COLOURS)],
            following=NAMES[(3 * number + 1) % len(NAMES)],
        )
        for number, name in enumerate(NAMES)
    )


def tasks() -> tuple[Task, ...]:
    """All of them, kind by kind."""
    return tuple(_task(kind, card) for kind in KINDS for card in cards())


def _task(kind: str, card: Card) -> Task:
    by_name = {each.name: each for each in cards()}
    asked = by_name[card.following] if kind == "next" else card
    place = PLACES[(5 * NAMES.index(card.name) + 3 * KINDS.index(kind)) % len(PLACES)]
    return Task(kind=kind, card=card, asked=asked, place=place)


def instruction(task: Task) -> str:
    """What the agent is asked."""
    by_kind = {
        "look": f"Read {task.card.path}. Answer: keeper, colour.",
        "file": f"Copy {task.card.path} to {task.copied_to}. Answer: name of the copy.",
        "both": f"Read {task.card.path}. Copy it to {task.copied_to}. Answer: keeper, colour.",
        "next": f"Read {task.card.path}, and the card that is next. Copy the next one to "
        f"{task.copied_to}. Answer: its keeper, its colour.",
    }
    return f"{by_kind[task.kind]}\n"


def calls(task: Task) -> Iterator[dict[str, object]]:
    """What does it through the tools."""
    read = {"look": (task.card,), "file": (), "both": (task.card,), "next": (task.card, task.asked)}
    for card in read[task.kind]:
        yield {"tool": READ, "arguments": {"file_path": card.path}}
    if task.copied_to:
        where = {"source_path": task.asked.path, "destination_path": task.copied_to}
        yield {"tool": COPY, "arguments": where}
    yield {"final_answer": task.answer}


_SOLVE = """\
#!/bin/sh
# The oracle: does the task in the agent's box, from the cards as they are.
set -eu
files=${FILESYSTEM_ROOT:-/filesystem} logs=${LOGS_ROOT:-/logs}
field() { sed -n "s/^$1: //p" "$files/cards/$2.txt"; }
"""
_SAY = 'printf \'%s, %s\' "$(field Keeper "$card")" "$(field Colour "$card")"'
_KEEP = '> "$logs/artifacts/final_answer.txt"'


def solution(task: Task) -> str:
    """The same by a script."""
    lines = [f"card={task.card.name}"]
    if task.kind == "next":
        lines.append('card=$(field Next "$card")')
    if task.copied_to:
        lines.append(f'cp "$files/cards/$card.txt" "$files{task.copied_to}"')
    lines.append(f"printf {task.place} {_KEEP}" if task.kind == "file" else f"{_SAY} {_KEEP}")
    return _SOLVE + "\n".join(lines) + "\n"


def wanted(task: Task) -> str:
    """What the verifier is told; what is empty is no criterion."""
    answers = task.kind != "file"
    values = {
        "keeper": task.asked.keeper.lower() if answers else "",
        "colour": task.asked.colour if answers else "",
        "named": "" if answers else task.place,
        "card": task.asked.text.replace("\n", "|") if task.copied_to else "",
        "place": task.place if task.copied_to else "",
    }
    return "".join(f"{name}='{value}'\n" for name, value in values.items())


_DESCRIPTIONS = {
    "look": "What a card says, by one call",
    "file": "A copy of a card, by one call",
    "both": "What a card says and a copy of it, by two calls",
    "next": "What the card says that a card names, and a copy of it, by three calls",
}
_CONFIG = """\
schema_version = "1.4"
artifacts = [{artifacts}]

[task]
name = "envkit/{name}"
description = "{description}"
keywords = ["tiny"]

[metadata]
world = "card-index"

[agent]
timeout_sec = 120

[verifier]
timeout_sec = 60
environment_mode = "separate"

[verifier.environment]
network_mode = "no-network"
cpus = 1
memory_mb = 256
storage_mb = 64

[environment]
network_mode = "no-network"
build_timeout_sec = 600
cpus = 1
memory_mb = 256
storage_mb = 64

[[environment.mcp_servers]]
name = "world"
transport = "streamable-http"
url = "http://127.0.0.1:8000/mcp/"
"""


def config(task: Task) -> str:
    """Its task.toml."""
    carried = ["/filesystem/tray", "/logs/artifacts"] if task.copied_to else ["/logs/artifacts"]
    return _CONFIG.format(
        artifacts=json.dumps(carried)[1:-1],
        name=task.name,
        description=_DESCRIPTIONS[task.kind],
    )


def files() -> Iterator[tuple[str, str, bool]]:
    """Path, text and whether it may be executed, of every file."""
    verifier = Path(__file__).with_name("verify.sh").read_text("utf-8")
    for card in cards():
        yield f"worlds/card-index/filesystem{card.path}", card.text, False
    for task in tasks():
        yield f"{task.name}/instruction.md", instruction(task), False
        yield f"{task.name}/task.toml", config(task), False
        yield f"{task.name}/environment/Dockerfile", "FROM scratch\n", False
        yield f"{task.name}/solution/solve.sh", solution(task), True
        lines = "".join(f"{json.dumps(each)}\n" for each in calls(task))
        yield f"{task.name}/solution/calls.jsonl", lines, False
        yield f"{task.name}/tests/wanted.sh", wanted(task), False
        yield f"{task.name}/tests/test.sh", verifier, True


def main() -> None:
    """Write all of them."""
    place = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent
    for name, text, runs in files():
        file = place / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
        file.chmod(0o755 if runs else 0o644)


if __name__ == "__main__":
    main()
