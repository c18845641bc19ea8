# SPDX-License-Identifier: Apache-2.0
"""No path of a task or a world may lead out of its own directory.

A link to elsewhere would give the agent, or the verifier's upload, a file of the host.
"""

from pathlib import Path

from envkit.task.digest import files_under
from envkit.task.read import error
from envkit.task.types import Problem


def escapes(root: Path) -> list[Problem]:
    """One error for each link below `root` that leads out of it or to nothing."""
    return [problem for path in _links(root) for problem in _judge(path, root)]


def _links(root: Path) -> list[Path]:
    folders = [path for path in root.rglob("*") if path.is_symlink() and path.is_dir()]
    return folders + [path for path in files_under(root) if path.is_symlink()]


def _judge(path: Path, root: Path) -> list[Problem]:
    where = path.relative_to(root).as_posix()
    target = path.resolve()
    if not target.is_relative_to(root.resolve()):
        fix = "copy the file into the task instead of linking to it"
        return [error("path-escapes", where, f"a link that leaves {root.name}/", fix)]
    if not target.exists():
        return [error("path-dangling", where, "a link to nothing", "remove it or restore its file")]
    return []
