# SPDX-License-Identifier: Apache-2.0
"""The boxes of gateways: whether this kernel has the calls that fork a process into one."""

from __future__ import annotations

from collections.abc import Iterator

from envkit.doctor.types import Finding, Status
from envkit.sandbox.availability import Availability


def examine(gateways: Availability) -> Iterator[Finding]:
    """One finding."""
    yield Finding(
        name="gateways",
        status=Status.OK if gateways.ok else Status.FAIL,
        text="the system calls that make their boxes are there"
        if gateways.ok
        else gateways.problem,
        fix=gateways.fix,
        needed_for="--env local",
    )
