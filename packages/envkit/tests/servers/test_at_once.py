# SPDX-License-Identifier: Apache-2.0
"""What the gateway answers without a child: the same answers, and nothing that takes long."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Generator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envkit.servers.command import LocalRunner
from envkit.servers.config import GatewayConfig
from envkit.servers.contract import Reply
from envkit.servers.desk import Desk
from envkit.servers.tool import FileTool

LIST, TREE, FACTS, TEXT = (
    f"filesystem_server_{name}"
    for name in ("list_files", "get_directory_tree", "get_file_metadata", "read_text_file")
)
forks = 0
"""Of this process so far."""


def _count_fork() -> None:
    global forks
    forks += 1


os.register_at_fork(before=_count_fork)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("at-once") / "filesystem"
    (folder / "deep" / "deeper").mkdir(parents=True)
    (folder / "many").mkdir()
    for number in range(900):
        (folder / "many" / f"{number}.txt").touch()
    (folder / "note.txt").write_text("a first line\nund eine zweite mit Ümlaut\n")
    (folder / "old.txt").write_bytes(b"caf\xe9 au lait")
    (folder / "wide.txt").write_text("both ways", encoding="utf-16")
    (folder / "bytes.bin").write_bytes(bytes(range(256)))
    (folder / "deep" / "report.pdf").write_bytes(b"%PDF-1.4")
    (folder / "deep" / "deeper" / "empty.csv").touch()
    (folder / "large.txt").write_text("of many bytes\n" * 40_000)
    (folder / "out.txt").symlink_to("/etc/passwd")
    os.mkfifo(folder / "pipe")
    return folder


@pytest.fixture(scope="module")
def desks(files: Path) -> Generator[tuple[Desk, Desk]]:
    """One that answers at once where it can, and one that always asks a child."""
    config = GatewayConfig(root=files, apps_data=files, token="t", command_root=str(files))
    both = Desk(config, LocalRunner()), Desk(config, LocalRunner())
    both[1].tools = {
        name: replace(tool, at_once=False) if isinstance(tool, FileTool) else tool
        for name, tool in both[1].tools.items()
    }
    yield both
    for desk in both:
        desk.close()


def _ask(desk: Desk, name: str, arguments: dict[str, Any]) -> Reply:
    return asyncio.run(desk.call(name, arguments))


PATHS = (
    "/", "/deep", "/deep/deeper", "/note.txt", "/old.txt", "/wide.txt", "/bytes.bin", "/out.txt",
    "/deep/report.pdf", "/deep/deeper/empty.csv", "/large.txt", "/pipe", "/nothing", "/..", "",
)  # fmt: skip
paths = st.sampled_from(PATHS)
calls = st.one_of(
    st.tuples(
        st.just(LIST),
        st.fixed_dictionaries({"path": paths}, optional={"offset": st.integers(0, 9)}),
    ),
    st.tuples(
        st.just(TREE),
        st.fixed_dictionaries(
            {"path": st.sampled_from(("/deep", "/deep/deeper", "/note.txt", "/nothing"))},
            optional={
                "max_depth": st.integers(1, 4),
                "include_files": st.booleans(),
                "show_size": st.booleans(),
            },
        ),
    ),
    st.tuples(st.just(FACTS), st.fixed_dictionaries({"file_path": paths})),
    st.tuples(
        st.just(TEXT),
        st.fixed_dictionaries(
            {"file_path": paths},
            optional={
                "encoding": st.sampled_from(("utf-8", "latin-1", "UTF-16", "no-such", "punycode")),
                "max_size": st.integers(1, 60),
                "offset": st.integers(0, 60),
            },
        ),
    ),
)


@settings(deadline=None, max_examples=120)
@given(calls)
def test_an_answer_at_once_is_the_answer_of_a_child(
    desks: Any, call: tuple[str, dict[str, Any]]
) -> None:
    at_once, in_child = (_ask(desk, *call) for desk in desks)
    assert at_once.to_record() == in_child.to_record()


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        (LIST, {"path": "/"}),
        (LIST, {"path": "/nothing"}),
        (TREE, {"path": "/deep"}),
        (FACTS, {"file_path": "/large.txt"}),
        (TEXT, {"file_path": "/note.txt"}),
    ],
)
def test_what_is_small_costs_no_fork(desks: Any, name: str, arguments: dict[str, Any]) -> None:
    before = forks
    _ask(desks[0], name, arguments)
    assert forks == before


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        (LIST, {"path": "/many"}),
        (TREE, {"path": "/"}),
        (TEXT, {"file_path": "/large.txt"}),
        (TEXT, {"file_path": "/note.txt", "encoding": "punycode"}),
    ],
)
def test_what_may_take_long_is_asked_of_a_child(
    desks: Any, name: str, arguments: dict[str, Any]
) -> None:
    before = forks
    _ask(desks[0], name, arguments)
    assert forks == before + 1
