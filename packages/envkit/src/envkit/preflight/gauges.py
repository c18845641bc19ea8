# SPDX-License-Identifier: Apache-2.0
"""What a run takes while it runs."""

from __future__ import annotations

import time
from dataclasses import dataclass

from envkit.preflight.kernel_files import KERNEL, figure
from envkit.preflight.types import RunGauges
from envkit.preflight.waves import Barrier
from envkit.sandbox.session import Server


@dataclass(frozen=True, slots=True, kw_only=True)
class Gauges:
    """Read from a run's fork server, its barrier and the machine."""

    server: Server
    barrier: Barrier
    local: bool
    """Whether its boxes are this machine's, and the fork server's to count."""
    memory_before_mib: float

    async def read(self, stall_s: float) -> RunGauges:
        """All of them; ``stall_s`` is by how much the loop came late.

        Raises:
            ChannelClosed: the fork server is gone.
        """
        census = await self.server.channel.ask("census")
        return RunGauges(
            live_boxes=int(census["live"]) if self.local else self.barrier.held,
            loop_stall_ms=max(0.0, stall_s * 1000),
            memory_mib=max(0.0, self.memory_before_mib - available_mib()),
            shared_cpu_s={"runner": time.process_time(), **census["cpu_s"]},
            cpu_is_live=self.server.cgroup > 0 or not self.local,
        )


def available_mib() -> float:
    """Memory that this machine could still give, in MiB."""
    return figure(KERNEL.proc / "meminfo", "MemAvailable:") / 1024
