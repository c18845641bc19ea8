# SPDX-License-Identifier: Apache-2.0
"""Read an audited directory as a stream of runs, one in memory at a time.

Contract: every candidate comes out as a run or as unreadable with its reason; everything else is
counted as ignored. A file that is JSON but claims no form we know is ignored, unless its name says
that it is a trajectory. Rows of a store come last, without those whose trials were read.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from envkit.audit import atif, openai_messages
from envkit.audit.document import ReadError, load
from envkit.audit.find import StoreDir, TraceFile, TrialDir, find, relative
from envkit.audit.harbor import read_trial, trial_name
from envkit.audit.stored import read_store
from envkit.audit.types import Ignored, Run, Unreadable

type Item = Run | Unreadable | Ignored


def read(root: Path) -> Iterator[Item]:
    """Every item under ``root``, which is resolved first."""
    root = root.resolve()
    base = root.parent if root.is_file() else root
    stores: list[Path] = []
    seen: dict[Path, set[str]] = {}
    for entry in find(root):
        match entry:
            case TrialDir(path=path):
                seen.setdefault(path.parent.parent, set()).add(trial_name(path))
                yield from read_trial(path, base)
            case StoreDir(path=path):
                stores.append(path)
            case TraceFile(path=path):
                yield _read_file(path, base)
            case _:
                yield entry
    for store in stores:
        run = store.parent if store.is_dir() else store.parent.parent
        yield from read_store(store, base, seen.get(run, set()))


def _read_file(path: Path, root: Path) -> Item:
    try:
        return read_document(path, root, load(path, root))
    except ReadError as error:
        return Unreadable(file=relative(path, root), reason=str(error))


def read_document(path: Path, root: Path, document: object) -> Item:
    """The run that a document is.

    Raises:
        ReadError: it claims a form and breaks it.
    """
    if atif.is_atif(document):
        return atif.read_atif(path, root, document)
    if openai_messages.is_messages(document):
        return openai_messages.read_messages(path, root, document)
    if "traj" in path.name:
        raise ReadError("wrong shape: neither OpenAI messages nor ATIF")
    return Ignored()
