# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: E741 - l is the name that the specification gives to the trainer's log-prob
"""The objective of a training step as its specification states it: slow, plain, float64.

Written from the specification alone, without sight of the code that is compared with it, so that
one misreading cannot be in both. Loops over samples and tokens, Python floats, one formula a
place; nothing here is fast, and nothing here may be imported by what trains.

Tokens are rows, all samples one after the other: ``sample[t]`` is the token's sample, ``mask[t]``
says whether the model sampled it. ``l`` is the trainer's log-prob, ``mu`` the rollout's,
``advantage_T`` the advantage of the token's sample. Samples have a prompt, ``group[i]``, and two
flags: ``valid`` (its reward counts) and ``live`` (its tokens count); not valid implies not live.

A loss returns, for every token, its value, its gradient with respect to ``l`` and whether it was
masked or clipped; all are 0 where the mask is. ``frozen`` are the log-probs at which the factors
under a stop gradient are taken, ``l`` unless given: with them held, the gradient is the derivative
of the value.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

type Array = npt.NDArray[np.float64]
type Numbers = Sequence[float] | Array
type Rows = Sequence[Sequence[float]] | Array
type Integers = Sequence[int] | npt.NDArray[np.int64]
type Flags = Sequence[bool] | npt.NDArray[np.bool_]

BOUND = 20.0
"""No difference of log-probs enters an exponential beyond this, in either direction."""
FEW_VALID = "few_valid"
NO_VARIANCE = "no_variance"
OVERLONG = ("context", "length")
"""The stops that overlong filtering acts on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """Something per token and what it is differentiated by: ``[T]``, or ``[T, V]`` by logits."""

    value: Array
    gradient: Array


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """A policy loss, each of length T."""

    value: Array
    gradient: Array
    masked: npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What a step tells of its tokens: the mask tokens of live samples, each counting 1."""

    masked_positive: float
    masked_negative: float
    ratio_p50: float
    ratio_p99: float
    ratio_max: float
    tv: float
    kl: float


# --- flags and rewards ----------------------------------------------------------------------------


def check_flags(valid: Flags, live: Flags) -> None:
    """Refuse a sample that is live and has no valid reward."""
    for i in range(len(valid)):
        if live[i] and not valid[i]:
            raise ValueError(f"sample {i} is live and not valid")


def overlong(stops: Sequence[str], valid: Flags, live: Flags) -> npt.NDArray[np.bool_]:
    """The live flags with overlong filtering; ``valid`` is only checked, it stays as it is."""
    check_flags(valid, live)
    out = np.zeros(len(stops), np.bool_)
    for i in range(len(stops)):
        out[i] = bool(live[i]) and stops[i] not in OVERLONG
    return out


def valid_members(valid: Flags, group: Integers) -> dict[int, list[int]]:
    """By group, in order of first appearance, its valid samples; a group may have none."""
    members: dict[int, list[int]] = {}
    for i in range(len(group)):
        members.setdefault(int(group[i]), [])
        if valid[i]:
            members[int(group[i])].append(i)
    return members


def mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def deviation_of(values: Sequence[float]) -> float:
    """The population standard deviation."""
    middle = mean(values)
    return math.sqrt(mean([(value - middle) ** 2 for value in values]))


def length_penalty(
    rewards: Numbers,
    valid: Flags,
    group: Integers,
    model_tokens: Numbers,
    environment_tokens: Numbers,
    *,
    model_coefficient: float,
    environment_coefficient: float,
    longest: float,
) -> Array:
    """The rewards less the adaptive length penalty; those of invalid samples are left alone.

    Chosen: the mean of the group is of rewards before the penalty, and what comes out takes the
    place of the rewards everywhere after it, in the variance filter too.
    """
    out = np.array([float(reward) for reward in rewards], np.float64)
    for members in valid_members(valid, group).values():
        if not members:
            continue
        solved = min(max(mean([float(rewards[i]) for i in members]), 0.0), 1.0)
        scale = max(solved, 1 / len(members))
        for i in members:
            length = (
                model_coefficient * float(model_tokens[i])
                + environment_coefficient * float(environment_tokens[i])
            ) / longest
            out[i] = float(rewards[i]) - scale * length
    return out


# --- advantages -----------------------------------------------------------------------------------


def advantages(
    name: str, rewards: Numbers, valid: Flags, group: Integers, *, deviation: bool = False
) -> tuple[Array, dict[int, str]]:
    """The advantage of each sample, and why groups were dropped.

    Chosen: a group with fewer than 2 valid samples is ``few_valid``, whatever its variance; rewards
    of valid samples are finite; with ``reinforce_pp`` the deviation is one number for the batch.
    """
    if name not in ("grpo", "rloo", "maxrl", "reinforce_pp"):
        raise ValueError(f"no such advantage: {name}")
    if deviation and name != "grpo":
        raise ValueError(f"deviation is of grpo only, not of {name}")
    out = np.zeros(len(rewards), np.float64)
    dropped: dict[int, str] = {}
    kept: list[int] = []
    for key, members in valid_members(valid, group).items():
        earned = [float(rewards[i]) for i in members]
        if len(members) < 2:
            dropped[key] = FEW_VALID
            continue
        if max(earned) - min(earned) <= 1e-6:
            dropped[key] = NO_VARIANCE
            continue
        kept += members
        middle = mean(earned)
        if name == "maxrl" and middle <= 0:
            raise ValueError(f"group {key}: maxrl divides by a mean reward of {middle}")
        for i in members:
            centred = float(rewards[i]) - middle
            if name == "rloo":
                out[i] = float(rewards[i]) - mean([float(rewards[j]) for j in members if j != i])
            elif name == "maxrl":
                out[i] = centred / middle
            elif deviation:
                out[i] = centred / (deviation_of(earned) + 1e-6)
            else:
                out[i] = centred
    if name == "reinforce_pp" and kept:
        spread = deviation_of([float(out[i]) for i in kept])
        for i in kept:
            out[i] = float(out[i]) / (spread + 1e-6)
    return out, dropped


# --- aggregation ----------------------------------------------------------------------------------


def token_weights(
    name: str, counts: Integers, live: Flags, group: Integers, *, longest: float
) -> Array:
    """The weight of each mask token of a sample in the sum of losses.

    Chosen: "a sample that is not live changes no weight of any other" means that the weights are
    those of the batch without it.
    """
    if name not in (
        "token_mean",
        "sequence_mean",
        "prompt_mean",
        "prompt_sequence_mean",
        "token_sum_norm",
    ):
        raise ValueError(f"no such aggregation: {name}")
    counted = [i for i in range(len(counts)) if live[i] and counts[i] > 0]
    samples = len(counted)
    prompts = len({int(group[i]) for i in counted})
    out = np.zeros(len(counts), np.float64)
    for i in counted:
        mates = [j for j in counted if group[j] == group[i]]
        if name == "token_mean":
            denominator = float(sum(int(counts[j]) for j in counted))
        elif name == "sequence_mean":
            denominator = float(samples * int(counts[i]))
        elif name == "prompt_mean":
            denominator = float(prompts * sum(int(counts[j]) for j in mates))
        elif name == "prompt_sequence_mean":
            denominator = float(prompts * len(mates) * int(counts[i]))
        else:
            denominator = samples * longest
        out[i] = 1 / denominator
    return out


def total(
    weights: Numbers,
    mask: Flags,
    sample: Integers,
    policy: Loss,
    *,
    kl: Term | None = None,
    beta: float = 0.0,
    entropy: Term | None = None,
    gamma: float = 0.0,
) -> float:
    """Policy + beta · KL - gamma · entropy over mask tokens, all three with the same weights."""
    summands: list[float] = []
    for t in range(len(mask)):
        if not mask[t]:
            continue
        weight = float(weights[sample[t]])
        summands.append(weight * float(policy.value[t]))
        if kl is not None:
            summands.append(weight * beta * float(kl.value[t]))
        if entropy is not None:
            summands.append(-weight * gamma * float(entropy.value[t]))
    return math.fsum(summands)


# --- what the losses are made of ------------------------------------------------------------------


def clamp(x: float) -> float:
    return min(max(x, -BOUND), BOUND)


def clamp_slope(x: float) -> float:
    """The derivative of ``clamp``; its bounds count as inside."""
    return 1.0 if -BOUND <= x <= BOUND else 0.0


def clip(r: float, low: float, high: float) -> float:
    return min(max(r, low), high)


def ratio(new: float, old: float) -> float:
    return math.exp(clamp(new - old))


def excess(x: float) -> float:
    """exp(x) - x - 1, which is never negative, without the cancellation near 0."""
    return max(math.expm1(x) - x, 0.0)


def log_of_rest(log_prob: float) -> float:
    """log(1 - exp(log_prob)); -inf where the probability is 1."""
    if log_prob >= 0:
        return -math.inf
    if log_prob > -math.log(2):
        return math.log(-math.expm1(log_prob))
    return math.log1p(-math.exp(log_prob))


def tv_masks(a: float, p: float, p_rollout: float, low: float, high: float) -> bool:
    """Whether binary total variation masks a token whose probability went the way A pushes it."""
    return (a > 0 and p - p_rollout > high) or (a < 0 and p_rollout - p > low)


def divergence_masks(
    divergence: float, a: float, p: float, p_rollout: float, low: float, high: float
) -> bool:
    """The same for a divergence without a sign: ``low`` bounds A < 0, ``high`` A > 0."""
    return (a > 0 and p > p_rollout and divergence > high) or (
        a < 0 and p < p_rollout and divergence > low
    )


def binary_kl(l: float, mu: float) -> float:
    """KL of (πμ, 1 - πμ) from (π, 1 - π).

    Chosen: μ - l is not clamped here, as it enters no exponential; a log-prob above 0 counts as 0
    in the term of the rest.
    """
    rest_rollout = -math.expm1(mu)
    first = math.exp(mu) * (mu - l)
    if rest_rollout <= 0:
        return first
    if l >= 0:
        return math.inf
    return first + rest_rollout * (log_of_rest(mu) - log_of_rest(l))


def bucket_tv(p: Sequence[float], p_rollout: Sequence[float]) -> float:
    """Half the L1 distance, with what each lacks to 1 (at least 0) as one more bucket."""
    rest, rest_rollout = max(0.0, 1 - math.fsum(p)), max(0.0, 1 - math.fsum(p_rollout))
    distances = [abs(x - y) for x, y in zip(p, p_rollout, strict=True)]
    return 0.5 * math.fsum([*distances, abs(rest - rest_rollout)])


def glm5_factor(r: float, low: float, high: float) -> float:
    """r inside the open interval, 0 outside on both sides."""
    return r if low < r < high else 0.0


def clipped_gain(r: float, a: float, low: float, high: float) -> tuple[float, bool]:
    """min(r A, clip(r) A), and whether the clip made it smaller."""
    plain, bounded = r * a, clip(r, low, high) * a
    return (plain, False) if plain <= bounded else (bounded, True)


def dual_gain(r: float, a: float, low: float, high: float, dual: float) -> tuple[float, bool]:
    """The same, for A < 0 no smaller than ``dual`` A."""
    gain, is_clipped = clipped_gain(r, a, low, high)
    if a < 0 and dual * a > gain:
        return dual * a, True
    return gain, is_clipped


def each(mask: Flags, rule: Callable[[int], tuple[float, float, bool]]) -> Loss:
    """(value, gradient, masked) of every token where the mask is 1, and zeros elsewhere."""
    tokens = len(mask)
    value, gradient = np.zeros(tokens, np.float64), np.zeros(tokens, np.float64)
    masked = np.zeros(tokens, np.bool_)
    for t in range(tokens):
        if mask[t]:
            value[t], gradient[t], masked[t] = rule(t)
    return Loss(value=value, gradient=gradient, masked=masked)


# --- policy losses --------------------------------------------------------------------------------


def dppo(
    l: Numbers,
    mu: Numbers,
    advantage_T: Numbers,
    mask: Flags,
    sample: Integers,
    *,
    delta_low: float = 0.2,
    delta_high: float = 0.2,
    cap: float = 10.0,
    frozen: Numbers | None = None,
) -> Loss:
    """-sg[min(r, c)] M A l, with M by binary total variation (of π and πμ, not clamped)."""
    at = l if frozen is None else frozen

    def rule(t: int) -> tuple[float, float, bool]:
        a, now, then = float(advantage_T[t]), float(at[t]), float(mu[t])
        if tv_masks(a, math.exp(now), math.exp(then), delta_low, delta_high):
            return 0.0, 0.0, True
        factor = min(ratio(now, then), cap)
        return -factor * a * float(l[t]), -factor * a, False

    return each(mask, rule)


def dppo_kl(
    l: Numbers,
    mu: Numbers,
    advantage_T: Numbers,
    mask: Flags,
    sample: Integers,
    *,
    delta: float = 0.05,
    cap: float = 10.0,
    frozen: Numbers | None = None,
) -> Loss:
    """As ``dppo``, with M by binary KL and the sign of π - πμ."""
    at = l if frozen is None else frozen

    def rule(t: int) -> tuple[float, float, bool]:
        a, now, then = float(advantage_T[t]), float(at[t]), float(mu[t])
        k = binary_kl(now, then)
        if divergence_masks(k, a, math.exp(now), math.exp(then), delta, delta):
            return 0.0, 0.0, True
        factor = min(ratio(now, then), cap)
        return -factor * a * float(l[t]), -factor * a, False

    return each(mask, rule)


def dppo_topk(
    l: Numbers,
    mu: Numbers,
    advantage_T: Numbers,
    mask: Flags,
    sample: Integers,
    *,
    ids: Integers,
    topk_ids: Sequence[Sequence[int]] | npt.NDArray[np.int64],
    topk_rollout: Rows,
    topk_policy: Rows,
    delta_low: float = 0.2,
    delta_high: float = 0.2,
    cap: float = 10.0,
    frozen: Numbers | None = None,
) -> Loss:
    """As ``dppo``, with M by total variation over the listed ids and one bucket for the rest.

    Chosen: the sampled token's bucket is (exp(l), exp(μ)) also where the list has it; what stands
    beside an id of -1 does not matter; an id listed twice is refused.
    """
    at = l if frozen is None else frozen

    def rule(t: int) -> tuple[float, float, bool]:
        a, now, then = float(advantage_T[t]), float(at[t]), float(mu[t])
        listed = [int(one) for one in topk_ids[t] if one != -1]
        if len(set(listed)) < len(listed):
            raise ValueError(f"token {t}: an id is listed twice")
        p, p_rollout = [math.exp(now)], [math.exp(then)]
        for j in range(len(topk_ids[t])):
            if topk_ids[t][j] not in (-1, ids[t]):
                p.append(math.exp(float(topk_policy[t][j])))
                p_rollout.append(math.exp(float(topk_rollout[t][j])))
        tv = bucket_tv(p, p_rollout)
        if divergence_masks(tv, a, p[0], p_rollout[0], delta_low, delta_high):
            return 0.0, 0.0, True
        factor = min(ratio(now, then), cap)
        return -factor * a * float(l[t]), -factor * a, False

    return each(mask, rule)


def glm5(
    l: Numbers,
    mu: Numbers,
    advantage_T: Numbers,
    mask: Flags,
    sample: Integers,
    *,
    eps_low: float = 0.5,
    eps_high: float = 4.0,
    frozen: Numbers | None = None,
) -> Loss:
    """-sg[f(r)] A l, f(r) = r inside (1 - ε_low, 1 + ε_high) and 0 outside, whatever A is."""
    at = l if frozen is None else frozen

    def rule(t: int) -> tuple[float, float, bool]:
        a, r = float(advantage_T[t]), ratio(float(at[t]), float(mu[t]))
        factor = glm5_factor(r, 1 - eps_low, 1 + eps_high)
        if factor == 0:
            return 0.0, 0.0, True
        return -factor * a * float(l[t]), -factor * a, False

    return each(mask, rule)


def ppo(
    l: Numbers,
    mu: Numbers,
    advantage_T: Numbers,
    mask: Flags,
    sample: Integers,
    *,
    eps_low: float = 0.2,
    eps_high: float = 0.2,
) -> Loss:
    """-min(r A, clip(r) A), differentiated through r; the plain branch where both are equal.

    Chosen: a token is clipped where the clip made the minimum smaller. Where only the clamp of
    l - μ takes the gradient, it is not clipped.
    """

    def rule(t: int) -> tuple[float, float, bool]:
        a, d = float(advantage_T[t]), float(l[t]) - float(mu[t])
        r = math.exp(clamp(d))
        gain, is_clipped = clipped_gain(r, a, 1 - eps_low, 1 + eps_high)
        return -gain, 0.0 if is_clipped else -r * a * clamp_slope(d), is_clipped

    return each(mask, rule)


def ppo_dual_clip(
    l: Numbers,
    mu: Numbers,
    advantage_T: Numbers,
    mask: Flags,
    sample: Integers,
    *,
    eps_low: float = 0.2,
    eps_high: float = 0.2,
    dual: float = 3.0,
) -> Loss:
    """As ``ppo``, and for A < 0 a gain no smaller than ``dual`` A; that bound is a clip as well."""

    def rule(t: int) -> tuple[float, float, bool]:
        a, d = float(advantage_T[t]), float(l[t]) - float(mu[t])
        r = math.exp(clamp(d))
        gain, is_clipped = dual_gain(r, a, 1 - eps_low, 1 + eps_high, dual)
        return -gain, 0.0 if is_clipped else -r * a * clamp_slope(d), is_clipped

    return each(mask, rule)


def cispo(
    l: Numbers,
    mu: Numbers,
    advantage_T: Numbers,
    mask: Flags,
    sample: Integers,
    *,
    eps_low: float = 0.2,
    eps_high: float = 0.28,
    frozen: Numbers | None = None,
) -> Loss:
    """-sg[clip(r)] A l; a clipped token keeps its gradient."""
    at = l if frozen is None else frozen

    def rule(t: int) -> tuple[float, float, bool]:
        a, r = float(advantage_T[t]), ratio(float(at[t]), float(mu[t]))
        factor = clip(r, 1 - eps_low, 1 + eps_high)
        return -factor * a * float(l[t]), -factor * a, factor != r

    return each(mask, rule)


def gspo(
    l: Numbers,
    mu: Numbers,
    advantage_T: Numbers,
    mask: Flags,
    sample: Integers,
    *,
    eps_low: float = 3e-4,
    eps_high: float = 4e-4,
) -> Loss:
    """-min(s A, clip(s) A) at every mask token, s the sequence's ratio.

    The gradient at a token is that of the sum of its sample's values: T_i times -A s / T_i.
    Chosen: only the mean is clamped, not the differences in it; mask tokens of one sample with
    different advantages are refused; clipped and clamped are told apart as in ``ppo``.
    """

    def rule(t: int) -> tuple[float, float, bool]:
        a = float(advantage_T[t])
        mates = [u for u in range(len(mask)) if mask[u] and sample[u] == sample[t]]
        if any(float(advantage_T[u]) != a for u in mates):
            raise ValueError(f"sample {sample[t]} has more than one advantage")
        d = mean([float(l[u]) - float(mu[u]) for u in mates])
        s = math.exp(clamp(d))
        gain, is_clipped = clipped_gain(s, a, 1 - eps_low, 1 + eps_high)
        return -gain, 0.0 if is_clipped else -s * a * clamp_slope(d), is_clipped

    return each(mask, rule)


def tis(
    l: Numbers,
    mu: Numbers,
    advantage_T: Numbers,
    mask: Flags,
    sample: Integers,
    *,
    old: Numbers,
    eps_low: float = 0.2,
    eps_high: float = 0.2,
    cap: float = 2.0,
) -> Loss:
    """-sg[c] min(rho A, clip(rho) A), rho of ``l`` to ``old``, c of ``old`` to ``mu`` and capped.

    Chosen: a token whose c is capped is not clipped by that, as it keeps a gradient.
    """

    def rule(t: int) -> tuple[float, float, bool]:
        a, d = float(advantage_T[t]), float(l[t]) - float(old[t])
        factor = min(ratio(float(old[t]), float(mu[t])), cap)
        rho = math.exp(clamp(d))
        gain, is_clipped = clipped_gain(rho, a, 1 - eps_low, 1 + eps_high)
        slope = 0.0 if is_clipped else -factor * rho * a * clamp_slope(d)
        return -factor * gain, slope, is_clipped

    return each(mask, rule)


def reinforce(
    l: Numbers,
    mu: Numbers,
    advantage_T: Numbers,
    mask: Flags,
    sample: Integers,
) -> Loss:
    """-A l; nothing is masked."""

    def rule(t: int) -> tuple[float, float, bool]:
        a = float(advantage_T[t])
        return -a * float(l[t]), -a, False

    return each(mask, rule)


LOSSES: dict[str, Callable[..., Loss]] = {
    "dppo": dppo,
    "dppo_kl": dppo_kl,
    "dppo_topk": dppo_topk,
    "glm5": glm5,
    "ppo": ppo,
    "ppo_dual_clip": ppo_dual_clip,
    "cispo": cispo,
    "gspo": gspo,
    "tis": tis,
    "reinforce": reinforce,
}


# --- extra terms ----------------------------------------------------------------------------------


def kl_term(l: Numbers, ref: Numbers) -> Term:
    """exp(x) - x - 1 with x = clamp(ref - l), for every token; the gradient is through l."""
    value, gradient = np.zeros(len(l), np.float64), np.zeros(len(l), np.float64)
    for t in range(len(l)):
        d = float(ref[t]) - float(l[t])
        value[t] = excess(clamp(d))
        gradient[t] = -math.expm1(clamp(d)) * clamp_slope(d)
    return Term(value=value, gradient=gradient)


def entropy(logits: Rows) -> Term:
    """The entropy in nats of softmax(logits) at every token, and its gradient by the logits.

    H = -Σ p log p, dH/dz = -p (log p + H). Chosen: a logit of -inf is an outcome that cannot be,
    and adds 0 to both.
    """
    value = np.zeros(len(logits), np.float64)
    gradient = np.zeros(np.shape(logits), np.float64)
    for t in range(len(logits)):
        row = [float(z) for z in logits[t]]
        top = max(row)
        log_sum = top + math.log(math.fsum(math.exp(z - top) for z in row))
        possible = [(v, z - log_sum) for v, z in enumerate(row) if z != -math.inf]
        value[t] = -math.fsum(math.exp(log_p) * log_p for _, log_p in possible)
        for v, log_p in possible:
            gradient[t, v] = -math.exp(log_p) * (log_p + float(value[t]))
    return Term(value=value, gradient=gradient)


# --- reports --------------------------------------------------------------------------------------


def report(
    l: Numbers,
    mu: Numbers,
    advantage_T: Numbers,
    mask: Flags,
    sample: Integers,
    live: Flags,
    masked: Flags,
) -> Report:
    """What the loss's ``masked`` and the ratios come to; NaN where there is nothing to count.

    Chosen: tokens with an advantage of 0 are in neither share and in all the rest; the ratio is
    the token's for every loss, for ``gspo`` and ``tis`` too; ``kl`` is of the clamped difference
    and ``tv`` of plain probabilities.
    """
    tokens = [t for t in range(len(mask)) if mask[t] and live[sample[t]]]

    def share(chosen: list[int]) -> float:
        return mean([float(masked[t]) for t in chosen]) if chosen else math.nan

    positive = share([t for t in tokens if advantage_T[t] > 0])
    negative = share([t for t in tokens if advantage_T[t] < 0])
    if not tokens:
        nan = math.nan
        return Report(
            masked_positive=positive,
            masked_negative=negative,
            ratio_p50=nan,
            ratio_p99=nan,
            ratio_max=nan,
            tv=nan,
            kl=nan,
        )
    ratios = np.array([ratio(float(l[t]), float(mu[t])) for t in tokens], np.float64)
    return Report(
        masked_positive=positive,
        masked_negative=negative,
        ratio_p50=float(np.quantile(ratios, 0.5)),
        ratio_p99=float(np.quantile(ratios, 0.99)),
        ratio_max=float(np.max(ratios)),
        tv=mean([abs(math.exp(float(l[t])) - math.exp(float(mu[t]))) for t in tokens]),
        kl=mean([excess(clamp(float(l[t]) - float(mu[t]))) for t in tokens]),
    )
