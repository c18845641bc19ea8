# SPDX-License-Identifier: Apache-2.0
# pyright: basic, reportMissingImports=false
"""The part that runs inside an engine: vLLM reads it by ``--worker-extension-cls``.

Contract: reading it registers our weight-transfer engine under `BACKEND`; each worker then has the
methods of `Extension` for ``/collective_rpc``.
"""

from __future__ import annotations

import os
from typing import Any, Final

from vllm.distributed.weight_transfer.factory import WeightTransferEngineFactory

from rltrain.sync.serve import BACKEND, SHARED_CORES

VLLM_SPIN_S: Final = 1
"""Of vLLM 0.32; what is there otherwise is left as it is."""
SPIN_S: Final = 0.002


def _register() -> None:
    if BACKEND not in WeightTransferEngineFactory._registry:
        WeightTransferEngineFactory.register_engine(BACKEND, "rltrain.sync.receiver", "Receiver")


def _spin_less() -> None:
    """vLLM's workers look for work without a pause for a second after each step. Where trials and
    the trainer share the cores, they look so long that the next step of a request that goes on is
    seen, and then wait to be woken."""
    from vllm.distributed.device_communicators import shm_broadcast

    waiting = getattr(shm_broadcast, "SpinCondition", None)
    if waiting is not None and waiting.__init__.__defaults__ == (VLLM_SPIN_S,):
        waiting.__init__.__defaults__ = (SPIN_S,)


_register()
if os.environ.get(SHARED_CORES):
    _spin_less()


class Extension:
    """Beside the methods of a worker."""

    def sync_hello(self: Any) -> dict[str, Any]:
        """What whoever joins has to know."""
        dtype = str(self.model_config.dtype).removeprefix("torch.")
        return {"rank": self.rank, "dtype": dtype, "model": self.model_config.hf_config.model_type}

    def sync_report(self: Any) -> dict[str, Any]:
        """Of the update that was ended last."""
        report = self.weight_transfer_engine.report
        if report is None:
            raise RuntimeError("no update was ended since the last one began")
        return report
