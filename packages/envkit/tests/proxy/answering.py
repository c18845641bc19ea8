# SPDX-License-Identifier: Apache-2.0
"""Turns that follow from the prompt alone, so that any number of conversations can be told apart.

Run by the scripted engine, in its process.
"""

from collections.abc import Mapping
from typing import Any

LETTERS = 20
"""Ids below this one and over the first are letters of the tests' tokenizers."""


def follow(prompt: list[int], request: Mapping[str, Any]) -> dict[str, Any]:
    """Ten letters that hang on every id of the prompt."""
    number = hash(tuple(prompt))
    ids = [40 + (number >> 4 * place) % LETTERS for place in range(10)]
    stop = request["sampling_params"]["stop_token_ids"][0]
    return {"ids": [*ids, stop]}
