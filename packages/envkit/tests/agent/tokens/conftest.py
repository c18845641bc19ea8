# SPDX-License-Identifier: Apache-2.0
"""One model directory and one loaded template for each family."""

from pathlib import Path

import pytest

from envkit.agent.tokens import ChatTemplate, load_template

from .models import FAMILIES, make_model


@pytest.fixture(scope="session")
def model_dirs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("models")
    return {family: make_model(root / family, family) for family in FAMILIES}


@pytest.fixture(scope="session")
def templates(model_dirs: dict[str, Path]) -> dict[str, ChatTemplate]:
    return {family: load_template(directory) for family, directory in model_dirs.items()}


@pytest.fixture(params=list(FAMILIES))
def family(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def template(templates: dict[str, ChatTemplate], family: str) -> ChatTemplate:
    return templates[family]
