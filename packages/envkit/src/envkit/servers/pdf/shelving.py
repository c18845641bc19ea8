# SPDX-License-Identifier: Apache-2.0
"""Lay out every document of a world once: `python -m envkit.servers.pdf.shelving FILES SHELF`.

Each document is read in a child of its own, bounded in time and memory and without privileges, as
a gateway reads it; one that breaks its reader, is locked or takes too long is left out and said on
standard error, and costs no other. What a child sends is JSON; only this process writes.
"""

import asyncio
import codecs
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from envkit.sandbox import kernel
from envkit.sandbox.stage import files_uid
from envkit.servers.child import ChildBudget, in_child
from envkit.servers.config import ToolLimits
from envkit.servers.contract import Done, ToolFault
from envkit.servers.pdf.library import HEADER_WITHIN, SMALLEST, PdfError, opened
from envkit.servers.pdf.page import laid_out
from envkit.servers.pdf.shelf import pack, record_name

WORLD_S = 90.0
"""No document is begun later: those left out are parsed when somebody asks for them."""


async def shelve(files: Path, shelf: Path) -> None:
    """Fill `shelf` with the documents below `files`."""
    _warm()
    limits, give_up = ToolLimits(), time.monotonic() + WORLD_S
    budget = ChildBudget(seconds=limits.document_s, memory_mib=limits.child_memory_mib)
    slots = asyncio.Semaphore(len(os.sched_getaffinity(0)))

    async def one(path: Path) -> None:
        async with slots:
            if time.monotonic() < give_up:
                await _shelve_one(path, shelf, budget)

    async with asyncio.TaskGroup() as group:
        for path in _documents(files):
            group.create_task(one(path))


async def _shelve_one(path: Path, shelf: Path, budget: ChildBudget) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        done = await in_child(_reading(fd), budget, keep=[fd])
        record = shelf / record_name(fd)
    except ToolFault as fault:
        print(f"{path}: left out: {fault.line()}", file=sys.stderr)
        return
    finally:
        os.close(fd)
    record.write_bytes(pack([done.remember[str(number)] for number in range(len(done.remember))]))
    record.chmod(0o444)


def _reading(fd: int) -> Callable[[Callable[[], None]], Done]:
    def work(_starting: Callable[[], None]) -> Done:
        _give_up_rights()
        try:
            with opened(os.pread(fd, os.fstat(fd).st_size, 0), "") as raw:
                pages = {str(index): laid_out(raw, index) for index in range(len(raw))}
        except PdfError as error:
            raise ToolFault("pdf_corrupt", str(error), fix="It is parsed when asked for.") from None
        return Done(did="Laid out.", remember=pages)

    return work


def _give_up_rights() -> None:
    """A document that takes over its reader finds itself where a box's user is."""
    parent = os.getppid()
    if os.geteuid() == 0:
        os.setgroups([])
        os.setresgid(files_uid(), files_uid(), files_uid())
        os.setresuid(files_uid(), files_uid(), files_uid())
    kernel.no_new_privileges()
    kernel.die_with_parent(parent)  # a change of user clears it


def _documents(files: Path) -> Iterator[Path]:
    for folder, _, names in os.walk(files):
        for path in sorted(Path(folder, name) for name in names):
            if path.is_file() and not path.is_symlink():
                with path.open("rb") as stream:
                    if b"%PDF-" in stream.read(HEADER_WITHIN):
                        yield path


def _warm() -> None:
    """Load what a page or a form needs while every file can still be reached."""
    codecs.lookup("utf-16-le")
    with tempfile.NamedTemporaryFile(suffix=".pdf") as file:
        file.write(SMALLEST)
        file.flush()
        with opened(file.name, "") as raw:
            laid_out(raw, 0)


if __name__ == "__main__":
    asyncio.run(shelve(Path(sys.argv[1]), Path(sys.argv[2])))
