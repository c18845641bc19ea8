# SPDX-License-Identifier: Apache-2.0
"""What is known of the published runs beside their recipes, to hold a plan against.

Where each is from: the headers of scripts/run_qwen36_35b_fully_async.sh (at 8e7702f) and
scripts/run_qwen35_397b_fully_async.sh (at c97ceba) of
github.com/Mercor-Intelligence/ApexAgents-SkyRL-Recipe name the GPUs ("14 usable H100 nodes",
"20x8xH200"), GPU_MEMORY_UTILIZATION and MAX_CONCURRENCY; the smaller script says that its 550 is
660 scaled by its engines, 10 of 12, so 55 an engine. The account calls both bound by KV memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """One run."""

    model: str
    """A name of `rltrain.plan.model`."""
    concurrency: int
    known: tuple[str, ...]
    """Assumptions that it settles."""


PUBLISHED: Final[Mapping[str, Published]] = MappingProxyType(
    {
        "qwen36-35b": Published(
            model="qwen3.6-35b-a3b",
            concurrency=550,
            known=('gpu="h100"', "memory.utilisation=0.85"),
        ),
        "qwen35-397b": Published(
            model="qwen3.5-397b-a17b",
            concurrency=300,
            known=('gpu="h200"', "memory.utilisation=0.93"),
        ),
    }
)
"""By the recipe's name."""
