# SPDX-License-Identifier: Apache-2.0
"""Which samples are begun, and which groups each step is taken on.

Contract: it is told events with their time and answers with decisions; it has no clock, draws
nothing and waits for nothing, so the same events bring the same decisions. Training and a
simulation drive this one class. In order ``deadline``:

- a step is never taken on a sample whose staleness is above the bound: the version stepped from
  less the lowest version that sampled a trained token of it;
- without faults no token is lost, save of groups that cannot teach, as long as no attempt takes
  longer than ``bound_wait_s``;
- only a sample whose reward is valid is ever in a batch, and only with another one of its group;
- every attempt that was given a slot is accounted for in the ledger.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Self

from rltrain.buffer import figures, predict
from rltrain.buffer.book import Book, Ending, Group, Ledger, Member, Prompt
from rltrain.buffer.config import BufferConfig
from rltrain.buffer.groups import Groups
from rltrain.buffer.order import ORDERS, Held, Pick
from rltrain.buffer.state import plain, read
from rltrain.buffer.types import (
    FEW,
    Admit,
    Batch,
    Ceiling,
    Decision,
    Ended,
    Event,
    Exhausted,
    Offered,
    Passed,
    Sampled,
    SampleId,
    Start,
    Started,
    Synced,
    Taken,
    TrainerFree,
    Updated,
    Wait,
)


class Scheduler:
    """Told by ``on`` what has happened."""

    def __init__(self, config: BufferConfig, *, prompts: int, samples: int, slots: int) -> None:
        """``prompts`` and ``samples`` are of a step, ``slots`` of all engines together."""
        if min(prompts, slots) < 1 or samples < FEW:
            raise ValueError(
                f"prompts {prompts}, samples {samples} and slots {slots}: at least one prompt and"
                f" slot, and {FEW} samples, are wanted"
            )
        self._config = config
        self._order = ORDERS[config.order]
        self._book = Book(prompts=prompts, samples=samples, slots=slots, staleness=config.staleness)
        self._out: list[Decision] = []
        self._groups = Groups(config=config, order=self._order, book=self._book, out=self._out)

    def on(self, event: Event, at_s: float) -> tuple[Decision, ...]:
        """What is to be done, in this order, now that something has happened.

        Prompts are to be offered whenever ``ceiling`` says that they bind.

        Raises:
            ValueError: it cannot have happened: the driver and this have come apart.
        """
        self._out.clear()
        self._pass(at_s)
        self._hear(event)
        self._take()
        self._fill()
        return tuple(self._out)

    @property
    def version(self) -> int:
        """The trainer's."""
        return self._book.version

    @property
    def now_s(self) -> float:
        """Of the last event."""
        return self._book.now_s

    @property
    def ledger(self) -> Ledger:
        """What became of everything so far; to read."""
        return self._book.ledger

    @property
    def ceiling(self) -> Ceiling:
        """What keeps more samples from being under way, now."""
        return figures.ceiling(self._book)

    @property
    def running(self) -> tuple[SampleId, ...]:
        """Attempts that are under way and wanted."""
        return tuple(
            group.sample(each)
            for group in self._book.groups.values()
            for each in group.members
            if each.phase == "running"
        )

    @property
    def buffered(self) -> int:
        """Valid samples that no step has been taken on."""
        return self._book.buffered

    @property
    def training(self) -> int:
        """Valid samples of the step that is being taken."""
        return sum(len(each.valid) for each in self._book.training)

    @property
    def ending(self) -> tuple[SampleId, ...]:
        """Attempts that were cancelled and have not ended; each still has its slot."""
        return tuple(
            SampleId(group=each.group, place=each.place, attempt=each.attempt)
            for each in self._book.ending
        )

    # --- a checkpoint -----------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """All that decisions depend on, as JSON has it."""
        return plain(self._book)

    @classmethod
    def restored(cls, state: Mapping[str, Any], config: BufferConfig, *, slots: int) -> Self:
        """One that goes on from a checkpoint.

        A step that was not finished was not taken: its groups are in the buffer again. What became
        of attempts that were ``running`` or ``ending`` is to be told by ``Ended``; a version that
        was made after the checkpoint counts as that of the checkpoint.

        Raises:
            Refused: another version wrote the state.
        """
        book = read(state)
        made = cls(config, prompts=book.prompts, samples=book.samples, slots=slots)
        book.slots, book.staleness = slots, config.staleness
        book.untrain()
        made._book = made._groups.book = book
        return made

    # --- what has happened ------------------------------------------------------------------------

    def _pass(self, at_s: float) -> None:
        book = self._book
        if not math.isfinite(at_s) or at_s < book.now_s:
            raise ValueError(f"time {at_s:g} s is before {book.now_s:g} s, of the last event")
        passed = at_s - book.now_s
        binds = figures.binds(book)
        book.ledger.bound_s[binds] = book.ledger.bound_s.get(binds, 0.0) + passed
        book.ledger.idle_slot_s += passed * (book.slots - min(book.used, book.slots))
        if book.said is not None and book.said.reason == "at_bound":
            book.ledger.waited_s += passed
        book.now_s = at_s

    def _hear(self, event: Event) -> None:
        book = self._book
        match event:
            case Ended():
                self._ended(event)
            case Started():
                self._started(event.sample, event.version)
            case Sampled():
                self._sampled(event.sample, event.version)
            case Offered():
                self._offered(event)
            case TrainerFree():
                self._expect(not book.training, "the trainer is free and its step is not finished")
                book.free = True
            case Updated():
                self._updated()
            case Synced():
                self._expect(event.version <= book.version, f"no version {event.version} was made")
                book.synced = max(book.synced, event.version)
            case Exhausted():
                book.exhausted = True
            case Passed():
                pass

    def _offered(self, event: Offered) -> None:
        self._expect(not self._book.knows(event.group), f"{event.group} is there already")
        self._book.offered.append(Prompt(name=event.group, difficulty=event.difficulty))
        self._book.names.add(event.group)
        if event.difficulty is not None:
            self._book.ledger.difficulty.add(event.difficulty)

    def _started(self, sample: SampleId, version: int) -> None:
        """Nothing of it was sampled before; one that was lost may be started once more."""
        found = self._found(sample)
        if isinstance(found, Ending):
            return
        group, member = found
        member.version, member.heard = min(version, self._book.version), True
        member.began_s = self._book.now_s
        self._groups.reckon(group)

    def _sampled(self, sample: SampleId, version: int) -> None:
        found = self._found(sample)
        if isinstance(found, Ending):
            return
        group, member = found
        version = min(version, self._book.version)
        member.version = min(version, member.version) if member.heard else version
        member.heard = True
        self._groups.reckon(group)

    def _ended(self, event: Ended) -> None:
        book, found = self._book, self._found(event.sample)
        counts = event.outcome in ("valid", "own")
        self._expect(not counts or _is_reward(event), f"{event.sample} has reward {event.reward}")
        book.ledger.outcomes[event.outcome] = book.ledger.outcomes.get(event.outcome, 0) + 1
        book.used -= 1
        if isinstance(found, Ending):
            book.ending.remove(found)
            book.ledger.lose(found.reason, event.tokens)
            return
        group, member = found
        if counts:
            self._keep(group, member, event)
        else:
            book.ledger.lose("fault", event.tokens)
            self._groups.again(group, member, "fault")
        self._groups.reckon(group)

    def _keep(self, group: Group, member: Member, event: Ended) -> None:
        book = self._book
        member.phase, member.tokens = "valid", event.tokens
        member.reward = event.reward or 0.0
        if event.oldest is not None:
            member.version = min(event.oldest, book.version)
        group.left -= 1
        book.ledger.tokens.add(event.tokens)
        book.ledger.reward.add(member.reward)
        book.ledger.seconds.add(book.now_s - member.began_s)

    def _updated(self) -> None:
        book = self._book
        self._expect(bool(book.training), "a step is finished that was not begun")
        for group in book.training:
            book.ledger.trained += len(group.valid)
            book.ledger.tokens_trained += sum(each.tokens for each in group.valid)
        book.ledger.groups_trained += len(book.training)
        book.training = []
        book.version += 1
        if self._order.stale == "group":
            for group in [g for g in book.groups.values() if book.bound(g) < book.next_version]:
                self._groups.drop(group, "stale")
        else:
            for group in list(book.groups.values()):
                self._groups.reckon(group)

    # --- a batch ----------------------------------------------------------------------------------

    def _take(self) -> None:
        """Give the trainer a batch, or say what it waits for."""
        book = self._book
        if not book.free:
            return
        count = self._count()
        picked = self._pick(count)
        while isinstance(picked, Held) and self._overdue(picked):
            count = self._count()
            picked = self._pick(count)
        if isinstance(picked, Held):
            self._wait(picked, count)
            return
        book.held_s, book.said = -1.0, None
        groups = [book.groups.pop(name) for name in picked.groups]
        book.finished = [name for name in book.finished if name in book.groups]
        predict.stepped(book)
        self._out.append(
            Batch(
                version=book.version,
                groups=tuple(map(self._taken, groups)),
                against=figures.against(book, groups),
            )
        )
        book.free, book.training = False, groups

    def _pick(self, count: int) -> Pick | Held:
        book = self._book
        head = min(self._config.head_start, book.staleness) if book.took_s < 0 else 0
        least = min(count + head * book.prompts, len(book.groups) + len(book.offered))
        if not count or len(book.finished) < (least if head else 0):
            return Held(groups=tuple(book.unfinished()))
        return self._order.pick(book, count)

    def _count(self) -> int:
        """Groups of the next batch: fewer only where no more will come."""
        book = self._book
        left = len(book.groups) + len(book.offered)
        return min(book.prompts, left) if book.exhausted else book.prompts

    def _taken(self, group: Group) -> Taken:
        valid = group.valid
        return Taken(
            group=group.name,
            samples=tuple(map(group.sample, valid)),
            staleness=tuple(self._book.version - each.version for each in valid),
            tokens=tuple(each.tokens for each in valid),
        )

    def _overdue(self, held: Held) -> bool:
        """Give up what was waited for long enough; whether there was any."""
        book = self._book
        book.held_s = book.now_s if book.held_s < 0 else book.held_s
        if book.now_s < book.held_s + self._config.bound_wait_s:
            return False
        late = [
            (group, each)
            for group in held.groups
            for each in group.members
            if self._until(each) <= book.now_s
        ]
        for group, each in late:
            self._groups.give_up(group, each)
        return bool(late)

    def _until(self, member: Member) -> float:
        """When not to wait for an attempt any more; one that waits for a slot will have it."""
        if member.phase != "running":
            return math.inf
        return max(self._book.held_s, member.began_s) + self._config.bound_wait_s

    def _wake_s(self, held: Held) -> float | None:
        """Before which no attempt is waited for long enough."""
        first = self._book.held_s + self._config.bound_wait_s
        if not held.groups or self._book.now_s < first:
            return first if held.groups else None
        until = min(self._until(each) for group in held.groups for each in group.members)
        return until if math.isfinite(until) else None

    def _wait(self, held: Held, count: int) -> None:
        book = self._book
        empty = not count or not (book.groups or book.offered)
        said = Wait(
            reason="at_bound" if held.at_bound else "no_prompts" if empty else "too_few",
            groups=tuple(each.name for each in held.groups) if held.at_bound else (),
            until_s=self._wake_s(held),
        )
        if said != book.said:
            book.said = said
            self._out.append(said)

    # --- slots ------------------------------------------------------------------------------------

    def _fill(self) -> None:
        """Give free slots to places that wait, then to new groups."""
        book = self._book
        while book.used < book.slots:
            if not book.queue:
                if not book.offered or self._order.room(book) < 1:
                    return
                self._admit(book.offered.popleft())
            self._grant(*book.queue.popleft())

    def _admit(self, prompt: Prompt) -> None:
        book = self._book
        members = [Member(place=place) for place in range(book.samples)]
        book.names.discard(prompt.name)
        book.groups[prompt.name] = Group(
            name=prompt.name,
            number=book.admitted,
            difficulty=prompt.difficulty,
            members=members,
            left=len(members),
        )
        book.queue.extend((prompt.name, each.place) for each in members)
        book.admitted += 1
        book.begun += 1
        self._out.append(Admit(group=prompt.name, bound=book.synced + book.staleness))

    def _grant(self, name: str, place: int) -> None:
        book = self._book
        group = book.groups.get(name)
        if group is None or group.members[place].phase != "waiting":
            return
        member = group.members[place]
        member.phase, member.version, member.began_s = "running", book.synced, book.now_s
        book.used += 1
        book.ledger.started += 1
        self._out.append(Start(sample=group.sample(member), reason=member.begun))
        group.reckon()

    # --- what cannot be ---------------------------------------------------------------------------

    def _found(self, sample: SampleId) -> tuple[Group, Member] | Ending:
        group = self._book.groups.get(sample.group)
        if group is not None and 0 <= sample.place < len(group.members):
            member = group.members[sample.place]
            if member.attempt == sample.attempt and member.phase == "running":
                return group, member
        for each in self._book.ending:
            named = SampleId(group=each.group, place=each.place, attempt=each.attempt)
            if named == sample:
                return each
        raise ValueError(f"{sample} is not under way")

    def _expect(self, held: bool, otherwise: str) -> None:
        if not held:
            raise ValueError(otherwise)


def _is_reward(event: Ended) -> bool:
    return event.reward is not None and math.isfinite(event.reward)
