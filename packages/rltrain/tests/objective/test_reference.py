# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: E741 - l is the name that the specification gives to the trainer's log-prob
"""The reference of the objective agrees with numbers worked out by hand and with its own slopes."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from . import reference as ref

NAN = math.nan
LN2 = math.log(2)
UP = (0.75, 0.5)
"""(π, πμ): r = 3/2, |π - πμ| = 1/4, binary KL = ln(4/3)/2 = 0.1438"""
DOWN = (0.5, 0.75)
"""(π, πμ): r = 2/3, |π - πμ| = 1/4, binary KL = 0.75 ln 1.5 - 0.25 ln 2 = 0.1308"""


def close(got: npt.ArrayLike, wanted: npt.ArrayLike) -> bool:
    """Equal up to float64's rounding; NaN equals NaN."""
    return bool(np.allclose(got, wanted, rtol=1e-12, atol=1e-14, equal_nan=True))


def logs(*probabilities: float) -> list[float]:
    return [math.log(p) for p in probabilities]


# --- advantages -----------------------------------------------------------------------------------

ONE_OF_FOUR = [1.0, 0.0, 0.0, 0.0]  # mean 1/4, variance 1/4 · 3/4 = 3/16


def advantages_of_one_group(name: str, rewards: list[float], **options: bool) -> ref.Array:
    n = len(rewards)
    got, dropped = ref.advantages(name, rewards, [True] * n, [7] * n, **options)
    assert dropped == {}
    return got


def test_grpo_is_the_distance_to_the_mean() -> None:
    assert close(advantages_of_one_group("grpo", ONE_OF_FOUR), [0.75, -0.25, -0.25, -0.25])


def test_grpo_with_deviation_divides_by_the_population_deviation() -> None:
    # sqrt(3/16) = 0.4330127018922193
    got = advantages_of_one_group("grpo", ONE_OF_FOUR, deviation=True)
    assert close(got, np.array([0.75, -0.25, -0.25, -0.25]) / 0.4330137018922193)


def test_rloo_is_the_distance_to_the_mean_of_the_others() -> None:
    # 1 - 0 = 1; 0 - 1/3
    assert close(advantages_of_one_group("rloo", ONE_OF_FOUR), [1, -1 / 3, -1 / 3, -1 / 3])


def test_rloo_is_grpo_times_n_over_n_less_one() -> None:
    rewards = [0.1, 0.9, 0.4, 0.25, 0.7]
    rloo, grpo = (advantages_of_one_group(name, rewards) for name in ("rloo", "grpo"))
    assert close(rloo, grpo * 5 / 4)


def test_maxrl_divides_by_the_mean() -> None:
    # (1 - 1/4) / (1/4) = 3; (0 - 1/4) / (1/4) = -1
    assert close(advantages_of_one_group("maxrl", ONE_OF_FOUR), [3, -1, -1, -1])


@pytest.mark.parametrize("rewards", [[-1.0, 1.0], [-2.0, 1.0]])
def test_maxrl_refuses_a_mean_that_is_not_positive_by_its_group(rewards: list[float]) -> None:
    with pytest.raises(ValueError, match="group 7"):
        advantages_of_one_group("maxrl", rewards)


def test_maxrl_does_not_mind_a_dropped_group_of_zeros() -> None:
    rewards = [0.0, 0.0, 1.0, 0.0]
    got, dropped = ref.advantages("maxrl", rewards, [True] * 4, [0, 0, 1, 1])
    assert dropped == {0: "no_variance"}
    assert close(got, [0, 0, 1, -1])


def test_reinforce_pp_divides_by_one_deviation_for_all_kept_groups() -> None:
    # C = 3/4, -1/4 three times; 1/2 twice, -1/2 twice. Sum of squares 12/16 + 1 = 7/4, of 8.
    # The dropped group (0.3, 0.3) and the invalid sample are in no sum.
    rewards = [*ONE_OF_FOUR, 1.0, 1.0, 0.0, 0.0, 0.3, 0.3, NAN]
    valid = [True] * 10 + [False]
    group = [5] * 4 + [2] * 4 + [9] * 2 + [5]
    got, dropped = ref.advantages("reinforce_pp", rewards, valid, group)
    assert dropped == {9: "no_variance"}
    centred = np.array([0.75, -0.25, -0.25, -0.25, 0.5, 0.5, -0.5, -0.5, 0, 0, 0])
    assert close(got, centred / (math.sqrt(7 / 32) + 1e-6))


@pytest.mark.parametrize("name", ["grpo", "rloo", "maxrl", "reinforce_pp"])
def test_an_invalid_sample_is_in_no_baseline_whatever_its_reward(name: str) -> None:
    valid = [True, False, True, True]
    with_nan, _ = ref.advantages(name, [1.0, NAN, 0.0, 0.5], valid, [0] * 4)
    with_number, _ = ref.advantages(name, [1.0, 9.0, 0.0, 0.5], valid, [0] * 4)
    alone, _ = ref.advantages(name, [1.0, 0.0, 0.5], [True] * 3, [0] * 3)
    assert close(with_nan, with_number)
    assert close(with_nan, [alone[0], 0, alone[1], alone[2]])


def test_one_invalid_of_sixteen_leaves_the_live_advantages_summing_to_zero() -> None:
    # 6 of 15 valid rewards are 1: mean 0.4, 6 · 0.6 - 9 · 0.4 = 0. Kept in the baseline at
    # reward 0 the mean is 6/16 and the live sum 6 - 15 · 6/16 = 0.375.
    rewards = [1.0] * 6 + [0.0] * 9 + [NAN]
    valid = [True] * 15 + [False]
    got, dropped = ref.advantages("grpo", rewards, valid, [0] * 16)
    assert dropped == {}
    assert close(got, [0.6] * 6 + [-0.4] * 9 + [0])
    assert abs(math.fsum(got)) < 1e-14


def test_a_group_is_dropped_with_its_reason_and_has_no_advantage() -> None:
    # 4: one valid; 3: none; 2: alike; 1: alike among the valid; 0: kept
    rewards = [1.0, NAN, NAN, 0.5, 0.5, 1.0, 1.0, 0.0, 1.0, 0.0]
    valid = [True, False, False, True, True, True, True, False, True, True]
    group = [4, 4, 3, 2, 2, 1, 1, 1, 0, 0]
    got, dropped = ref.advantages("grpo", rewards, valid, group)
    assert dropped == {4: "few_valid", 3: "few_valid", 2: "no_variance", 1: "no_variance"}
    assert close(got, [0] * 8 + [0.5, -0.5])


@pytest.mark.parametrize(("spread", "is_dropped"), [(1e-6, True), (2e-6, False)])
def test_a_range_of_a_millionth_is_no_variance(spread: float, is_dropped: bool) -> None:
    _, dropped = ref.advantages("grpo", [0.0, spread], [True] * 2, [0, 0])
    assert (dropped == {0: "no_variance"}) is is_dropped


@pytest.mark.parametrize("name", ["rloo", "maxrl", "reinforce_pp"])
def test_deviation_is_refused_for_all_but_grpo(name: str) -> None:
    with pytest.raises(ValueError, match="deviation"):
        advantages_of_one_group(name, ONE_OF_FOUR, deviation=True)


def test_an_advantage_that_there_is_not_is_refused() -> None:
    with pytest.raises(ValueError, match="gae"):
        advantages_of_one_group("gae", ONE_OF_FOUR)


# --- options on rewards and flags -----------------------------------------------------------------


def test_overlong_samples_are_not_live_and_the_others_stay_as_they_were() -> None:
    stops = ["answer", "context", "length", "answer", "answer", "length"]
    valid = [True, True, True, True, False, False]
    live = [True, True, True, False, False, False]
    assert ref.overlong(stops, valid, live).tolist() == [True, *[False] * 5]


def test_live_and_not_valid_is_refused() -> None:
    with pytest.raises(ValueError, match="sample 1 is live and not valid"):
        ref.overlong(["answer"] * 2, [True, False], [True, True])


def penalised(rewards: list[float], valid: list[bool], model: float, environment: float) -> Any:
    """One group, 40 and 20 tokens of the model, 80 and 0 of the environment, of 100."""
    n = len(rewards)
    return ref.length_penalty(
        rewards,
        valid,
        [3] * n,
        [40, 20, 20, 20][:n],
        [80, 0, 0, 0][:n],
        model_coefficient=model,
        environment_coefficient=environment,
        longest=100,
    )


def test_the_length_penalty_grows_with_the_groups_mean() -> None:
    # mean 1/2 = 1/n; (0.5 · 40 + 0.25 · 80) / 100 = 0.4; 0.5 · 20 / 100 = 0.1
    assert close(penalised([1.0, 0.0], [True, True], 0.5, 0.25), [1 - 0.2, -0.05])
    # mean 3/4, of the valid ones only
    got = penalised([0.5, 1.0, NAN], [True, True, False], 0.5, 0.25)
    assert close(got, [0.5 - 0.3, 1 - 0.075, NAN])


def test_the_length_penalty_never_falls_under_one_nth_nor_exceeds_one() -> None:
    # mean 0 and mean -1: 1/4; mean 3: 1
    assert close(penalised([0.0] * 4, [True] * 4, 1, 0), [-0.1, -0.05, -0.05, -0.05])
    assert close(penalised([-1.0] * 4, [True] * 4, 1, 0), [-1.1, -1.05, -1.05, -1.05])
    assert close(penalised([3.0] * 4, [True] * 4, 1, 0), [2.6, 2.8, 2.8, 2.8])


def test_a_group_with_no_valid_reward_is_left_alone_by_the_length_penalty() -> None:
    assert close(penalised([NAN, 2.0], [False, False], 1, 1), [NAN, 2])


# --- aggregation ----------------------------------------------------------------------------------

COUNTS = [2, 6, 4, 8, 4]
GROUPS = [11, 11, 5, 5, 8]
AGGREGATIONS = (
    "token_mean",
    "sequence_mean",
    "prompt_mean",
    "prompt_sequence_mean",
    "token_sum_norm",
)


@pytest.mark.parametrize(
    ("name", "denominators"),
    [
        ("token_mean", [24, 24, 24, 24, 24]),  # 2 + 6 + 4 + 8 + 4
        ("sequence_mean", [10, 30, 20, 40, 20]),  # N = 5 times T
        ("prompt_mean", [24, 24, 36, 36, 12]),  # P = 3 times 8, 12, 4
        ("prompt_sequence_mean", [12, 36, 24, 48, 12]),  # 3 · 2 · T; 3 · 1 · 4
        ("token_sum_norm", [50, 50, 50, 50, 50]),  # 5 times 10
    ],
)
def test_weights_of_a_batch_that_is_all_live(name: str, denominators: list[float]) -> None:
    got = ref.token_weights(name, COUNTS, [True] * 5, GROUPS, longest=10)
    assert close(got, 1 / np.array(denominators))


@pytest.mark.parametrize(
    ("name", "denominators"),
    [
        ("token_mean", [14, 14, 14]),  # 2 + 4 + 8
        ("sequence_mean", [6, 12, 24]),  # N = 3
        ("prompt_mean", [4, 24, 24]),  # P = 2 times 2, 12
        ("prompt_sequence_mean", [4, 16, 32]),  # 2 · 1 · 2; 2 · 2 · T
        ("token_sum_norm", [30, 30, 30]),
    ],
)
def test_weights_with_a_sample_that_is_not_live_and_a_prompt_that_has_no_tokens(
    name: str, denominators: list[float]
) -> None:
    live = [True, False, True, True, True]
    got = ref.token_weights(name, [2, 6, 4, 8, 0], live, GROUPS, longest=10)
    first, *others = 1 / np.array(denominators)
    assert close(got, [first, 0, *others, 0])


@pytest.mark.parametrize("name", AGGREGATIONS)
def test_what_is_not_live_changes_no_weight_of_the_others(name: str) -> None:
    # as if samples 1 and 4 were not in the batch
    live = [True, False, True, True, False]
    got = ref.token_weights(name, COUNTS, live, GROUPS, longest=10)
    without = ref.token_weights(name, [2, 4, 8], [True] * 3, [11, 5, 5], longest=10)
    assert close(got, [without[0], 0, without[1], without[2], 0])


@pytest.mark.parametrize("name", AGGREGATIONS[:4])
def test_the_weights_of_all_tokens_add_up_to_one(name: str) -> None:
    for live in ([True] * 5, [True, False, True, True, False], [False, False, False, False, True]):
        got = ref.token_weights(name, COUNTS, live, GROUPS, longest=10)
        assert close(math.fsum(w * count for w, count in zip(got, COUNTS, strict=True)), 1)


def test_three_of_sixteen_groups_masked_do_not_shrink_the_weights_of_the_others() -> None:
    # 16 groups of 2 samples of 4 tokens. Live: 13 groups, 1 / (13 · 8) a token. Counting all 16
    # gives 1 / (16 · 8), and the update is 13/16 = 0.81 of what it should be.
    group = [p for p in range(16) for _ in range(2)]
    live = [p >= 3 for p in group]
    got = ref.token_weights("prompt_mean", [4] * 32, live, group, longest=10)
    assert close(got, [0] * 6 + [1 / 104] * 26)
    assert close(math.fsum(got) * 4, 1)


@pytest.mark.parametrize("name", AGGREGATIONS)
def test_nothing_live_weighs_nothing(name: str) -> None:
    assert close(ref.token_weights(name, COUNTS, [False] * 5, GROUPS, longest=10), [0] * 5)
    assert close(ref.token_weights(name, [0, 0], [True] * 2, [1, 2], longest=10), [0, 0])


def test_an_aggregation_that_there_is_not_is_refused() -> None:
    with pytest.raises(ValueError, match="no such aggregation: token_sum"):
        ref.token_weights("token_sum", COUNTS, [True] * 5, GROUPS, longest=10)


def test_all_terms_have_the_weight_of_their_token() -> None:
    # two samples of weight 1/2 and 1/4, the token between them not the model's:
    # 1/2 (3 + 0.1 · 2 - 0.01 · 1) + 1/4 (-1 + 0.1 · 4 - 0.01 · 2) = 1.595 - 0.155
    policy = ref.Loss(
        value=np.array([3.0, 99, -1]), gradient=np.zeros(3), masked=np.zeros(3, np.bool_)
    )
    kl = ref.Term(value=np.array([2.0, 99, 4]), gradient=np.zeros(3))
    entropy = ref.Term(value=np.array([1.0, 99, 2]), gradient=np.zeros((3, 2)))
    tokens = ([0.5, 0.25], [True, False, True], [0, 0, 1])
    got = ref.total(*tokens, policy, kl=kl, beta=0.1, entropy=entropy, gamma=0.01)
    assert close(got, 1.44)
    assert close(ref.total(*tokens, policy), 1.25)


# --- losses by hand -------------------------------------------------------------------------------

NO_LIST: dict[str, Any] = {
    "ids": [4],
    "topk_ids": [[-1, -1]],
    "topk_rollout": [[NAN, NAN]],
    "topk_policy": [[NAN, NAN]],
}
L_UP, L_DOWN = math.log(0.75), math.log(0.5)


def one(name: str, l: float, mu: float, a: float, **options: Any) -> tuple[float, float, bool]:
    """(value, gradient, masked) of a sample with a single token."""
    loss = ref.LOSSES[name]([l], [mu], [a], [True], [0], **options)
    return float(loss.value[0]), float(loss.gradient[0]), bool(loss.masked[0])


MASKED = (0, 0, True)
UNMASKED_QUADRANTS = (
    (-3 * L_UP, -3, False),
    (3 * L_UP, 3, False),
    (-4 / 3 * L_DOWN, -4 / 3, False),
    (4 / 3 * L_DOWN, 4 / 3, False),
)
"""r = 3/2 or 2/3 times ∓2, none masked"""
TRUST_QUADRANTS = (MASKED, *UNMASKED_QUADRANTS[1:3], MASKED)
"""masked where the token has gone further than δ in the direction of its advantage"""
PPO_QUADRANTS = ((-2.4, 0, True), (3, 3, False), (-4 / 3, -4 / 3, False), (1.6, 0, True))
"""min(3, 2.4), min(-3, -2.4), min(4/3, 1.6), min(-4/3, -1.6)"""


@pytest.mark.parametrize(
    ("name", "options", "up_positive", "up_negative", "down_positive", "down_negative"),
    [
        ("dppo", {}, *TRUST_QUADRANTS),
        ("dppo", {"delta_low": 0.5, "delta_high": 0.5}, *UNMASKED_QUADRANTS),
        ("dppo", {"delta_low": 0.5}, *TRUST_QUADRANTS[:3], UNMASKED_QUADRANTS[3]),
        ("dppo", {"delta_high": 0.5}, UNMASKED_QUADRANTS[0], *TRUST_QUADRANTS[1:]),
        ("dppo_kl", {}, *TRUST_QUADRANTS),
        # between 0.1308 (down) and 0.1438 (up)
        ("dppo_kl", {"delta": 0.14}, *TRUST_QUADRANTS[:3], UNMASKED_QUADRANTS[3]),
        ("dppo_kl", {"delta": 0.15}, *UNMASKED_QUADRANTS),
        ("dppo_topk", NO_LIST, *TRUST_QUADRANTS),
        (
            "dppo_topk",
            NO_LIST | {"delta_low": 0.5},
            *TRUST_QUADRANTS[:3],
            UNMASKED_QUADRANTS[3],
        ),
        (
            "dppo_topk",
            NO_LIST | {"delta_high": 0.5},
            UNMASKED_QUADRANTS[0],
            *TRUST_QUADRANTS[1:],
        ),
        ("glm5", {}, *UNMASKED_QUADRANTS),
        ("glm5", {"eps_low": 0.25, "eps_high": 0.25}, MASKED, MASKED, MASKED, MASKED),
        ("glm5", {"eps_low": 0.25}, *UNMASKED_QUADRANTS[:2], MASKED, MASKED),
        ("ppo", {}, *PPO_QUADRANTS),
        ("ppo", {"eps_low": 0.25}, *PPO_QUADRANTS[:3], (1.5, 0, True)),
        ("ppo_dual_clip", {}, *PPO_QUADRANTS),
        # 1.25 · -2 = -2.5 is above -3 and under -1.6
        (
            "ppo_dual_clip",
            {"dual": 1.25},
            PPO_QUADRANTS[0],
            (2.5, 0, True),
            *PPO_QUADRANTS[2:],
        ),
        # 1.28 and 0.8 times ∓2
        (
            "cispo",
            {},
            (-2.56 * L_UP, -2.56, True),
            (2.56 * L_UP, 2.56, True),
            (-1.6 * L_DOWN, -1.6, True),
            (1.6 * L_DOWN, 1.6, True),
        ),
        ("cispo", {"eps_low": 0.5, "eps_high": 0.75}, *UNMASKED_QUADRANTS),
        # a sequence of one token: 1.0004 · 2 and 0.9997 · -2
        ("gspo", {}, (-2.0008, 0, True), *PPO_QUADRANTS[1:3], (1.9994, 0, True)),
        (
            "reinforce",
            {},
            (-2 * L_UP, -2, False),
            (2 * L_UP, 2, False),
            (-2 * L_DOWN, -2, False),
            (2 * L_DOWN, 2, False),
        ),
    ],
)
def test_the_four_sign_quadrants_by_hand(
    name: str,
    options: dict[str, Any],
    up_positive: tuple[float, float, bool],
    up_negative: tuple[float, float, bool],
    down_positive: tuple[float, float, bool],
    down_negative: tuple[float, float, bool],
) -> None:
    quadrants = ((UP, 2, up_positive), (UP, -2, up_negative))
    quadrants += ((DOWN, 2, down_positive), (DOWN, -2, down_negative))
    for (p, p_rollout), a, wanted in quadrants:
        got = one(name, math.log(p), math.log(p_rollout), a, **options)
        assert close(got[:2], wanted[:2]), (p, a)
        assert got[2] is wanted[2], (p, a)


@pytest.mark.parametrize(("times", "c"), [(2.0, 2.0), (4.0, 2.0), (0.5, 0.5)])
def test_tis_is_ppo_from_the_old_policy_times_its_capped_ratio_to_the_rollout(
    times: float, c: float
) -> None:
    for (p, p_old), a, ppo in zip((UP, UP, DOWN, DOWN), (2, -2, 2, -2), PPO_QUADRANTS, strict=True):
        old = math.log(p_old)
        got = one("tis", math.log(p), math.log(p_old / times), a, old=[old])
        assert close(got[:2], (c * ppo[0], c * ppo[1]))
        assert got[2] is ppo[2]


@pytest.mark.parametrize("name", sorted(ref.LOSSES))
def test_a_token_with_no_advantage_costs_nothing(name: str) -> None:
    options = (NO_LIST if name == "dppo_topk" else {}) | (
        {"old": [math.log(0.6)]} if name == "tis" else {}
    )
    for p, p_rollout in (UP, DOWN):
        got = one(name, math.log(p), math.log(p_rollout), 0.0, **options)
        assert close(got[:2], (0, 0))
        assert got[2] is (name == "cispo")  # the only one here whose clip does not look at A


def test_a_rare_token_is_capped_and_not_masked_by_binary_tv() -> None:
    # r = 0.1 / 0.001 = 100 is a TV of 0.099
    l, mu = math.log(0.1), math.log(0.001)
    assert close(one("dppo", l, mu, 1.0), (-10 * l, -10, False))
    assert close(one("dppo", l, mu, 1.0, cap=math.inf), (-100 * l, -100, False))
    assert close(one("dppo", l, mu, -1.0), (10 * l, 10, False))


def test_a_rare_token_is_masked_by_binary_kl() -> None:
    # K = 0.001 ln 0.01 + 0.999 ln(0.999 / 0.9) = -0.0046052 + 0.1042557
    l, mu = math.log(0.1), math.log(0.001)
    assert ref.binary_kl(l, mu) == pytest.approx(0.0996505, abs=1e-6)
    assert one("dppo_kl", l, mu, 1.0) == MASKED
    assert close(one("dppo_kl", l, mu, 1.0, delta=0.1), (-10 * l, -10, False))
    assert close(one("dppo_kl", l, mu, -1.0), (10 * l, 10, False))


# --- thresholds, at numbers that binary fractions hold --------------------------------------------


@pytest.mark.parametrize("a", [1.0, -1.0])
def test_binary_tv_at_its_threshold_does_not_mask(a: float) -> None:
    p, p_rollout = UP if a > 0 else DOWN
    assert not ref.tv_masks(a, p, p_rollout, 0.25, 0.25)
    assert ref.tv_masks(a, p, p_rollout, 0.1875, 0.1875)
    assert not ref.tv_masks(-a, p, p_rollout, 0.1875, 0.1875)


@pytest.mark.parametrize("a", [1.0, -1.0])
def test_a_divergence_at_its_threshold_does_not_mask(a: float) -> None:
    p, p_rollout = UP if a > 0 else DOWN
    assert not ref.divergence_masks(0.25, a, p, p_rollout, 0.25, 0.25)
    assert ref.divergence_masks(0.25, a, p, p_rollout, 0.1875, 0.1875)
    assert not ref.divergence_masks(0.25, -a, p, p_rollout, 0.1875, 0.1875)
    assert not ref.divergence_masks(0.25, a, p, p, 0.1875, 0.1875)


def test_each_threshold_is_of_its_own_sign() -> None:
    assert ref.tv_masks(1.0, *UP, 0.5, 0.125)
    assert not ref.tv_masks(1.0, *UP, 0.125, 0.5)
    assert ref.tv_masks(-1.0, *DOWN, 0.125, 0.5)
    assert not ref.tv_masks(-1.0, *DOWN, 0.5, 0.125)
    assert ref.divergence_masks(0.25, 1.0, *UP, 0.5, 0.125)
    assert not ref.divergence_masks(0.25, 1.0, *UP, 0.125, 0.5)
    assert ref.divergence_masks(0.25, -1.0, *DOWN, 0.125, 0.5)
    assert not ref.divergence_masks(0.25, -1.0, *DOWN, 0.5, 0.125)


def test_the_interval_of_glm5_is_open() -> None:
    rates = [0.5, 0.5625, 1.0, 4.9375, 5.0]
    got = [ref.glm5_factor(r, 0.5, 5.0) for r in rates]
    assert got == [0, 0.5625, 1.0, 4.9375, 0]


@pytest.mark.parametrize("a", [1.0, -1.0])
@pytest.mark.parametrize("r", [0.75, 1.25])
def test_a_ratio_at_the_bound_of_a_clip_is_not_clipped(a: float, r: float) -> None:
    assert ref.clipped_gain(r, a, 0.75, 1.25) == (r * a, False)
    assert ref.dual_gain(r, a, 0.75, 1.25, 3.0) == (r * a, False)


def test_the_dual_bound_is_a_clip_only_where_it_is_strictly_the_larger() -> None:
    assert ref.dual_gain(3.0, -1.0, 0.75, 1.25, 3.0) == (-3.0, False)
    assert ref.dual_gain(3.5, -1.0, 0.75, 1.25, 3.0) == (-3.0, True)
    assert ref.dual_gain(3.5, 1.0, 0.75, 1.25, 3.0) == (1.25, True)
    assert ref.dual_gain(0.5, -1.0, 0.75, 1.25, 3.0) == (-0.75, True)


# --- the clamp ------------------------------------------------------------------------------------


def test_the_gradient_through_a_ratio_ends_where_the_clamp_begins() -> None:
    # d = 20 is inside, d = 21 is not; for A < 0 a large r is the plain branch of ppo
    e20 = math.exp(20)
    for name, options in (("ppo", {}), ("gspo", {}), ("tis", {"old": [-22.0]})):
        assert close(one(name, -2.0, -22.0, -1.0, **options), (e20, e20, False))
        assert close(one(name, -1.0, -22.0, -1.0, **options), (e20, 0, False))
    # for A > 0 a small one is
    for name, options in (("ppo", {}), ("gspo", {}), ("tis", {"old": [-1.0]})):
        assert close(one(name, -21.0, -1.0, 1.0, **options), (-1 / e20, -1 / e20, False))
        assert close(one(name, -22.0, -1.0, 1.0, **options), (-1 / e20, 0, False))


def test_a_factor_under_a_stop_gradient_is_clamped_and_keeps_its_gradient() -> None:
    e20 = math.exp(20)
    got = one("dppo", -1.0, -30.0, -1.0, cap=math.inf)
    assert close(got, (-e20, e20, False))
    got = one("dppo", -30.0, -1.0, 1.0)
    assert close(got, (30 / e20, -1 / e20, False))


def test_tis_clamps_the_correction_too() -> None:
    # c = exp(-20), rho = 1
    got = one("tis", -30.0, -1.0, 1.0, old=[-30.0])
    assert close(got, (-math.exp(-20), -math.exp(-20), False))


# --- binary KL ------------------------------------------------------------------------------------


def test_binary_kl_by_hand() -> None:
    # 1/2 ln(2/3) + 1/2 ln 2 = 1/2 ln(4/3); 3/4 ln(3/2) + 1/4 ln(1/2)
    assert close(ref.binary_kl(*logs(*UP)), 0.5 * math.log(4 / 3))
    assert close(ref.binary_kl(*logs(*DOWN)), 0.75 * math.log(1.5) - 0.25 * LN2)
    assert ref.binary_kl(*logs(0.3, 0.3)) == 0


def test_binary_kl_where_a_probability_is_one() -> None:
    assert ref.binary_kl(0.0, 0.0) == 0
    assert close(ref.binary_kl(math.log(0.5), 0.0), LN2)
    assert ref.binary_kl(0.0, math.log(0.5)) == math.inf
    assert one("dppo_kl", 0.0, math.log(0.5), 1.0) == MASKED
    assert close(one("dppo_kl", 0.0, math.log(0.5), -1.0), (0, 2, False))


def test_binary_kl_keeps_what_is_left_of_one_when_it_is_tiny() -> None:
    # 1 - π = 2e-18 and 1 - πμ = 1e-18, which 1 - exp(l) would both round to 0:
    # 1 (μ - l) + 1e-18 ln(1/2) = 1e-18 - 0.693e-18
    assert ref.binary_kl(-2e-18, -1e-18) == pytest.approx(1e-18 * (1 - LN2), rel=1e-9)


# --- top-k ----------------------------------------------------------------------------------------


def topk(**options: Any) -> dict[str, Any]:
    """Sampled 7 at π = 1/2, πμ = 1/4, also listed; 3 at 1/8 and 1/2; rest 3/8 and 1/4."""
    listed: dict[str, Any] = {
        "ids": [7],
        "topk_ids": [[3, 7, -1]],
        "topk_rollout": [[*logs(0.5, 0.25), NAN]],
        "topk_policy": [[*logs(0.125, 0.5), NAN]],
    }
    return listed | options


def test_topk_counts_what_moved_between_the_other_ids() -> None:
    # (1/4 + 3/8 + 1/8) / 2 = 3/8, where the two buckets of dppo differ by 1/4
    assert ref.bucket_tv([0.5, 0.125], [0.25, 0.5]) == 0.375
    l, mu = math.log(0.5), math.log(0.25)
    for delta, is_masked in ((0.37, True), (0.38, False)):
        got = one("dppo_topk", l, mu, 1.0, **topk(delta_high=delta))
        assert close(got, MASKED if is_masked else (-2 * l, -2, False))
    assert close(one("dppo", l, mu, 1.0, delta_high=0.26), (-2 * l, -2, False))


def test_topk_masks_only_in_the_direction_of_the_advantage() -> None:
    l, mu = math.log(0.5), math.log(0.25)
    assert close(one("dppo_topk", l, mu, -1.0, **topk()), (2 * l, 2, False))
    # the other two moved, the sampled one did not: π = πμ is in no direction
    stayed = topk(topk_policy=[[*logs(0.125, 0.25), NAN]])
    for a in (1.0, -1.0):
        assert close(one("dppo_topk", mu, mu, a, **stayed), (-a * mu, -a, False))


def test_a_sampled_id_that_is_not_listed_is_a_bucket_of_its_own() -> None:
    # 9 at 1/2 and 1/4; 3 at 1/8 and 1/4; rest 3/8 and 1/2: (1/4 + 1/8 + 1/8) / 2 = 1/4
    l, mu = math.log(0.5), math.log(0.25)
    listed = topk(ids=[9], topk_ids=[[3]], topk_rollout=[logs(0.25)], topk_policy=[logs(0.125)])
    assert one("dppo_topk", l, mu, 1.0, **listed, delta_high=0.24) == MASKED
    assert close(one("dppo_topk", l, mu, 1.0, **listed, delta_high=0.26), (-2 * l, -2, False))


def test_the_rest_is_never_less_than_nothing() -> None:
    # 3/4 + 3/8 is more than 1: (1/4 + 1/8 + |0 - 1/4|) / 2
    assert ref.bucket_tv([0.75, 0.375], [0.5, 0.25]) == 0.3125


def test_an_id_that_is_listed_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="listed twice"):
        one("dppo_topk", -1.0, -1.0, 1.0, **topk(topk_ids=[[3, 3, -1]]))


# --- sequences ------------------------------------------------------------------------------------


def test_gspo_takes_one_ratio_for_all_mask_tokens_of_a_sample() -> None:
    # sample 0: differences ln 2 and 0, mean ln 2 / 2, s = √2; the token between is not the model's.
    # sample 1: differences -ln 2 and 0, s = 1 / √2.
    l = [-1.0, -5.0, -2.0, -2.0, -3.0]
    mu = [-1.0 - LN2, -1.0, -2.0, -2.0 + LN2, -3.0]
    mask, sample = [True, False, True, True, True], [0, 0, 0, 1, 1]
    root = math.sqrt(2)
    got = ref.gspo(l, mu, [-3.0, -3.0, -3.0, 2.0, 2.0], mask, sample)
    assert close(got.value, [3 * root, 0, 3 * root, -root, -root])
    assert close(got.gradient, [3 * root, 0, 3 * root, -root, -root])
    assert not got.masked.any()
    got = ref.gspo(l, mu, [3.0, 3.0, 3.0, -2.0, -2.0], mask, sample)
    assert close(got.value, [-3 * 1.0004, 0, -3 * 1.0004, 2 * 0.9997, 2 * 0.9997])
    assert close(got.gradient, [0] * 5)
    assert got.masked.tolist() == mask


def test_gspo_clamps_the_mean_and_not_its_parts() -> None:
    # differences -50 and 20, mean -15
    got = ref.gspo([-51.0, -1.0], [-1.0, -21.0], [1.0, 1.0], [True] * 2, [0, 0])
    assert close(got.value, [-math.exp(-15)] * 2)
    assert close(got.gradient, [-math.exp(-15)] * 2)


def test_gspo_refuses_two_advantages_in_one_sample() -> None:
    with pytest.raises(ValueError, match="sample 4"):
        ref.gspo([-1.0, -1.0], [-1.0, -1.0], [1.0, 2.0], [True] * 2, [4, 4])


# --- slopes ---------------------------------------------------------------------------------------

STEP = 1e-6
FROZEN = ("dppo", "dppo_kl", "dppo_topk", "glm5", "cispo")
"""The losses with a factor of l under a stop gradient."""


def slopes(of: Callable[[ref.Array], ref.Array], at: ref.Array) -> ref.Array:
    """By every entry of ``at``, the central difference of the sum of ``of``."""
    out = np.zeros_like(at)
    for entry in np.ndindex(at.shape):
        step = np.zeros_like(at)
        step[entry] = STEP
        out[entry] = np.sum(of(at + step) - of(at - step)) / (2 * STEP)
    return out


def batch() -> dict[str, Any]:
    """Eight samples of five tokens; some tokens are outside the clamp, some not the model's."""
    random = np.random.default_rng(7)
    sample = np.repeat(np.arange(8), 5)
    l = -random.exponential(1.5, 40) - 0.02
    mu = np.minimum(l + random.normal(0, 0.7, 40), -0.01)
    l[[3, 17]], mu[[3, 17]] = -27.0, -0.5
    l[[9, 22]], mu[[9, 22]] = -0.5, -27.0
    advantage = np.array([1.5, -0.5, 0.75, -2.0, 1.0, -1.0, 0.0, -0.25])[sample]
    mask = random.random(40) < 0.8
    return {"l": l, "mu": mu, "advantage_T": advantage, "mask": mask, "sample": sample}


def extras(name: str, tokens: dict[str, Any]) -> dict[str, Any]:
    """What a loss needs beyond the batch, with bounds that leave some tokens on either side."""
    random = np.random.default_rng(8)
    if name == "tis":
        return {"old": tokens["l"] - random.normal(0, 0.4, 40)}
    if name == "gspo":
        return {"eps_low": 0.3, "eps_high": 0.3}
    if name == "dppo_topk":
        listed = random.dirichlet(np.ones(6), (2, 40))[:, :, :4] * 0.5
        ids = np.array([random.permutation(9)[:4] for _ in range(40)])
        ids[::3, 2] = -1
        rollout, policy = np.log(listed)
        sampled = random.integers(0, 9, 40)
        return {"ids": sampled, "topk_ids": ids, "topk_rollout": rollout, "topk_policy": policy}
    return {}


@pytest.mark.parametrize("name", sorted(ref.LOSSES))
def test_the_gradient_of_a_loss_is_the_slope_of_its_value(name: str) -> None:
    tokens = batch()
    l, options = tokens.pop("l"), extras(name, tokens | {"l": tokens["mu"]})
    if name in FROZEN:
        options |= {"frozen": l}
    loss = ref.LOSSES[name](l, **tokens, **options)

    def value(at: ref.Array) -> ref.Array:
        return ref.LOSSES[name](at, **tokens, **options).value

    assert np.allclose(loss.gradient, slopes(value, l), rtol=1e-7, atol=1e-8)
    mask = tokens["mask"]
    assert loss.gradient[mask].any()
    if name != "reinforce":
        assert loss.masked[mask].any()
        assert not loss.masked[mask].all()


@pytest.mark.parametrize("name", sorted(ref.LOSSES))
def test_tokens_that_the_model_did_not_sample_are_zero_and_touch_no_other(name: str) -> None:
    tokens = batch()
    options = extras(name, tokens)
    loss = ref.LOSSES[name](**tokens, **options)
    outside = ~tokens["mask"]
    assert not loss.value[outside].any()
    assert not loss.gradient[outside].any()
    assert not loss.masked[outside].any()
    for what in ("l", "mu", "advantage_T"):
        tokens[what] = np.where(outside, NAN, tokens[what])
    again = ref.LOSSES[name](**tokens, **options)
    assert np.array_equal(loss.value, again.value)
    assert np.array_equal(loss.gradient, again.gradient)
    assert np.array_equal(loss.masked, again.masked)


def test_the_gradient_of_the_kl_term_is_its_slope() -> None:
    l = batch()["l"]
    reference = batch()["mu"]
    got = ref.kl_term(l, reference)
    measured = slopes(lambda at: ref.kl_term(at, reference).value, l)
    assert np.allclose(got.gradient, measured, rtol=1e-7, atol=1e-8)


def test_the_gradient_of_the_entropy_is_its_slope() -> None:
    logits = np.random.default_rng(9).normal(0, 3, (5, 7))
    got = ref.entropy(logits)
    measured = slopes(lambda at: ref.entropy(at).value, logits)
    assert np.allclose(got.gradient, measured, rtol=1e-7, atol=1e-8)


# --- extra terms by hand --------------------------------------------------------------------------


def test_the_kl_term_by_hand() -> None:
    # x = 0: 0; x = ln 2: 2 - ln 2 - 1, slope 1 - 2; x = -ln 2: 1/2 + ln 2 - 1, slope 1 - 1/2
    got = ref.kl_term([-1.0, -1.0, -1.0], [-1.0, -1.0 + LN2, -1.0 - LN2])
    assert close(got.value, [0, 1 - LN2, LN2 - 0.5])
    assert close(got.gradient, [0, -1, 0.5])


def test_the_kl_term_is_flat_outside_its_clamp() -> None:
    # x = 20, 21, -20, -21
    e20 = math.exp(20)
    got = ref.kl_term([-21.0, -22.0, -1.0, -1.0], [-1.0, -1.0, -21.0, -22.0])
    assert close(got.value, [e20 - 21, e20 - 21, 1 / e20 + 19, 1 / e20 + 19])
    assert close(got.gradient, [1 - e20, 0, 1 - 1 / e20, 0])


def test_the_entropy_by_hand() -> None:
    # even over 4: ln 4. (1/2, 1/4, 1/4): 3/2 ln 2, by z -1/2 (-ln 2 + 3/2 ln 2) = -ln 2 / 4 and
    # -1/4 (-2 ln 2 + 3/2 ln 2) = ln 2 / 8; a logit of -inf adds nothing.
    got = ref.entropy([[5.0] * 4, [*logs(0.5, 0.25, 0.25), -math.inf]])
    assert close(got.value, [2 * LN2, 1.5 * LN2])
    assert close(got.gradient, [[0] * 4, [-LN2 / 4, LN2 / 8, LN2 / 8, 0]])


def test_the_entropy_of_certainty_is_zero() -> None:
    got = ref.entropy([[1000.0, 0.0, -1000.0]])
    assert close(got.value, [0])
    assert close(got.gradient, [[0, 0, 0]])


# --- reports --------------------------------------------------------------------------------------


def reported(mask: list[bool], live: list[bool]) -> ref.Report:
    """Ratios 1, 2, 1/2, 1 in samples 0 and 1; one token not the model's; sample 2 is far off."""
    return ref.report(
        logs(0.5, 0.5, 0.25, 0.75, 0.5, 0.001),
        logs(0.5, 0.25, 0.5, 0.75, 0.001, 0.5),
        [1.0, 1.0, -1.0, -1.0, -1.0, 1.0],
        mask,
        [0, 0, 1, 1, 1, 2],
        live,
        [False, True, False, False, True, True],
    )


def test_a_report_by_hand() -> None:
    # sorted 1/2, 1, 1, 2: p99 at place 0.99 · 3 = 2.97 is 1 + 0.97. TV (0 + 1/4 + 1/4 + 0) / 4.
    # KL (0 + (1 - ln 2) + (ln 2 - 1/2) + 0) / 4 = 1/8.
    got = reported([True] * 4 + [False, True], [True, True, False])
    assert (got.masked_positive, got.masked_negative) == (0.5, 0.0)
    assert close([got.ratio_p50, got.ratio_p99, got.ratio_max], [1, 1.97, 2])
    assert close([got.tv, got.kl], [0.125, 0.125])


def test_a_share_without_tokens_of_its_sign_is_nan_and_the_rest_is_not() -> None:
    got = reported([True] * 4 + [False, True], [True, False, False])
    assert got.masked_positive == 0.5
    assert math.isnan(got.masked_negative)
    assert close([got.ratio_p50, got.ratio_max, got.tv], [1.5, 2, 0.125])


def test_a_report_of_no_tokens_is_nan_throughout() -> None:
    for got in (reported([True] * 6, [False] * 3), reported([False] * 6, [True] * 3)):
        numbers = [got.masked_positive, got.masked_negative, got.tv, got.kl]
        numbers += [got.ratio_p50, got.ratio_p99, got.ratio_max]
        assert all(math.isnan(number) for number in numbers)


def test_tokens_with_no_advantage_count_in_all_but_the_shares() -> None:
    got = ref.report(
        logs(0.5, 0.5), logs(0.5, 0.25), [1.0, 0.0], [True] * 2, [0, 1], [True] * 2, [False, True]
    )
    assert got.masked_positive == 0
    assert math.isnan(got.masked_negative)
    assert close(got.ratio_max, 2)


def test_the_reported_kl_is_of_the_rollout_and_of_the_clamped_difference() -> None:
    # d = ln 2: 2 - 1 - ln 2, where the other direction has ln 2 - 1/2; d = 21 counts as 20
    for l, mu, wanted in ((-1.0, -1.0 - LN2, 1 - LN2), (-1.0, -22.0, math.exp(20) - 21)):
        got = ref.report([l], [mu], [1.0], [True], [0], [True], [False])
        assert close(got.kl, wanted)
        assert close(got.ratio_max, math.exp(min(l - mu, 20)))
        assert close(got.tv, math.exp(l) - math.exp(mu))


def test_the_reported_kl_is_never_negative() -> None:
    for d in (0.0, 1e-17, -1e-17, 1e-12, -1e-12, 1e-9, -1e-9):
        got = ref.report([-1e-3 + d], [-1e-3], [1.0], [True], [0], [True], [False])
        assert got.kl >= 0
        assert ref.excess(d) >= 0
