# SPDX-License-Identifier: Apache-2.0
"""One real engine for all tests of this folder, serving one tiny policy of three families."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from envkit.agent.engine.serve import Served

from . import policy
from .served import exact, served

FIRST_TEST_S = 1800
"""It trains a policy (four minutes of one core), starts the engine and runs the trials."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All of this folder needs the engine; whichever comes first waits until it serves."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.engine)
            item.add_marker(pytest.mark.timeout(FIRST_TEST_S))


@pytest.fixture(scope="session")
def engine_python() -> Path:
    """Interpreter of the environment that has vLLM."""
    named = os.environ.get("ENVKIT_TEST_ENGINE_PYTHON")
    if not named:
        pytest.skip("not run: no engine environment")
    return Path(named)


@pytest.fixture(scope="session")
def checkpoint(engine_python: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny policy; each family's tokenizer is in a folder of its name."""
    transcripts = policy.record_transcripts(tmp_path_factory.mktemp("transcripts") / "report")
    return policy.tiny_policy(engine_python, transcripts)


@pytest.fixture(scope="session")
def engine(
    engine_python: Path, checkpoint: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Served]:
    """vLLM with the tiny policy, in float32, without a prefix cache: it is to be exact."""
    log = tmp_path_factory.mktemp("engine") / "vllm.log"
    with served(exact(checkpoint, engine_python), log) as server:
        yield server
