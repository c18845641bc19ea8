# SPDX-License-Identifier: Apache-2.0
"""No path of a task or a world may lead out of its own directory.

A link to elsewhere would give the agent, or the verifier's upload, a file of the host. A pipe or
a device would hold up whoever reads it.
"""

from pathlib import Path

from envkit.task.digest import files_under
from envkit.task.read import error
from envkit.task.types import Problem


def escapes(root: Path) -> list[Problem]:
    """One error for each path below `root` that leads out of it, to nothing, or is no file."""
    return [problem for path in _paths(root) for problem in _judge(path, root)]


def _paths(root: Path) -> list[Path]:
    folders = [path for path in root.rglob("*") if path.is_symlink() and path.is_dir()]
    return [*folders, *files_under(root)]


def _judge(path: Path, root: Path) -> list[Problem]:
    where = path.relative_to(root).as_posix()
    target = path.resolve()
    if not target.is_relative_to(root.resolve()):
        fix = "copy the file into the task instead of linking to it"
        return [error("path-escapes", where, f"a link that leaves {root.name}/", fix)]
    if not target.exists():
        return [error("path-dangling", where, "a link to nothing", "remove it or restore its file")]
    if not target.is_file() and not target.is_dir():
        return [error("path-special", where, "neither a file nor a directory", "remove it")]
    return []
