# SPDX-License-Identifier: Apache-2.0
"""Real trials for tests: skipped where no box can be made."""

import os

import pytest

from envkit.sandbox.availability import availability


@pytest.fixture(scope="session")
def boxes() -> None:
    """Asked for by every test that runs a trial."""
    here = availability()
    if not here.ok:
        pytest.skip(f"missing tool: {here.line()}")


@pytest.fixture(scope="session")
def reach(boxes: None) -> None:
    """Asked for by tests that kill or read what runs in boxes from outside."""
    if os.geteuid() != 0:
        pytest.skip("not run: needs root")
