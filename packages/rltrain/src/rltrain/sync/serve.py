# SPDX-License-Identifier: Apache-2.0
"""What an engine has to be started with, so that weights can be sent to it.

Contract: its interpreter has ``rltrain`` beside vLLM. The same arguments serve every method.
"""

from __future__ import annotations

from typing import Final

from rltrain.sync.config import SyncConfig

BACKEND: Final = "rltrain"
"""Name of our weight-transfer engine inside vLLM."""
SHARED_CORES: Final = "RLTRAIN_SHARED_CORES"
"""Set in an engine's environment where it computes on cores that others use too."""
EXTENSION: Final = "rltrain.sync.extension.Extension"


def serve_arguments(config: SyncConfig) -> tuple[str, ...]:
    """More of vLLM's command line."""
    del config  # whoever joins says by which method
    return (
        *("--worker-extension-cls", EXTENSION),
        *("--weight-transfer-config", f'{{"backend": "{BACKEND}"}}'),
    )


def serve_environment(config: SyncConfig) -> dict[str, str]:
    """More of its environment: without it the routes of weight updates are not there."""
    del config
    return {"VLLM_SERVER_DEV_MODE": "1"}
