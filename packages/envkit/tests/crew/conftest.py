# SPDX-License-Identifier: Apache-2.0
"""Crews over the tiny task with a scripted model, with real boxes where they can be made."""

import pytest

from envkit.sandbox.availability import availability


@pytest.fixture(scope="session")
def boxes() -> None:
    """Asked for by every test that runs a trial."""
    here = availability()
    if not here.ok:
        pytest.skip(f"missing tool: {here.line()}")
