# SPDX-License-Identifier: Apache-2.0
"""One proxy for all tests that do not end it; each has conversations of its own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from .small import Proxied, proxied


@pytest.fixture(scope="session")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxied]:
    """Of the family qwen3."""
    root: Path = tmp_path_factory.mktemp("proxy")
    with proxied(root) as served:
        yield served
