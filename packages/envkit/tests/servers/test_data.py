# SPDX-License-Identifier: Apache-2.0
"""A world in and out as a tar, over the host's Unix socket."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import httpx2
import pytest

from .conftest import WAIT_S, Served, Start

pytestmark = pytest.mark.integration


def send(served: Served, method: str, path: str, body: bytes = b"", **headers: str):
    transport = httpx2.HTTPTransport(uds=str(served.data_path))
    with httpx2.Client(transport=transport, timeout=WAIT_S) as client:
        return client.request(method, f"http://localhost{path}", content=body, headers=headers)


def tar(*members: tuple[tarfile.TarInfo, bytes], mode: str = "w") -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode) as archive:
        for header, data in members:
            archive.addfile(header, io.BytesIO(data))
    return out.getvalue()


def member(name: str, data: bytes = b"x", **fields: object) -> tuple[tarfile.TarInfo, bytes]:
    header = tarfile.TarInfo(name)
    header.size = len(data)
    for key, value in fields.items():
        setattr(header, key, value)
    return header, data


def names(data: bytes) -> dict[str, tarfile.TarInfo]:
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        return {entry.name: entry for entry in archive}


def test_a_snapshot_holds_both_roots_and_comes_back_by_populate(start: Start, root: Path) -> None:
    served = start()
    taken = send(served, "POST", "/data/snapshot")
    assert taken.status_code == 200
    assert {"filesystem/table.pdf", ".apps_data/secret.txt", "filesystem/empty"} <= set(
        names(taken.content)
    )
    (root / "notes.txt").write_text("changed")
    (root / "table.pdf").unlink()
    answer = send(served, "POST", "/data/populate", taken.content)
    assert answer.status_code == 200, answer.text
    assert "31 percent" in (root / "notes.txt").read_text()
    again = names(send(served, "GET", "/data/snapshot").content)
    assert {name: (e.size, e.mode, e.mtime) for name, e in again.items() if e.isfile()} == {
        name: (e.size, e.mode, e.mtime) for name, e in names(taken.content).items() if e.isfile()
    }


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:xz"])
def test_populate_takes_compressed_tars_and_one_subsystem(start: Start, root, mode: str) -> None:
    body = tar(member("./in/new.txt", b"new"), mode=mode)
    answer = send(start(), "POST", "/data/populate?subsystem=filesystem", body)
    assert answer.json()["files"] == 1
    assert (root / "in" / "new.txt").read_text() == "new"


def test_a_large_world_is_streamed(start: Start, root: Path, config) -> None:
    with open(root / "large.bin", "wb") as file:
        file.truncate(200 << 20)
    served = start()
    taken = send(served, "GET", "/data/snapshot")
    assert names(taken.content)["filesystem/large.bin"].size == 200 << 20
    (root / "large.bin").unlink()
    assert send(served, "POST", "/data/populate", taken.content).status_code == 200
    assert (root / "large.bin").stat().st_size == 200 << 20


@pytest.mark.parametrize(
    "hostile",
    [
        member("filesystem/../../outside.txt"),
        member("/filesystem/../outside.txt"),
        member("elsewhere/x.txt"),
        member("filesystem/device", b"", type=tarfile.CHRTYPE),
        member("filesystem/pipe", b"", type=tarfile.FIFOTYPE),
        member("filesystem/hard", b"", type=tarfile.LNKTYPE, linkname="/etc/passwd"),
    ],
)
def test_a_hostile_member_is_named_and_refused(start: Start, tmp_path: Path, hostile) -> None:
    before = sorted(path.name for path in tmp_path.iterdir())
    served = start()
    answer = send(served, "POST", "/data/populate", tar(hostile))
    assert answer.status_code == 400
    assert answer.json()["error"]
    assert {p.name for p in tmp_path.iterdir()} - {*before} <= {"data-0.sock"}


def test_a_link_in_the_archive_does_not_carry_files_out(start: Start, tmp_path: Path) -> None:
    body = tar(
        member("filesystem/door", b"", type=tarfile.SYMTYPE, linkname="../.."),
        member("filesystem/door/outside.txt"),
    )
    answer = send(start(), "POST", "/data/populate", body)
    assert answer.status_code == 400
    assert not list(tmp_path.parent.glob("outside.txt"))


def test_a_snapshot_keeps_links_as_links(start: Start, root: Path, tmp_path: Path) -> None:
    (tmp_path / "host.txt").write_text("of the host")
    (root / "link").symlink_to(tmp_path / "host.txt")
    (root / "folder").symlink_to("/etc")
    taken = send(start(), "GET", "/data/snapshot").content
    entries = names(taken)
    assert entries["filesystem/link"].issym()
    assert entries["filesystem/folder"].issym()
    assert b"of the host" not in taken


@pytest.mark.parametrize("body", [b"", b"not a tar at all" * 100])
def test_a_body_that_is_no_tar_is_refused(start: Start, body: bytes) -> None:
    assert send(start(), "POST", "/data/populate", body).status_code == 400


def test_a_truncated_tar_is_refused(start: Start) -> None:
    body = tar(member("filesystem/a.txt", b"a" * 5000))[:2000]
    assert send(start(), "POST", "/data/populate", body).status_code == 400


def test_other_requests_are_refused(start: Start) -> None:
    served = start()
    assert send(served, "GET", "/data/populate").status_code == 405
    assert send(served, "POST", "/data/populate?subsystem=etc", b"x").status_code == 400
    assert send(served, "GET", "/data/snapshot", host="evil.example").status_code == 421
    assert send(served, "GET", "/mcp/").status_code == 404
