# SPDX-License-Identifier: Apache-2.0
"""Files of weights for tests, made byte by byte."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from pathlib import Path

import numpy as np

TYPES = {"float32": "F32", "float16": "F16", "int32": "I32"}


def write(file: Path, tensors: Mapping[str, np.ndarray], **metadata: str) -> Path:
    """One file, its tensors in this order."""
    header: dict[str, object] = {"__metadata__": metadata} if metadata else {}
    at = 0
    for name, each in tensors.items():
        offsets = [at, at + each.nbytes]
        header[name] = {"dtype": TYPES[str(each.dtype)], "shape": each.shape}
        header[name] |= {"data_offsets": offsets}  # type: ignore[operator]
        at += each.nbytes
    text = json.dumps(header).encode()
    body = b"".join(each.tobytes() for each in tensors.values())
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(struct.pack("<Q", len(text)) + text + body)
    return file


def index(directory: Path, files: Mapping[str, str]) -> None:
    """What names the file of each tensor."""
    text = json.dumps({"metadata": {}, "weight_map": files})
    (directory / "model.safetensors.index.json").write_text(text, "utf-8")
