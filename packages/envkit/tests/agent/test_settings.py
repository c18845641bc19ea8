# SPDX-License-Identifier: Apache-2.0
"""What the model's agent is told: what means nothing is refused in one line."""

from typing import Any

import pytest

from envkit.agent.settings import ModelSettings
from envkit.fault import HarnessError

GIVEN = {"engine": "http://127.0.0.1:1", "tokenizer": "model"}


def test_plain_data_becomes_settings() -> None:
    read = ModelSettings.read(
        **GIVEN,
        sampling={"temperature": 0.7},
        limits={"turns": 3},
        budgets={"mcp_call_s": 9.0},
        extras=["final_answer"],
        toolbelt="code",
    )
    assert (read.engine.url, read.engine.budgets.mcp_call_s) == ("http://127.0.0.1:1", 9.0)
    assert (read.sampling.temperature, read.limits.turns) == (0.7, 3)
    assert (read.toolbelt, read.extras, read.evaluation) == ("code", ("final_answer",), False)


def test_an_engine_may_be_told_in_full() -> None:
    engine = {"url": "http://127.0.0.1:1", "model": "tiny", "backoff": {"tries": 1}}
    read = ModelSettings.read(engine=engine, tokenizer="model")
    assert (read.engine.model, read.engine.backoff.tries) == ("tiny", 1)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"limits": {"turn": 3}}, "limits: there is no 'turn'; there are context_tokens"),
        ({"sampling": {"temp": 1}}, "sampling: there is no 'temp'"),
        ({"budgets": {"a": 1}}, "budgets: there is no 'a'"),
        ({"engine": {}}, "engine: .*url"),
        ({"engine": {"url": "u", "protocol": "chat"}}, "engine: protocol: .*'generate'"),
        ({"limits": {"turns": "many"}}, "limits: turns: .* integer"),
        ({"limits": {"own_s": None}}, "limits: own_s: .* number"),
        ({"sampling": {"temperature": "hot"}}, "sampling: temperature: .* number"),
        ({"budgets": {"mcp_call_s": [9]}}, "budgets: mcp_call_s: .* number"),
        ({"variables": [1]}, "agent: variables: .* dictionary"),
        ({"engine": {"url": "u", "backoff": {"x": 1}}}, "engine.backoff: there is no 'x'"),
        ({"toolbelt": "shell"}, "toolbelt: there is no 'shell'; there are mcp, code"),
        ({"extras": ["memory"]}, "extras: there is no 'memory'"),
        ({"nudge": True}, "agent: there is no 'nudge'"),
    ],
)
def test_what_means_nothing_is_refused(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(HarnessError, match=said):
        ModelSettings.read(**{**GIVEN, **wrong})
