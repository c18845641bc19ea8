# SPDX-License-Identifier: Apache-2.0
"""The recipes of the published runs come to the published values, and every recipe is whole."""

from __future__ import annotations

from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest

from rltrain.config.read import read
from rltrain.config.show import shown
from rltrain.loop.settings import Settings
from rltrain.objective.loss import Dppo, Glm5
from rltrain.recipes import RECIPES, recipe_file
from rltrain.refused import Refused

pytestmark = pytest.mark.trainer

PATH = "policy.path=policy"

# RECIPE §5, row for row: settings, their values at 35B, and at 397B where they are others.
PUBLISHED: list[tuple[str, tuple[str, ...], tuple[Any, ...], tuple[Any, ...] | None]] = [
    (
        "nodes inference : train (the script's 10:4; 12:4 is the text's)",
        ("cluster.inference_nodes", "cluster.training_nodes"),
        (10, 4),
        (12, 8),
    ),
    ("engines x TP", ("cluster.engines", "cluster.engine_tp"), (10, 8), (12, 8)),
    (
        "Megatron TP/EP/PP/CP/ETP",
        tuple(f"cluster.megatron.{name}" for name in ("tp", "ep", "pp", "cp", "etp")),
        (8, 8, 1, 1, 1),
        (4, 16, 4, 2, 1),
    ),
    ("backend", ("cluster.backend", "cluster.gpus_per_node"), ("megatron", 8), None),
    ("prompts per step x samples", ("batch.prompts", "batch.samples"), (16, 16), None),
    ("max staleness steps", ("buffer.staleness", "ceiling"), (3, 1024), None),
    ("rollout concurrency", ("rollout.concurrency",), (550,), (300,)),
    ("trajectory starts per second", ("rollout.starts_per_s",), (3.0,), None),
    ("tokens per micro-batch", ("batch.micro_batch_tokens",), (160_000,), None),
    (
        "context train / eval",
        ("rollout.context_tokens", "evaluate.context_tokens"),
        (160_000, 262_144),
        None,
    ),
    ("per-turn max tokens", ("rollout.tokens_per_turn",), (50_000,), (40_000,)),
    ("LLM call / agent timeout", ("rollout.llm_call_s", "rollout.agent_s"), (1800.0, 3600.0), None),
    (
        "tool result cap",
        ("rollout.tool_result_chars", "rollout.tool_result_head_share"),
        (42_000, 2 / 3),
        None,
    ),
    ("nudge", ("rollout.nudge_ratio",), (0.2,), None),
    (
        "loss",
        ("objective.loss.delta_low", "objective.loss.delta_high", "objective.aggregate.name"),
        (0.15, 0.15, "prompt_mean"),
        None,
    ),
    (
        "Adam",
        (
            "optimizer.learning_rate",
            "optimizer.betas",
            "optimizer.weight_decay",
            "optimizer.clip",
            "cluster.offload_optimizer",
        ),
        (1e-6, (0.9, 0.98), 0.01, 1.0, True),
        None,
    ),
    ("temperature / top_p", ("rollout.temperature", "rollout.top_p"), (1.0, 1.0), None),
    ("overfit gate", ("gates.overfit.tasks", "gates.overfit.samples"), (32, 8), None),
    ("healthy mean logprob difference", ("gates.logprob_difference",), (0.03,), None),
]


def recipe(name: str, *settings: str) -> Settings:
    return read(Settings, recipe_file(name), [PATH, *settings])


@pytest.mark.parametrize(
    ("names", "small", "large"), [row[1:] for row in PUBLISHED], ids=[row[0] for row in PUBLISHED]
)
def test_the_published_runs_come_to_the_published_values(
    names: tuple[str, ...], small: tuple[Any, ...], large: tuple[Any, ...] | None
) -> None:
    assert tuple(attrgetter(name)(recipe("qwen36-35b")) for name in names) == small
    assert tuple(attrgetter(name)(recipe("qwen35-397b")) for name in names) == (large or small)


@pytest.mark.parametrize("name", ["qwen36-35b", "qwen35-397b"])
def test_the_published_runs_take_what_won_the_ablation_and_nothing_that_lost(name: str) -> None:
    settings = recipe(name)
    objective = settings.objective
    assert isinstance(objective.loss, Dppo)
    assert (objective.advantage.name, objective.advantage.deviation) == ("grpo", False)
    assert not objective.overlong_filter
    assert (objective.length_penalty.model, objective.length_penalty.environment) == (0.0, 0.0)
    assert (objective.terms.kl, objective.terms.entropy) == (0.0, 0.0)
    assert settings.rollout is not None
    assert settings.rollout.kv_on_sync == "keep"


def test_the_two_published_runs_differ_in_what_their_size_asks_for_alone() -> None:
    lines = [set(shown(recipe(name)).splitlines()) for name in ("qwen36-35b", "qwen35-397b")]
    assert {line.split(" = ")[0] for line in lines[0] ^ lines[1]} == {
        *("concurrency", "tokens_per_turn", "inference_nodes", "training_nodes", "engines"),
        *("tp", "ep", "pp", "cp"),
    }


def test_the_gate_is_synchronous_and_trains_on_all_of_its_tasks_in_every_step() -> None:
    settings = recipe("overfit")
    gate, batch = settings.gates.overfit, settings.batch
    assert (batch.prompts, batch.samples) == (gate.tasks, gate.samples) == (32, 8)
    assert settings.buffer.staleness == 0
    assert settings.rollout is not None
    assert settings.rollout.concurrency == settings.ceiling == 256


def test_the_tiny_run_needs_no_gpu() -> None:
    settings = recipe("tiny-cpu")
    assert settings.cluster is None
    assert (settings.policy.dtype, settings.policy.attention) == ("float32", "varlen")
    assert (settings.batch.prompts, settings.batch.samples) == (6, 4)
    assert settings.optimizer.learning_rate == 7e-5
    assert settings.optimizer.warmup_steps > 0
    assert settings.objective.terms.entropy == 0.0


@pytest.mark.parametrize("name", RECIPES)
def test_every_recipe_asks_for_the_policy_and_for_nothing_else(name: str) -> None:
    with pytest.raises(Refused, match=r"^policy\.path: must be given; it has no default$"):
        read(Settings, recipe_file(name))
    assert recipe(name).policy.path == "policy"


@pytest.mark.parametrize("name", RECIPES)
def test_what_a_recipe_comes_to_is_read_back_as_it_was(name: str, tmp_path: Path) -> None:
    settings = recipe(name)
    file = tmp_path / "config.toml"
    file.write_text(shown(settings), "utf-8")
    assert read(Settings, file) == settings


def test_another_loss_is_put_in_place_of_a_recipe_s_whole() -> None:
    settings = recipe("qwen36-35b", "objective.loss.name=glm5")
    assert settings.objective.loss == Glm5(eps_low=0.5, eps_high=4.0)
