# SPDX-License-Identifier: Apache-2.0
"""``config.json`` of a model, from its directory or from the ones that are shipped.

Contract: a shipped one holds architecture figures alone, under ``figures``, and under ``source``
where each is from; nothing is fetched.
"""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from typing import Any, Final, cast

from rltrain.refused import Refused

MODELS: Final = ("qwen3.6-35b-a3b", "qwen3.5-397b-a17b")
"""Names of shipped ones."""
CONFIG: Final = "config.json"


def config_of(name: str) -> dict[str, Any]:
    """Of a shipped model, a directory or a file.

    Raises:
        Refused: there is none, or it is no JSON.
    """
    if name.lower() in MODELS:
        text = files("rltrain.plan").joinpath("models", f"{name.lower()}.json").read_text("utf-8")
        return cast("dict[str, Any]", json.loads(text)["figures"])
    path = Path(name)
    file = path / CONFIG if path.is_dir() else path
    try:
        found: Any = json.loads(file.read_bytes())
    except OSError as error:
        known = ", ".join(MODELS)
        raise Refused(
            f"{file}: {error.strerror}; name a model's directory with --model, or one of {known}"
        ) from error
    except ValueError as error:
        raise Refused(f"{file}: is no JSON ({error}); mend it") from error
    if not isinstance(found, dict):
        raise Refused(f"{file}: is no JSON object; name a model's config.json")
    return cast("dict[str, Any]", found)
