# SPDX-License-Identifier: Apache-2.0
"""What Harbor must be told of a provider that runs on this machine and builds nothing."""

from __future__ import annotations

from typing import override

from harbor.environments.base import BaseEnvironment
from harbor.environments.capabilities import (
    EnvironmentCapabilities,
    EnvironmentResourceCapabilities,
)


class OnThisMachine(BaseEnvironment):
    """The base of `local`, which enforces what it declares, and of `unsafe`, which does not."""

    @property
    @override
    def capabilities(self) -> EnvironmentCapabilities:
        return EnvironmentCapabilities(disable_internet=True)

    @classmethod
    @override
    def resource_capabilities(cls) -> EnvironmentResourceCapabilities:
        return EnvironmentResourceCapabilities(
            cpu_limit=True, memory_limit=True, fractional_cpus=True
        )

    @override
    def _validate_definition(self) -> None:
        """A task needs no Dockerfile here: its world declares what a box holds."""
