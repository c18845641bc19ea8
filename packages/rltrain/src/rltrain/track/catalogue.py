# SPDX-License-Identifier: Apache-2.0
"""Which numbers of a step are shown where, and what they mean.

Contract: a number that is measured is in one drawing, whatever its name; ``UNDRAWN`` alone are not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from rltrain.track.summary import HEALTHY, PARTS


@dataclass(frozen=True, slots=True, kw_only=True)
class Lines:
    """One drawing of lines."""

    title: str
    unit: str = ""
    names: Mapping[str, str]
    """Names of numbers, and what their lines are called."""
    percent: bool = False
    """Whether they are shares, shown as percentages."""
    band: tuple[str, str] | None = None
    bound: float | None = None
    zero: bool = True
    wide: bool = False
    colours: tuple[str, ...] = ("c0", "c1", "c2", "c3")


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """One drawing of parts on top of each other."""

    title: str
    unit: str
    names: Mapping[str, str]
    shares: bool = False
    colours: tuple[str, ...] = ("c0", "c1", "c2", "c3", "c4", "c5")


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """A section of the page."""

    title: str
    drawings: tuple[Lines | Parts, ...]
    meaning: str


GROUPS: Final = {
    "groups/trained": "trained",
    "groups/few_valid": "few valid",
    "groups/no_variance": "no variance",
}
TOPICS: Final = (
    Topic(
        title="Reward",
        drawings=(
            Lines(
                title="Mean of the valid samples",
                unit="in a band from every invalid one at 0 to every one at 1",
                names={"reward/mean": "mean"},
                band=("reward/low", "reward/high"),
                wide=True,
            ),
            Lines(
                title="Fault share",
                unit="% of samples without a valid reward",
                names={"reward/fault_share": "faults"},
                percent=True,
                wide=True,
                colours=("c5",),
            ),
        ),
        meaning="",
    ),
    Topic(
        title="Entropy",
        drawings=(
            Lines(
                title="Entropy of the policy", unit="nats a token", names={"loss/entropy": "mean"}
            ),
            Lines(title="Loss", names={"loss/value": "loss"}),
        ),
        meaning="Mean over trained tokens. Towards 0 the policy stops trying anything else.",
    ),
    Topic(
        title="Clipped by sign",
        drawings=(
            Lines(
                title="Masked or clipped",
                unit="% of the tokens of that sign",
                names={"loss/masked_positive": "A > 0", "loss/masked_negative": "A < 0"},
                percent=True,
            ),
            Lines(
                title="Distance to the rollout",
                names={"loss/tv": "mean TV", "loss/kl": "mean KL"},
                colours=("c2", "c3"),
            ),
            Lines(
                title="Ratio to the rollout",
                names={"loss/ratio_p50": "p50", "loss/ratio_p99": "p99"},
                zero=False,
            ),
            Lines(
                title="Largest ratio", names={"loss/ratio_max": "max"}, zero=False, colours=("c5",)
            ),
        ),
        meaning="A is the advantage: above 0 a token is made likelier, below 0 less likely.",
    ),
    Topic(
        title="Lengths",
        drawings=(
            Lines(
                title="Length of a trajectory",
                unit="tokens",
                names={
                    "length/p50": "p50",
                    "length/p90": "p90",
                    "length/max": "max",
                    "length/model_mean": "model",
                },
                colours=("c0", "c1", "c5", "c2"),
            ),
            Lines(
                title="Tokens of a step",
                unit="tokens",
                names={"tokens/all": "all", "tokens/trained": "trained"},
            ),
        ),
        meaning="model is the mean of the tokens that the model itself sampled in a trajectory.",
    ),
    Topic(
        title="Behaviour",
        drawings=(
            Lines(title="Turns of a trajectory", names={"behaviour/turns": "mean"}),
            Lines(
                title="Tokens of a turn",
                names={"behaviour/tokens_per_turn": "mean"},
                colours=("c2",),
            ),
            Lines(
                title="Tool calls that went well",
                unit="%",
                names={"behaviour/calls_ok": "calls"},
                percent=True,
                zero=False,
                colours=("c3",),
            ),
            Lines(
                title="Cut off",
                unit="% of trajectories",
                names={"behaviour/cut_off": "cut off"},
                percent=True,
                colours=("c5",),
            ),
        ),
        meaning="Cut off are those that the context or a length limit stopped.",
    ),
    Topic(
        title="Staleness",
        drawings=(
            Lines(
                title="Age of the weights",
                unit="steps",
                names={"staleness/mean": "mean", "staleness/max": "max"},
                colours=("c0", "c5"),
            ),
            Lines(
                title="Age not known",
                unit="% of what is trained on",
                names={"staleness/unknown": "unknown"},
                percent=True,
                colours=("c4",),
            ),
        ),
        meaning="Steps between the weights that sampled and those that are trained.",
    ),
    Topic(
        title="Log-prob difference",
        drawings=(
            Lines(
                title="Mean |trainer - rollout|",
                unit="nats, over tokens",
                names={"logprob/difference": "mean"},
                bound=HEALTHY,
            ),
            Lines(
                title="Its tail",
                unit="nats",
                names={"logprob/p99": "p99", "logprob/max": "max"},
                colours=("c1", "c5"),
            ),
            Lines(
                title="Measured by",
                unit="tokens",
                names={"logprob/tokens": "tokens", "logprob/swapped_tokens": "after a swap"},
                colours=("c4", "c1"),
            ),
        ),
        meaning=(
            "Only of tokens that the very weights sampled which the step changed, and before any"
            f" other were swapped in: what training has moved is not in it. From {HEALTHY} on,"
            " trainer and engine no longer compute the same policy."
        ),
    ),
    Topic(
        title="Gradient norm and learning rate",
        drawings=(
            Lines(title="Gradient norm", names={"optimizer/gradient_norm": "norm"}),
            Lines(
                title="Learning rate", names={"optimizer/learning_rate": "rate"}, colours=("c2",)
            ),
        ),
        meaning="The norm is that before clipping.",
    ),
    Topic(
        title="Groups",
        drawings=(
            Parts(
                title="Groups of a step",
                unit="groups",
                names=GROUPS,
                colours=("c0", "c5", "c4"),
            ),
            Lines(title="Samples trained on", unit="samples", names={"samples/trained": "samples"}),
        ),
        meaning="few valid: fewer than two valid samples. no variance: equal rewards. Neither is "
        "trained on.",
    ),
    Topic(
        title="Time split",
        drawings=(
            Parts(
                title="Where the time goes",
                unit="% of a step",
                names={f"seconds/{part}": part for part in PARTS},
                shares=True,
                colours=tuple(f"c{number}" for number in range(len(PARTS))),
            ),
            Lines(title="Time of a step", unit="seconds", names={"seconds/total": "total"}),
        ),
        meaning="",
    ),
)
"""Sections in the order of the page."""
LIVE: Final = (
    Topic(
        title="Evaluations",
        drawings=(
            Lines(
                title="Mean reward of the tasks",
                names={
                    "evaluate/reward": "invalid as 0",
                    "evaluate/reward_of_valid": "without invalid",
                },
            ),
            Lines(
                title="Invalid trials",
                unit="% of an evaluation's",
                names={"evaluate/invalid_share": "invalid"},
                percent=True,
                colours=("c5",),
            ),
        ),
        meaning="Each task weighs the same. A step has numbers here where weights were evaluated.",
    ),
    Topic(
        title="Sampling",
        drawings=(
            Lines(
                title="Trials that ended",
                unit="% of those since the step before",
                names={"rollout/fault_rate": "by a fault", "rollout/own_rate": "by the model"},
                percent=True,
                colours=("c5", "c1"),
            ),
            Lines(
                title="Trials",
                unit="at the time of a batch",
                names={"buffer/running": "under way", "rollout/ended": "ended since the last"},
            ),
            Lines(
                title="Samples that wait",
                unit="samples",
                names={"buffer/buffered": "in the buffer"},
            ),
            Lines(
                title="A batch against all that ended",
                unit="% above the mean",
                names={
                    "bias/tokens": "tokens",
                    "bias/reward": "reward",
                    "bias/difficulty": "difficulty",
                },
                percent=True,
                zero=False,
            ),
        ),
        meaning="What is finished first is short: a batch that lies below the mean of tokens was "
        "taken too early.",
    ),
    Topic(
        title="Weights in engines",
        drawings=(
            Lines(
                title="Trainer against engines, at the same weights",
                unit="nats a token",
                names={"gate/mean": "mean", "gate/fixed_mean": "mean of fixed ids"},
            ),
            Lines(
                title="The same at its worst",
                unit="nats a token",
                names={"gate/p99": "p99", "gate/max": "max"},
                colours=("c3", "c5"),
            ),
            Lines(
                title="Handing weights on",
                unit="seconds",
                names={"sync/seconds": "whole", "sync/paused_s": "paused"},
            ),
            Lines(
                title="What was compared",
                unit="sampled tokens",
                names={"gate/tokens": "tokens"},
            ),
        ),
        meaning="After every sync each engine and the trainer score the same recent trajectories.",
    ),
    Topic(
        title="What was recorded, by age",
        drawings=(
            Lines(
                title="Sampled by the weights that are trained, after a swap",
                unit="nats, |trainer - rollout|",
                names={
                    "logprob/swapped": "mean",
                    "logprob/swapped_p99": "p99",
                    "logprob/swapped_max": "max",
                },
                colours=("c0", "c1", "c5"),
            ),
            Lines(
                title="Sampled by older weights",
                unit="nats, mean |trainer - rollout|",
                names={
                    "logprob/age_1": "one step",
                    "logprob/age_2": "two steps",
                    "logprob/age_3": "three and more",
                },
            ),
        ),
        meaning="After a swap a trajectory goes on upon keys and values of the weights before it,"
        " as long as they are kept. What older weights sampled is off by what training has moved.",
    ),
)
"""Sections of a run that samples for itself; of others nothing in them is measured."""
UNDRAWN: Final = frozenset({"time", "reward/count"})
"""When a step was logged; what the reward is a mean of, which stands with it in the figures."""


def topics(names: Iterable[str]) -> tuple[Topic, ...]:
    """All sections, with one more for names that none of them has."""
    found = {*names}
    live = LIVE if any(found & _names(each) for each in LIVE) else ()
    known = {name for topic in (*TOPICS, *LIVE) for name in _names(topic)}
    others = sorted(found - known - UNDRAWN)
    if not others:
        return (*TOPICS, *live)
    drawings = tuple(Lines(title=name, names={name: "value"}) for name in others)
    return (*TOPICS, *live, Topic(title="Other numbers", drawings=drawings, meaning=""))


def _names(topic: Topic) -> set[str]:
    return {name for each in topic.drawings for name in names_of(each)}


def names_of(drawing: Lines | Parts) -> tuple[str, ...]:
    """All that it shows."""
    return (*drawing.names, *((isinstance(drawing, Lines) and drawing.band) or ()))
