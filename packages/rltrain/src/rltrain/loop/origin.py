# SPDX-License-Identifier: Apache-2.0
"""The policy that a run began with, which must be there unchanged as long as the run is used.

What is trained is told from it: layers and sizes, and with LoRA the weights themselves.
"""

from __future__ import annotations

from pathlib import Path

from envkit.fault import EnvkitError
from envkit.trajectory.weights import weight_files, weights_digest
from rltrain.loop.directory import Manifest
from rltrain.loop.settings import Settings
from rltrain.refused import Refused


def weights(settings: Settings) -> str:
    """Digest of the policy's; empty where it has none in safetensors.

    Raises:
        Refused: a file of them is damaged or missing.
    """
    directory = Path(settings.policy.path)
    try:
        return weights_digest(directory) if weight_files(directory) else ""
    except EnvkitError as error:
        raise Refused(f"policy.path: {error}") from error


def expect_unchanged(settings: Settings, manifest: Manifest) -> None:
    """The policy is the one that the run began with.

    Raises:
        Refused: it is another.
    """
    if weights(settings) != manifest.weights:
        raise Refused(
            f"policy.path: {settings.policy.path}: has other weights than when the run began;"
            " put those back"
        )
