# SPDX-License-Identifier: Apache-2.0
import typing

import pytest

from envkit.task.keys import DEPRECATED, MIXED_LISTS, TASK_KEYS

pytest.importorskip("harbor", reason="not run: harbor absent")

from harbor.models.task.config import TaskConfig
from pydantic import BaseModel


def inner_models(annotation: object) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for part in typing.get_args(annotation) for model in inner_models(part)]


def keys_of(model: type[BaseModel]) -> dict[str, object]:
    hints = typing.get_type_hints(model)
    found = {name: inner_models(hints[name]) for name in model.model_fields}
    assert all(len(models) <= 1 for models in found.values())
    return {name: keys_of(models[0]) if models else None for name, models in found.items()}


def test_key_table_is_the_one_of_the_installed_harbor() -> None:
    assert keys_of(TaskConfig) == TASK_KEYS


def test_lists_that_mix_strings_and_tables_are_those_of_harbor() -> None:
    assert all("str" in str(TaskConfig.model_fields[key].annotation) for key in MIXED_LISTS)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize(("table", "key"), DEPRECATED)
def test_harbor_still_takes_each_deprecated_key(table: str, key: str) -> None:
    values = {"version": "1.4", "memory": "1G", "storage": "1G", "allow_internet": False}
    config = {table: {key: values[key]}} if table else {key: values[key]}
    bare = TaskConfig.model_validate({})
    assert TaskConfig.model_validate(config).model_fields_set != bare.model_fields_set
