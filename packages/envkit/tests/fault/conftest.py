# SPDX-License-Identifier: Apache-2.0
"""Exceptions of many kinds, and Harbor's own way of storing one."""

from collections.abc import Callable, Mapping

import pytest
from harbor.models.trial.result import ExceptionInfo


def foreign(name: str, module: str, *bases: type[BaseException]) -> type[BaseException]:
    """A class as another library defines it, without installing the library."""
    return type(name, bases or (Exception,), {"__module__": module})


@pytest.fixture
def stored() -> Callable[[BaseException], Mapping[str, object]]:
    """What Harbor writes into ``result.json`` about an exception it caught."""

    def store(error: BaseException) -> Mapping[str, object]:
        try:
            raise error
        except BaseException as caught:
            return ExceptionInfo.from_exception(caught).model_dump(mode="json")

    return store


@pytest.fixture(name="foreign")
def foreign_fixture() -> Callable[..., type[BaseException]]:
    return foreign
