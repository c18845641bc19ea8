# SPDX-License-Identifier: Apache-2.0
"""Which installed distributions a set of promised packages needs, and which files they own.

Contract: the answer is a function of the running environment only; nothing is downloaded. A
promised package that is not installed is an error, because the prompt would lie to the agent.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from envkit.fault import TaskError


def closure(packages: Iterable[str]) -> dict[str, Distribution]:
    """Installed distributions reachable from ``packages``, by canonical name.

    Raises:
        TaskError: a promised package is not installed here.
    """
    found: dict[str, Distribution] = {}
    queue = [Requirement(name) for name in packages]
    while queue:
        requirement = queue.pop()
        name = canonicalize_name(requirement.name)
        if name not in found:
            found[name] = _installed(requirement.name)
            queue += _dependencies(found[name], requirement.extras)
    return dict(sorted(found.items()))


def owned_files(dist: Distribution) -> list[tuple[Path, Path]]:
    """(source, path relative to site-packages) of every file below site-packages."""
    pairs: list[tuple[Path, Path]] = []
    for entry in dist.files or ():
        relative = Path(*entry.parts)
        if ".." in relative.parts or "__pycache__" in relative.parts:
            continue  # console scripts live outside; bytecode is compiled again
        pairs.append((Path(str(dist.locate_file(entry))), relative))
    return pairs


def import_names(packages: Iterable[str]) -> list[str]:
    """Public names under which ``packages``, without their dependencies, are imported.

    Raises:
        TaskError: a promised package is not installed here.
    """
    found: set[str] = set()
    for package in packages:
        for _, relative in owned_files(_installed(Requirement(package).name)):
            if relative.parts[1:] == ("__init__.py",):
                found.add(relative.parts[0])
            elif relative.suffix == ".py" and len(relative.parts) == 1:
                found.add(relative.stem)
    return sorted(name for name in found if not name.startswith("_"))


def _installed(name: str) -> Distribution:
    try:
        return distribution(name)
    except PackageNotFoundError as error:
        raise TaskError(
            f"promised package {name!r} is not installed here;"
            f" install it next to envkit: pip install {name}"
        ) from error


def _dependencies(dist: Distribution, extras: Iterable[str]) -> list[Requirement]:
    wanted: list[Requirement] = []
    for line in dist.requires or ():
        requirement = Requirement(line)
        marker = requirement.marker
        environments = [{"extra": extra} for extra in (*extras, "")]
        if marker is None or any(marker.evaluate(environment) for environment in environments):
            wanted.append(requirement)
    return wanted
