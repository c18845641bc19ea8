# SPDX-License-Identifier: Apache-2.0
"""What a plan rests on and no recipe says, each value with its unit and its reason.

Contract: whatever a figure of a plan depends on is in the recipe, in the model's config or here,
and what is here can be set. ``SPREAD`` has how far a value that nobody set may be off.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from types import MappingProxyType
from typing import Any, Final, Literal, cast

TAIL: Final = 1.6449
"""Deviations from the median to the 95th percentile."""
GIB: Final = 2**30


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """One GPU. Memory is what its driver tells, the rest is from data sheets, without sparsity."""

    memory_gib: float
    bandwidth_gb_s: float
    """Of its memory, 1e9 bytes a second."""
    tflops: float
    """Dense bfloat16, 1e12 FLOPs a second."""


GPUS: Final[Mapping[str, Gpu]] = MappingProxyType(
    {
        "a100": Gpu(memory_gib=79.3, bandwidth_gb_s=2039, tflops=312),
        "h100": Gpu(memory_gib=79.6, bandwidth_gb_s=3350, tflops=989),
        "h200": Gpu(memory_gib=139.8, bandwidth_gb_s=4800, tflops=989),
        "b200": Gpu(memory_gib=178.4, bandwidth_gb_s=7700, tflops=2250),
    }
)

type GpuName = Literal["a100", "h100", "h200", "b200"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryAssumptions:
    """Of the GPUs of an engine."""

    utilisation: float = 0.92
    """Share of a GPU's memory that the engine may use; vLLM's default."""
    overhead_gib: float = 4.0
    """Of that, a GPU: activations of a prefill, CUDA graphs, communication."""
    weight_bytes: float = 2.0
    """A parameter: bfloat16."""
    kv_bytes: float = 2.0
    """An element of the KV cache: bfloat16."""
    state_bytes: float = 4.0
    """An element of a linear layer's state: float32, as Qwen3.5 asks for."""
    states: float = 0.3
    """Share of a sequence's blocks at whose end a state of linear layers is kept, so that its
    prefix can be taken up again, beside the newest state. vLLM keeps one where a step ends at one:
    at each block that is sampled. 0 without a prefix cache."""
    shared_prompt: bool = True
    """Whether samples of a group keep their prompt once, if they are on one engine."""

    def __post_init__(self) -> None:
        if not 0 < self.utilisation <= 1:
            raise ValueError(f"utilisation: {self.utilisation:g} is no share, above 0 and up to 1")
        _expect_positive(self, "weight_bytes", "kv_bytes", "state_bytes")
        _expect_no_less(self, "overhead_gib", "states")


@dataclass(frozen=True, slots=True, kw_only=True)
class LengthAssumptions:
    """Tokens of a trajectory: lognormal, clipped to the context, of which None is a share."""

    median: float | None = None
    """None: an eighth of ``rollout.context_tokens``, 20,000 of 160,000."""
    p95: float | None = None
    """None: 0.65 of it."""
    least: float | None = None
    """None: an eightieth of it; the published run has 2,000 to 128,000."""
    by_prompt: float = 0.6
    """Share of the logarithm's variance that samples of a prompt have in common."""
    prompt: float | None = None
    """Tokens before the first sampled one; None: a fifth of the median."""
    sampled: float = 0.3
    """Share of the rest that the model samples; tools return the other part."""

    def __post_init__(self) -> None:
        _expect_no_less(self, "least", "prompt")
        for name in ("median", "p95"):
            if getattr(self, name) is not None:
                _expect_positive(self, name)
        for name in ("by_prompt", "sampled"):
            if not 0 < getattr(self, name) <= 1:
                raise ValueError(f"{name}: {getattr(self, name):g} is no share, above 0 and to 1")

    def of(self, context: int) -> Lognormal:
        """Where what is not set is a share of the context."""
        median = self.median or context / 8
        p95 = self.p95 or max(0.65 * context, 1.5 * median)
        if p95 < median:
            raise ValueError(f"p95: {p95:g} is below the median, {median:g}")
        return Lognormal(
            median=median,
            sigma=math.log(p95 / median) / TAIL,
            least=round(min(context / 80, median) if self.least is None else self.least),
            most=context,
            prompt=round(median / 5 if self.prompt is None else self.prompt),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Lognormal:
    """Lengths as they are drawn."""

    median: float
    sigma: float
    """Deviation of the logarithm."""
    least: int
    most: int
    prompt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeAssumptions:
    """What a trial waits for, beside its engine."""

    start_s: float = 60.0
    """Sandbox, servers, grading, end."""
    turn_tokens: float = 700.0
    """Sampled a turn; the published runs had 834 and 588."""
    tool_s: float = 10.0
    """Of the calls of a turn; nobody has published any, and a run tells."""
    box_share: float = 0.8
    """Of those seconds, the part in which a trial wants a core, where ``cores`` are shared: boxes
    that start, call and grade are Python that computes."""
    turns_a_core: float = 4.0
    """Trials that compute at once, where the recipe does not say; others wait for their turn."""

    def __post_init__(self) -> None:
        _expect_positive(self, "turn_tokens")
        _expect_no_less(self, "start_s", "tool_s", "turns_a_core")
        if not 0 <= self.box_share <= 1:
            raise ValueError(f"box_share: {self.box_share:g} is no share, 0 to 1")


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineAssumptions:
    """Of one engine. What is None is reckoned from its hardware and the model."""

    step_s: float | None = None
    """A decoding step of no sequence."""
    sequence_s: float | None = None
    """What each sequence under way adds to it."""
    prefill_s: float | None = None
    """A token that is read and not sampled."""
    launch_s: float = 0.006
    """Of a step that is reckoned: launches and all-reduces, whatever is in it."""
    bandwidth: float = 0.6
    """Share of the memory's bandwidth that decoding reaches."""
    mfu: float = 0.3
    """Share of the FLOPs that a prefill reaches."""
    cpu_gflops: float = 20.0
    """1e9 FLOPs a second, where it computes on CPUs."""
    threads: float = 1.0
    """Cores that it keeps busy, where it shares them."""

    def __post_init__(self) -> None:
        _expect_no_less(self, "step_s", "sequence_s", "prefill_s", "launch_s", "threads")
        if self.step_s == self.sequence_s == 0:
            raise ValueError("step_s, sequence_s: both are 0, so sampling would take no time")
        _expect_positive(self, "bandwidth", "mfu", "cpu_gflops")


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainerAssumptions:
    """``token_s`` of None is reckoned from its hardware and the model."""

    fixed_s: float = 30.0
    """A step, whatever is in it: the optimizer, its copy to CPU memory, packing."""
    token_s: float | None = None
    """A token of a trajectory, sampled or not."""
    mfu: float = 0.1
    """Share of the FLOPs; experts and long, uneven samples reach a tenth to a third."""
    sync_s: float = 10.0
    """Weights to every engine, for which all trials stand still."""
    cpu_gflops: float = 35.0
    """1e9 FLOPs a second, on CPUs; two cores had so many (fit_recorded)."""
    threads: float = 2.0
    """Cores that it keeps busy, where it shares them."""

    def __post_init__(self) -> None:
        _expect_no_less(self, "fixed_s", "token_s", "sync_s", "threads")
        _expect_positive(self, "mfu", "cpu_gflops")


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumptions:
    """All of them."""

    gpu: GpuName = "h100"
    memory: MemoryAssumptions = field(default_factory=MemoryAssumptions)
    lengths: LengthAssumptions = field(default_factory=LengthAssumptions)
    time: TimeAssumptions = field(default_factory=TimeAssumptions)
    engine: EngineAssumptions = field(default_factory=EngineAssumptions)
    trainer: TrainerAssumptions = field(default_factory=TrainerAssumptions)
    cores: float = 2.0
    """Of the one machine that engine, boxes and trainer share, where the recipe has no GPUs; 0:
    each has its own."""
    faults: float = 0.01
    """Share of the attempts that a fault takes."""

    def __post_init__(self) -> None:
        _expect_no_less(self, "cores")
        if not 0 <= self.faults < 1:
            raise ValueError(f"faults: {self.faults:g} is no share, 0 and below 1")


SPREAD: Final[Mapping[str, tuple[Any, Any]]] = MappingProxyType(
    {
        "memory.overhead_gib": (2.0, 10.0),
        "memory.states": (0.0, 1.0),
        "memory.shared_prompt": (True, False),
        "lengths.median": (0.5, 2.0),
    }
)
"""(roomiest, tightest) for KV memory; of ``median`` they are factors, and ``p95`` goes along as far
as the context lets it."""


def flat(assumptions: Assumptions) -> dict[str, Any]:
    """Every value by its dotted name."""
    return dict(_flat(assumptions, ""))


def _flat(record: Any, before: str) -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for each in fields(record):
        value, name = getattr(record, each.name), f"{before}{each.name}"
        found += _flat(value, f"{name}.") if is_dataclass(value) else [(name, value)]
    return found


def _expect_no_less(record: object, *names: str) -> None:
    for name in names:
        value = cast("float | None", getattr(record, name))
        if value is not None and not 0 <= value < math.inf:
            raise ValueError(f"{name}: {value:g} is not 0 or more")


def _expect_positive(record: object, *names: str) -> None:
    for name in names:
        if not 0 < cast("float", getattr(record, name)) < math.inf:
            raise ValueError(f"{name}: {getattr(record, name):g} is not above 0")
