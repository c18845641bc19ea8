# SPDX-License-Identifier: Apache-2.0
# pyright: basic, reportMissingImports=false
"""The part that runs inside an engine: vLLM reads it by ``--worker-extension-cls``.

Contract: reading it registers our weight-transfer engine under `BACKEND`; each worker then has the
methods of `Extension` for ``/collective_rpc``.
"""

from __future__ import annotations

from typing import Any

from vllm.distributed.weight_transfer.factory import WeightTransferEngineFactory

from rltrain.sync.serve import BACKEND


def _register() -> None:
    if BACKEND not in WeightTransferEngineFactory._registry:
        WeightTransferEngineFactory.register_engine(BACKEND, "rltrain.sync.receiver", "Receiver")


_register()


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
