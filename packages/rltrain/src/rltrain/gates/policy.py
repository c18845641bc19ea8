# SPDX-License-Identifier: Apache-2.0
"""What a policy's directory says of itself, without loading the model."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from envkit.agent.tokens.vocabulary import Vocabulary
from rltrain.refused import Refused


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class PolicyFacts:
    """Whom the trajectories are to be of."""

    path: Path
    vocabulary: Vocabulary
    size: int
    """Ids that the model can score are below it."""

    @classmethod
    def read(cls, path: Path) -> Self:
        """Of a checkpoint's directory.

        Raises:
            Refused: it is none.
            TemplateRefused: its tokenizer cannot be used.
        """
        words = Vocabulary(_text(path / "tokenizer.json"))
        return cls(path=path, vocabulary=words, size=_size(path / "config.json", words.size))


def _text(file: Path) -> str:
    try:
        return file.read_bytes().decode()
    except OSError as error:
        line = f"--policy {file.parent}: {file.name}: {error.strerror}; name a checkpoint"
        raise Refused(line) from error
    except UnicodeDecodeError as error:
        raise Refused(f"--policy {file.parent}: {file.name}: is no text") from error


def _size(file: Path, otherwise: int) -> int:
    try:
        told: Any = json.loads(_text(file))
        size: Any = (told.get("text_config") or told).get("vocab_size", otherwise)
    except (ValueError, AttributeError) as error:
        raise Refused(f"--policy {file.parent}: {file.name}: cannot be read") from error
    return int(size)
