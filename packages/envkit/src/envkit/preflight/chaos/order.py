# SPDX-License-Identifier: Apache-2.0
"""A struck attempt gets the layer that strikes; every other attempt is left as it is.

The operation that is to hang gets a short budget, in that attempt alone: an operation that never
ends is told from a slow one by time only, and no trial that was not struck may be told so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final

import orjson

from envkit.deadline import Budgets
from envkit.preflight.attempt import Order
from envkit.preflight.chaos.choose import Strike, read_chosen
from envkit.preflight.chaos.log import LOG_NAME

STRIKE_ENV: Final = "ENVKIT_CHAOS"
"""Tells a struck trial's process, and no other, what is to strike it."""

STOPPED_HANGS: Final = 6
"""A stopped process has no budget but its trial's whole limit: so many times ``hang_s``, for it
must first come to where it is stopped, the barrier of a first wave included."""

_HANGS: Final = {"hang", "crawl", "silent", "stop-gateway", "clock-jump"}
_BUDGETS: Final[Mapping[str, tuple[str, ...]]] = {
    "start": ("start_s",),
    "grade-start": ("start_s",),
    "gateway": ("gateway_start_s",),
    "connect": ("mcp_connect_s",),
    "list": ("mcp_list_s", "mcp_connect_s"),  # the gateway is looked at again when the agent ends
    "call": ("mcp_call_s", "mcp_connect_s"),
    "answer": ("transfer_s",),
    "collect": ("transfer_s",),
    "carry": ("transfer_s",),
    "reward": ("transfer_s",),
    "verify": ("verify_s",),
    "stop": ("stop_s",),
    "grade-stop": ("stop_s",),
}
"""What an operation that hangs in each phase is held to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Injector:
    """The strikes of a run, by trial."""

    strikes: Mapping[str, Strike]
    hang_s: float
    log: Path

    @classmethod
    def read(cls, plan: Path) -> Injector:
        """Those that `choose.write_chosen` wrote to ``plan``; the log lies beside it.

        Raises:
            HarnessError: it is no such file.
        """
        chosen = read_chosen(plan)
        strikes = {strike.trial: strike for strike in chosen.strikes}
        return cls(strikes=strikes, hang_s=chosen.hang_s, log=plan.with_name(LOG_NAME))

    def amend(self, order: Order) -> Order:
        """The order of an attempt, with what strikes it."""
        request = order.request
        strike = self.strikes.get(request.trial_id)
        if strike is None or strike.attempt != request.attempt:
            return order
        told = {"strike": asdict(strike), "log": str(self.log), "hang_s": self.hang_s}
        stopped = strike.kind == "stop-trial"
        return replace(
            order,
            request=replace(
                request,
                environment=layered(request.environment),
                budgets=shortened(request.budgets, strike, self.hang_s),
            ),
            env={**order.env, STRIKE_ENV: orjson.dumps(told).decode()},
            limit_s=min(order.limit_s, STOPPED_HANGS * self.hang_s) if stopped else order.limit_s,
        )


def shortened(budgets: Budgets, strike: Strike, hang_s: float) -> Budgets:
    """The budgets of a struck attempt."""
    if strike.kind not in _HANGS:
        return budgets
    names = _BUDGETS[strike.phase]
    return replace(budgets, **{name: min(getattr(budgets, name), hang_s) for name in names})


def layered(provider: str) -> str:
    """The import path of the layer over a provider ``module:Class``; see `layer.__getattr__`."""
    module, _, name = provider.partition(":")
    return f"envkit.preflight.chaos.layer:struck__{module.replace('.', '__dot__')}__over__{name}"
