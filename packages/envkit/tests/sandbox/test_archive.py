# SPDX-License-Identifier: Apache-2.0
"""Files in and out: what was there arrives, what is hostile does not leave its place."""

import io
import os
import tarfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envkit.sandbox import archive

LIMIT = 1 << 20


def packed(path: Path, limit: int = LIMIT) -> tuple[int, bytes]:
    """Status and stream of packing a small path through a pipe."""
    read, write = os.pipe()
    status = archive.pack(str(path), write, limit)
    if status != archive.DONE:
        os.close(write)
    with os.fdopen(read, "rb") as stream:
        return status, stream.read()


names = st.text("abcXYZ09_-.é ", min_size=1, max_size=12).filter(lambda n: n not in {".", ".."})
trees = st.dictionaries(names, st.binary(max_size=200), max_size=5)


@given(trees)
def test_a_directory_arrives_as_it_was(tmp_path_factory: pytest.TempPathFactory, tree):
    source, target = tmp_path_factory.mktemp("from"), tmp_path_factory.mktemp("to")
    for name, data in tree.items():
        (source / name).write_bytes(data)
    status, stream = packed(source)
    archive.extract(io.BytesIO(stream), target)
    assert status == archive.DONE
    assert {path.name: path.read_bytes() for path in target.iterdir()} == tree


def test_a_file_arrives_under_its_name(tmp_path: Path):
    (tmp_path / "answer.txt").write_text("42")
    _, stream = packed(tmp_path / "answer.txt")
    archive.extract(io.BytesIO(stream), tmp_path / "out")
    assert (tmp_path / "out/answer.txt").read_text() == "42"


def test_what_is_not_there_is_missing_and_not_failed(tmp_path: Path):
    assert packed(tmp_path / "nothing")[0] == archive.MISSING


def test_a_sparse_file_larger_than_the_limit_is_refused_before_a_byte_moves(tmp_path: Path):
    with (tmp_path / "huge").open("wb") as file:
        file.truncate(1 << 40)
    assert packed(tmp_path) == (archive.TOO_BIG, b"")


def test_pipes_and_sockets_cost_no_other_file(tmp_path: Path):
    (tmp_path / "kept").write_text("kept")
    os.mkfifo(tmp_path / "fifo")
    _, stream = packed(tmp_path)
    with tarfile.open(fileobj=io.BytesIO(stream), mode="r|") as tar:
        assert tar.getnames() == ["kept"]


def test_a_file_that_is_shorter_than_it_says_costs_no_other(tmp_path: Path):
    """As pseudo-files are, and one that is cut while it is packed."""
    short = Path("/sys/devices/system/cpu/online")
    assert short.stat().st_size > len(short.read_bytes()), "the premise"
    status, stream = packed(short)
    archive.extract(io.BytesIO(stream), tmp_path)
    assert status == archive.DONE
    assert (tmp_path / "online").read_bytes().rstrip(b"\0") == short.read_bytes()


def hostile(*members: tarfile.TarInfo) -> io.BytesIO:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w|") as tar:
        for member in members:
            tar.addfile(member, io.BytesIO(b"x" * member.size))
    stream.seek(0)
    return stream


def entry(name: str, *, link: str | None = None, kind: bytes | None = None) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.size = 0 if link or kind else 1
    info.type = kind or (tarfile.SYMTYPE if link else tarfile.REGTYPE)
    info.linkname = link or ""
    return info


@pytest.mark.parametrize(
    "member",
    [
        entry("../outside"),
        entry("/absolute"),
        entry("link", link="/etc/passwd"),
        entry("link", link="../../outside"),
        entry("device", kind=tarfile.CHRTYPE),
        entry("fifo", kind=tarfile.FIFOTYPE),
    ],
    ids=lambda m: m.name,
)
def test_nothing_leaves_the_target_and_the_rest_arrives(tmp_path: Path, member: tarfile.TarInfo):
    target = tmp_path / "deep" / "target"
    archive.extract(hostile(member, entry("good")), target)
    assert (target / "good").read_text() == "x"
    assert not (tmp_path / "outside").exists()
    assert not Path("/absolute").exists()
    for path in target.rglob("*"):
        assert path.resolve().is_relative_to(target.resolve())


@pytest.mark.parametrize("cut", [1, 511, 700])
def test_a_stream_that_breaks_off_is_an_error(tmp_path: Path, cut: int):
    (tmp_path / "source").mkdir()
    (tmp_path / "source/file").write_bytes(b"y" * 4000)
    _, stream = packed(tmp_path / "source")
    with pytest.raises(tarfile.TarError):
        archive.extract(io.BytesIO(stream[:cut]), tmp_path / "out")


def test_unpacking_makes_the_directory_and_keeps_what_is_there(tmp_path: Path):
    (tmp_path / "source").mkdir()
    (tmp_path / "source/new").write_text("new")
    (tmp_path / "target").mkdir()
    (tmp_path / "target/old").write_text("old")
    read, write = os.pipe()
    with os.fdopen(write, "wb") as stream:
        archive.write_tree(tmp_path / "source", stream)
    if os.geteuid() != 0:
        pytest.skip("not run: needs root")
    assert archive.unpack(str(tmp_path / "target"), read) == archive.DONE
    assert sorted(path.name for path in (tmp_path / "target").iterdir()) == ["new", "old"]


def test_emptying_removes_everything_but_the_directory(tmp_path: Path):
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "a/b/c").write_text("c")
    (tmp_path / "a/link").symlink_to("/etc")
    assert archive.empty(str(tmp_path / "a")) == archive.DONE
    assert list((tmp_path / "a").iterdir()) == []
    assert Path("/etc").is_dir()
