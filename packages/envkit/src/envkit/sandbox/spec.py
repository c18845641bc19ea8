# SPDX-License-Identifier: Apache-2.0
"""What is asked of the fork server, as plain data that crosses a socket."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final, Self

from envkit.sandbox.limits import Limits

PARSED: Final = "/.parsed"
"""In the box of a gateway, and in no other."""

type Preload = Sequence[tuple[str, Mapping[str, Any]]]
"""What else to do before the first fork: each a ``module:name`` and its keyword arguments."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BoxSpec:
    """A box to open, with its workspace."""

    name: str
    """Unique in the run; names the control group."""
    root: Path
    """Root file system, as :func:`envkit.image.rootfs.ensure_rootfs` made it."""
    world: Path | None = None
    """Materialised world: ``filesystem/`` and ``apps_data/``."""
    parsed: Path | None = None
    """Its documents, laid out beforehand: the gateway's box sees them at PARSED, read-only."""
    limits: Limits = field(default_factory=Limits)
    network: bool = False
    start_s: float = 30.0
    """Seconds until the box must say it is ready."""

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form."""
        data = asdict(self)
        places = {name: str(data[name]) if data[name] else None for name in ("world", "parsed")}
        return {**data, "root": str(self.root), **places}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read back :meth:`to_dict`."""
        fields: dict[str, Any] = {**data, "limits": Limits(**data["limits"])}
        fields["root"] = Path(data["root"])
        for name in ("world", "parsed"):
            fields[name] = Path(data[name]) if data.get(name) else None
        return cls(**fields)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """What the fork server needs to know at its start."""

    run: str
    """Token of this run, in the environment of every child."""
    stage: Path
    """An empty directory where the private mounts go."""
    warm: bool = True
    """Import the servers and Harbor before the first fork."""
    roots: tuple[Path, ...] = ()
    """Whose interpreters to warm before the server is ready; others when a box first needs one."""
    cgroups: bool = True
    """Use control groups where the machine lets us make them; else rlimits alone hold."""
    turns: int = 0
    """How many trials work at once, see `envkit.sandbox.turns`; 0 for all."""
    preload: Preload = ()

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form."""
        roots = [str(root) for root in self.roots]
        return {**asdict(self), "stage": str(self.stage), "roots": roots}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read back :meth:`to_dict`."""
        roots = tuple(Path(root) for root in data["roots"])
        fields: dict[str, Any] = {**data, "stage": Path(data["stage"]), "roots": roots}
        fields["preload"] = tuple((path, named) for path, named in data.get("preload", ()))
        return cls(**fields)


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayAddress:
    """Where the gateway of one trial answers, seen from the host."""

    url: str
    token: str = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
