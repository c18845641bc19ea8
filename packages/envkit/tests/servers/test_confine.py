# SPDX-License-Identifier: Apache-2.0
"""No path leaves its root, however it is written and whatever changes meanwhile."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from envkit.servers.confine import Root, openat2, walk
from envkit.servers.contract import ToolFault
from envkit.servers.desk import Desk

from .conftest import call

OPENERS = [pytest.param(openat2, id="openat2"), pytest.param(walk, id="walk")]
READ = "filesystem_server_read_text_file"


@pytest.fixture(params=OPENERS)
def held(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Root]:
    """A root with a secret beside it, opened in both ways."""
    (tmp_path / "secret.txt").write_text("secret")
    inside = tmp_path / "inside"
    (inside / "folder").mkdir(parents=True)
    (inside / "folder" / "file.txt").write_text("inside")
    fd = os.open(inside, os.O_PATH | os.O_DIRECTORY)
    yield Root(fd=fd, alias="/filesystem", opener=request.param)
    os.close(fd)


def _read(root: Root, path: str) -> str:
    with root.file(path) as fd:
        return os.read(fd, 100).decode()


@pytest.mark.parametrize(
    "path",
    ["/folder/file.txt", "folder/file.txt", "//folder//file.txt", "/./folder/./file.txt",
     "/filesystem/folder/file.txt"],
)  # fmt: skip
def test_a_path_means_the_root(held: Root, path: str) -> None:
    assert _read(held, path) == "inside"


def test_the_alias_gives_way_to_a_folder_of_that_name(held: Root) -> None:
    os.mkdir("filesystem", dir_fd=held.fd)
    with pytest.raises(ToolFault, match="does not exist"):
        _read(held, "/filesystem/folder/file.txt")


@pytest.mark.parametrize(
    "path",
    ["/../secret.txt", "../secret.txt", "/folder/../../secret.txt", "/..",
     "/folder/../../../../etc/passwd", "/filesystem/../../secret.txt"],
)  # fmt: skip
def test_dots_do_not_lead_out(held: Root, path: str) -> None:
    with pytest.raises(ToolFault) as caught:
        _read(held, path)
    assert caught.value.code == "path_outside_root"


@pytest.mark.parametrize(
    "target", ["/etc/passwd", "../secret.txt", "/proc/self/root/etc/passwd", "..", "/"]
)
def test_symbolic_links_do_not_lead_out(held: Root, target: str) -> None:
    os.symlink(target, "link", dir_fd=held.fd)
    for path in ("/link", "/link/secret.txt", "/link/etc/passwd"):
        with pytest.raises(ToolFault) as caught:
            _read(held, path)
        assert caught.value.code in ("path_outside_root", "not_a_folder")


def test_an_absolute_path_of_the_host_is_looked_up_inside(held: Root) -> None:
    with pytest.raises(ToolFault) as caught:
        _read(held, "/etc/passwd")
    assert caught.value.code == "not_found"


def test_a_link_that_stays_inside_is_followed_where_the_kernel_can_say_so(tmp_path: Path) -> None:
    (tmp_path / "real.txt").write_text("x")
    (tmp_path / "link.txt").symlink_to("real.txt")
    fd = os.open(tmp_path, os.O_PATH)
    assert _read(Root(fd=fd), "/link.txt") == "x"
    os.close(fd)


@pytest.mark.parametrize("make", [os.mkfifo, lambda name, dir_fd: _socket(name, dir_fd)])
def test_a_pipe_or_socket_is_refused_and_does_not_block(held: Root, make) -> None:
    make("pipe", dir_fd=held.fd)
    with pytest.raises(ToolFault) as caught:
        _read(held, "/pipe")
    assert caught.value.code == "not_a_file"


def _socket(name: str, dir_fd: int) -> None:
    os.mknod(name, 0o140600, dir_fd=dir_fd)


def test_a_folder_swapped_for_a_link_does_not_lead_out(held: Root, tmp_path: Path) -> None:
    """Somebody exchanges a folder and a link to the outside while paths through it are opened."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "file.txt").write_text("secret")
    base = tmp_path / "inside"
    os.symlink(tmp_path / "outside", base / "link")
    stop = threading.Event()

    def swap() -> None:
        while not stop.is_set():
            os.rename(base / "folder", base / "spare")
            os.rename(base / "link", base / "folder")
            os.rename(base / "folder", base / "link")
            os.rename(base / "spare", base / "folder")

    thread = threading.Thread(target=swap)
    thread.start()
    seen = set()
    try:
        for _ in range(3000):
            try:
                seen.add(_read(held, "/folder/file.txt"))
            except ToolFault as fault:
                seen.add(fault.code)
    finally:
        stop.set()
        thread.join()
    assert "secret" not in seen
    assert "inside" in seen


def test_the_error_says_what_is_there_instead(desk: Desk) -> None:
    assert "notes.txt" in call(desk, READ, {"file_path": "/note.txt"}).texts[0]
    text = call(desk, READ, {"file_path": "/reports/2024/summary.md"}).texts[0]
    assert "In /reports there is: 2025." in text


HOSTILE = ["/../apps_data/secret.txt", "/escape/secret.txt", "/escape", "/up/apps_data/secret.txt"]


@pytest.mark.parametrize("path", HOSTILE)
@pytest.mark.parametrize(
    ("name", "argument"),
    [
        ("filesystem_server_list_files", "path"),
        ("filesystem_server_get_directory_tree", "path"),
        ("filesystem_server_get_file_metadata", "file_path"),
        (READ, "file_path"),
        ("filesystem_server_read_image_file", "file_path"),
        ("filesystem_server_grep_files", "path"),
        ("filesystem_server_create_folder", "path"),
        ("pdf_server_read_pdf_pages", "file_path"),
    ],
)
def test_no_tool_reaches_the_data_of_the_apps(desk: Desk, root, name, argument, path) -> None:
    (root / "escape").symlink_to(desk.config.apps_data)
    (root / "up").symlink_to("..")
    extra = {"query": "mail"} if "grep" in name else {}
    reply = call(desk, name, {argument: path, **extra})
    assert reply.is_error
    assert "mail of others" not in "".join(reply.texts)


def test_walks_do_not_cross_links(desk: Desk, root) -> None:
    (root / "escape").symlink_to(desk.config.apps_data)
    for name, arguments in [
        ("filesystem_server_grep_files", {"query": "mail of others"}),
        ("filesystem_server_search_files", {"pattern": "secret*"}),
        ("filesystem_server_get_directory_tree", {"max_depth": 9}),
    ]:
        text = "".join(call(desk, name, arguments).texts)
        assert "secret.txt" not in text


@pytest.mark.parametrize("name", ["write_file", "copy_file", "move_file"])
def test_no_tool_writes_through_a_link(desk: Desk, root, name: str) -> None:
    apps = desk.config.apps_data
    (root / "escape").symlink_to(apps)
    (root / "file").symlink_to(apps / "secret.txt")
    for target in ("/escape/new.txt", "/file"):
        arguments = {
            "write_file": {"file_path": target, "content": "x", "overwrite": True},
            "copy_file": {
                "source_path": "/notes.txt",
                "destination_path": target,
                "overwrite": True,
            },
            "move_file": {
                "source_path": "/notes.txt",
                "destination_path": target,
                "overwrite": True,
            },
        }[name]
        call(desk, f"filesystem_server_{name}", arguments)
    assert sorted(path.name for path in apps.iterdir()) == ["secret.txt"]
    assert (apps / "secret.txt").read_text() == "mail of others"
