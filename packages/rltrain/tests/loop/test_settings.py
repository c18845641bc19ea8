# SPDX-License-Identifier: Apache-2.0
"""Settings that contradict each other are refused with the reason; what only follows is noted."""

from __future__ import annotations

import pytest

from rltrain.config.read import read
from rltrain.loop.settings import Settings
from rltrain.recipes import recipe_file
from rltrain.refused import Refused

pytestmark = pytest.mark.trainer


def large(*settings: str) -> Settings:
    """The published run of 35B parameters, with these over it."""
    return read(Settings, recipe_file("qwen36-35b"), ["policy.path=policy", *settings])


def bare(*settings: str) -> Settings:
    """Nothing given but the policy and these."""
    return read(Settings, None, ["policy.path=policy", *settings])


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (
            ["rollout.turn=1"],
            "rollout.turn: there is no such setting; did you mean turns?",
        ),
        (
            ["buffer.stalenes=2"],
            "buffer.stalenes: there is no such setting; did you mean staleness",
        ),
        (["cluster.engine=2"], "cluster.engine: there is no such setting; did you mean engine"),
        (
            ["cluster.megatron.dp=2"],
            "cluster.megatron.dp: there is no such setting; there are tp",
        ),
        (["gates.overfit.task=2"], "gates.overfit.task: there is no such setting; did you mean ta"),
        (["evaluate.pases=2"], "evaluate.pases: there is no such setting; did you mean passes?"),
        (["rolout.turns=3"], "rolout: there is no such setting; did you mean rollout?"),
        (["rollout.kv_on_sync=drop"], "rollout.kv_on_sync: 'drop': input should be 'keep' or 're"),
        (["cluster.backend=nemo"], "cluster.backend: 'nemo': input should be 'fsdp' or 'megatron'"),
    ],
)
def test_a_name_that_means_nothing_is_refused_with_the_nearest(
    settings: list[str], said: str
) -> None:
    _expect_refused(settings, said)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (["rollout.temperature=0"], "rollout: temperature: 0 leaves no choice"),
        (["rollout.temperature=-1"], "rollout: temperature: -1 leaves no choice"),
        (
            ["rollout.top_p=0.95"],
            "rollout: top_p: 0.95 cuts the distribution, and no trainer makes",
        ),
        (["rollout.top_k=50"], "rollout: top_k: 50 cuts the distribution, and no trainer makes"),
        (["rollout.top_logprobs=-1"], "rollout: top_logprobs: -1 is below 0"),
        (["rollout.concurrency=0"], "rollout: concurrency: 0 is below 1"),
        (["rollout.context_tokens=0"], "rollout: context_tokens: 0 is below 1"),
        (["rollout.tokens_per_turn=0"], "rollout: tokens_per_turn: 0 is below 1"),
        (["rollout.turns=0"], "rollout: turns: 0 is below 1"),
        (["rollout.starts_per_s=0"], "rollout: starts_per_s: 0 is not above 0"),
        (["rollout.llm_call_s=0"], "rollout: llm_call_s: 0 is not above 0"),
        (["rollout.agent_s=-3"], "rollout: agent_s: -3 is not above 0"),
        (["rollout.tool_result_chars=0"], "rollout: tool_result_chars: 0 is below 1"),
        (["rollout.tool_result_head_share=2"], "rollout: tool_result_head_share: 2 is no share"),
        (["rollout.nudge_ratio=20"], "rollout: nudge_ratio: 20 is no share, 0 to 1"),
        (["buffer.staleness=-1"], "buffer: staleness: -1 is below 0"),
        (["gates.logprob_difference=0"], "gates: logprob_difference: 0 is not above 0"),
        (["gates.least_tokens=0"], "gates: least_tokens: 0 is below 1"),
        (["gates.overfit.samples=1"], "gates.overfit: tasks at least 1, and samples at least 2"),
        (["gates.overfit.rise=0"], "gates.overfit: rise: 0 is not above 0, so nothing need be"),
        (["evaluate.passes=0"], "evaluate: passes: 0 is below 1"),
        (["evaluate.context_tokens=0"], "evaluate: context_tokens: 0 is below 1"),
        (["evaluate.every_steps=-1"], "evaluate: every_steps: -1 is below 0"),
        (["evaluate.nudge_ratio=0.2"], "evaluate.nudge_ratio: an evaluation never nudges"),
        (["cluster.gpus_per_node=-1"], "cluster: gpus_per_node: -1 is below 0"),
        (
            ["cluster.gpus_per_node=0", "cluster.engine_tp=2"],
            "cluster: gpus_per_node: 0, and engine_tp above 1 and megatron need GPUs",
        ),
        (["cluster.ranks=0"], "cluster: ranks: 0 is below 1"),
        (["rollout.repairs=-1"], "rollout: repairs: -1 is below 0"),
        (["optimizer.learning_rate=-1"], "optimizer: learning_rate: -1 is below 0"),
        (["cluster.megatron.cp=0"], "cluster.megatron: cp: 0 is below 1"),
        (
            ["cluster.engines=11"],
            "cluster: engines: 11 of 8 GPUs are 88, and 10 inference_nodes have 80",
        ),
        (
            ["cluster.megatron.cp=3"],
            "cluster: megatron: tp x pp x cp = 24 does not divide the 32 training GPUs",
        ),
        (
            ["cluster.megatron.etp=3"],
            "cluster: megatron: ep x etp x pp = 24 does not divide the 32 training GPUs",
        ),
        (
            ["cluster.megatron.ep=64"],
            "cluster: megatron: ep x etp x pp = 64 does not divide the 32 training GPUs",
        ),
        (
            ["cluster.megatron.pp=3"],
            "cluster: megatron: tp x pp x cp = 24 does not divide the 32 training GPUs",
        ),
        (
            ["cluster.megatron.tp=1", "cluster.megatron.pp=8"],
            "cluster: megatron: ep x etp x pp = 64 does not divide the 32 training GPUs",
        ),
        (["cluster.backend=fsdp"], "cluster: megatron: backend megatron needs this table, and no"),
    ],
)
def test_a_value_that_cannot_be_is_refused_with_the_reason(settings: list[str], said: str) -> None:
    _expect_refused(settings, said)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (["objective.terms.kl=0.1"], "objective.terms.kl is above 0 and policy.reference names no"),
        (
            ["batch.micro_batch_tokens=159999"],
            "batch.micro_batch_tokens 159999 is below rollout.context_tokens 160000: no micro",
        ),
        (["batch.samples=1"], "batch.samples 1 is below 2: a group has no baseline then"),
        (
            ['objective.loss={name = "dppo_topk"}'],
            "objective.loss.name is dppo_topk and rollout.top_logprobs is 0",
        ),
        (
            ["objective.aggregate.name=token_sum_norm", "objective.aggregate.longest=50000"],
            "objective.aggregate.longest 50000 is below rollout.context_tokens 160000",
        ),
        (
            ["objective.length_penalty.model=0.1", "objective.length_penalty.longest=50000"],
            "objective.length_penalty.longest 50000 is below rollout.context_tokens 160000",
        ),
        (
            ["objective.length_penalty.environment=1", "objective.length_penalty.longest=159999"],
            "objective.length_penalty.longest 159999 is below rollout.context_tokens 160000",
        ),
    ],
)
def test_tables_that_contradict_each_other_are_refused_with_the_reason(
    settings: list[str], said: str
) -> None:
    _expect_refused(settings, f"settings: {said}")


@pytest.mark.parametrize("loss", ["dppo", "dppo_kl", "glm5"])
@pytest.mark.parametrize(
    "stacked",
    [
        "objective.loss.correction=tis",
        "objective.loss.old=true",
        "objective.correction.name=tis",
        "objective.tis.cap=2",
        "objective.off_policy_correction=true",
    ],
)
def test_an_off_policy_correction_on_top_of_a_loss_is_refused_for_what_it_is(
    loss: str, stacked: str
) -> None:
    with pytest.raises(Refused, match=r"takes no off-policy correction") as refused:
        large(f'objective.loss={{name = "{loss}"}}', stacked)
    name = stacked.split("=")[0].removesuffix(".name").removesuffix(".cap")
    assert str(refused.value).startswith(f"{name}: ")
    assert "objective.loss.name = tis" in str(refused.value)


@pytest.mark.parametrize(
    "settings",
    [
        ["batch.micro_batch_tokens=160000"],
        ["batch.samples=2"],
        ['objective.loss={name = "dppo_topk"}', "rollout.top_logprobs=20"],
        ["objective.aggregate.name=token_sum_norm", "objective.aggregate.longest=160000"],
        ["objective.length_penalty.model=0.1", "objective.length_penalty.longest=160000"],
        ["objective.length_penalty.longest=5"],
        ["objective.terms.kl=0.1", "policy.reference=other"],
        ["cluster.engines=20", "cluster.engine_tp=4"],
        ["cluster.megatron.ep=32", "cluster.megatron.cp=4"],
        ["evaluate.every_steps=0"],
        ["rollout.nudge_ratio=0"],
    ],
)
def test_what_stands_at_the_edge_is_no_contradiction(settings: list[str]) -> None:
    assert large(*settings)


def test_recorded_trajectories_need_nothing_of_a_rollout() -> None:
    settings = bare("batch.micro_batch_tokens=512", 'objective.loss={name = "dppo_topk"}')
    assert settings.rollout is settings.cluster is settings.evaluate is None
    assert settings.notes() == ()


def test_one_value_of_a_table_brings_its_others_as_published() -> None:
    settings = bare("rollout.turns=7")
    assert settings.rollout is not None
    assert (settings.rollout.turns, settings.rollout.concurrency) == (7, 550)


@pytest.mark.parametrize(
    ("staleness", "ceiling"), [("0", 256), ("1", 512), ("3", 1024), ("7", 2048)]
)
def test_the_ceiling_is_a_batch_for_every_step_that_a_sample_may_lag(
    staleness: str, ceiling: int
) -> None:
    assert large(f"buffer.staleness={staleness}").ceiling == ceiling


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ([], "rollout.concurrency 550 is within (3 + 1) x 16 x 16 = 1024, in which finished"),
        (["rollout.concurrency=1024"], "rollout.concurrency 1024 is within (3 + 1) x 16 x 16"),
        (
            ["rollout.concurrency=1100"],
            "rollout.concurrency 1100 is above (3 + 1) x 16 x 16 = 1024: staleness binds, and 76",
        ),
        (
            ["buffer.staleness=0"],
            "rollout.concurrency 550 is above (0 + 1) x 16 x 16 = 256: staleness binds, and 294",
        ),
        (
            ["cluster.inference_nodes=12"],
            "cluster: 10 engines of 8 GPUs leave 16 of 96 inference GPUs idle",
        ),
        ([], "cluster.megatron: 32 training GPUs hold 4 copies of the policy, of 8 each"),
        (
            ["rollout.tokens_per_turn=200000"],
            "rollout.tokens_per_turn 200000 is above rollout.context_tokens 160000 and never binds",
        ),
        (["rollout.agent_s=900"], "rollout.llm_call_s 1800 is above rollout.agent_s 900"),
        (["policy.reference=other"], "policy.reference is named, and objective.terms.kl is 0"),
    ],
)
def test_what_follows_from_the_settings_is_noted(settings: list[str], said: str) -> None:
    assert [line for line in large(*settings).notes() if line.startswith(said)]


def test_nothing_is_noted_that_does_not_follow() -> None:
    assert [line.split(" ")[0] for line in large().notes()] == [
        "rollout.concurrency",
        "cluster.megatron:",
    ]


def _expect_refused(settings: list[str], said: str) -> None:
    with pytest.raises(Refused) as refused:
        large(*settings)
    assert str(refused.value).startswith(said)
    assert "\n" not in str(refused.value)
