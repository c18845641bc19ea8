# SPDX-License-Identifier: Apache-2.0
# pyright: basic, reportMissingImports=false
"""One sync: pause, begin, transfer, end, compare, name the version, reset if asked, resume.

Contract: engines go through it side by side. One that fails in an operation is told apart and asked
nothing more; the others go on. At the end each samples with the new version, samples with what it
held before, or is lost, and is known to be. None ever samples with part of an update, with weights
that were not compared, or under a version that is not theirs.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from torch import Tensor

from rltrain.refused import Refused
from rltrain.sync.buckets import Bucket, buckets
from rltrain.sync.config import SyncConfig
from rltrain.sync.errors import OperationFailed, SyncError
from rltrain.sync.fingerprint import fingerprint
from rltrain.sync.links import Link, Messages, later
from rltrain.sync.types import Outcome, State
from rltrain.sync.verify import Report, differences, transformed_in
from rltrain.sync.version import WeightVersion

MIB: Final = 1 << 20
PAUSE: Final = "/pause?mode=keep&clear_cache=false"
"""Without the latter vLLM 0.32 forgets keys and values in this mode too, whatever it says of it,
and reckons requests under way again."""
_log = logging.getLogger("rltrain.sync")


@dataclass(slots=True, eq=False, kw_only=True)
class Course:
    """Of one engine."""

    link: Link
    failure: str = ""
    wrong: str = ""
    """What it holds that it should not."""
    state: State = State.OLD
    paused_at: float | None = None
    paused_s: float = 0.0

    @property
    def outcome(self) -> Outcome:
        """What became of it."""
        return Outcome(
            replica=self.link.replica.name,
            state=self.state,
            failure=self.wrong or self.failure,
            paused_s=self.paused_s,
        )


@dataclass(slots=True, kw_only=True)
class Sent:
    """What left the trainer."""

    fingerprints: dict[str, str] = field(default_factory=dict)
    bytes: int = 0


class Round:
    """One sync to some engines."""

    def __init__(
        self, links: Sequence[Link], messages: Messages, config: SyncConfig, *, reset: bool
    ) -> None:
        self.courses = [Course(link=link) for link in links]
        self.parts: dict[str, float] = {}
        self.sent = Sent()
        self.transformed = 0
        self._messages, self._config, self._reset = messages, config, reset

    def run(self, weights: Iterator[tuple[str, Tensor]], version: WeightVersion) -> None:
        """All of it.

        Raises:
            SyncError: the trainer's weights came to an end before their end.
        """
        self.each("pause", self._pause)
        self.each("begin", self._begin)
        self.transfer(weights)
        self.each("end", self._end)
        self.each("compare", self._compare)
        self.each("name", lambda course: self._name(course, version))
        if self._reset:
            self.each("reset", self._forget)
        self.each("resume", self._resume)

    @property
    def alive(self) -> list[Course]:
        """Those that nothing has failed on."""
        return [each for each in self.courses if not (each.failure or each.wrong)]

    def each(self, op: str, work: Callable[[Course], None]) -> None:
        """One operation on all that are alive, side by side."""
        with self._timed(op):
            futures = {later(lambda each=each: work(each)): each for each in self.alive}
            wait(futures)  # each of them has its deadline
            for future, course in futures.items():
                if error := future.exception():
                    self._failed(course, error)

    def transfer(self, weights: Iterator[tuple[str, Tensor]]) -> None:
        """Everything, bucket by bucket, each to all engines before the next."""
        with self._timed("transfer"):
            try:
                for bucket in buckets(self._wire(weights), self._config.bucket_mib * MIB):
                    self._deliver(bucket)
            except BaseException as error:
                self._give_up()
                if not isinstance(error, Exception):
                    raise
                line = f"the trainer's weights could not be sent: {error}"
                raise SyncError(line, [each.outcome for each in self.courses]) from error

    def _wire(self, weights: Iterator[tuple[str, Tensor]]) -> Iterator[tuple[str, Tensor]]:
        """As they travel: in the engines' type; what they were is remembered."""
        for name, tensor in weights:
            if not (alive := self.alive):
                return
            if name in self.sent.fingerprints:
                raise Refused(f"{name} was sent twice")
            dtypes = {each.link.dtype for each in alive}
            if len(dtypes) > 1:
                raise Refused("replicas compute in different types; start them alike")
            wire = tensor.detach().to(dtypes.pop())
            self.sent.fingerprints[name] = fingerprint(wire)
            self.sent.bytes += wire.nbytes
            yield name, wire

    def _deliver(self, bucket: Bucket) -> None:
        message = self._messages.made(bucket)
        for each in self.alive:
            each.state = State.LOST  # until all of it is there
        try:
            self.each("deliver", lambda course: course.link.deliver(bucket, message))
        finally:
            self._messages.forget()

    def _give_up(self) -> None:
        """Let those sample again that nothing was sent to."""
        for course in self.alive:
            untouched = course.state is State.OLD
            course.state = State.LOST
            if untouched:
                self._end_untouched(course)
            course.failure = "transfer: the trainer's weights ended early"

    def _end_untouched(self, course: Course) -> None:
        try:
            self._end(course)
            self._resume(course)
        except OperationFailed:
            return
        course.state = State.OLD

    def _pause(self, course: Course) -> None:
        config, control = self._config, course.link.control
        course.paused_at = time.monotonic()
        try:
            control.post("pause", PAUSE, config.pause_s)
        except OperationFailed:
            course.state = State.LOST
            control.post("resume after a failed pause", "/resume", config.control_s)
            course.state = State.OLD
            raise

    def _begin(self, course: Course) -> None:
        course.state = State.LOST
        course.link.control.post("begin", "/start_weight_update", self._config.control_s)
        course.state = State.OLD

    def _end(self, course: Course) -> None:
        course.link.control.post("end", "/finish_weight_update", self._config.control_s, {})

    def _compare(self, course: Course) -> None:
        reports: list[Report] = course.link.control.call(
            "compare", "sync_report", self._config.control_s
        )
        found = differences(self.sent.fingerprints, reports, self._config.transformed)
        if first := next(found, ""):
            more = sum(1 for _ in found)
            course.wrong = f"{first}{f', and {more:,} more differences' if more else ''}"
        self.transformed = max(self.transformed, transformed_in(reports))

    def _name(self, course: Course, version: WeightVersion) -> None:
        control, seconds = course.link.control, self._config.control_s
        told = {"new_version": str(version.number)}
        control.post("name the version", "/update_weight_version", seconds, told)
        said = control.get("name the version", "/weight_info", seconds)
        if said != {"weight_version": str(version.number)}:
            raise OperationFailed(f"name the version: the engine says {said}")

    def _forget(self, course: Course) -> None:
        path = "/reset_prefix_cache?reset_running_requests=true"
        told = course.link.control.post("reset", path, self._config.control_s)
        if told != {"success": True}:
            raise OperationFailed(f"reset: the engine says {told}")

    def _resume(self, course: Course) -> None:
        course.link.control.post("resume", "/resume", self._config.control_s)
        course.paused_s = time.monotonic() - (course.paused_at or time.monotonic())
        course.state = State.NEW

    def _failed(self, course: Course, error: BaseException) -> None:
        course.failure = str(error)
        if not isinstance(error, OperationFailed):
            course.failure = f"{type(error).__name__}: {error}"
            _log.error("%s", course.outcome, exc_info=error)

    @contextmanager
    def _timed(self, op: str) -> Iterator[None]:
        began = time.monotonic()
        try:
            yield
        finally:
            self.parts[op] = self.parts.get(op, 0.0) + time.monotonic() - began
