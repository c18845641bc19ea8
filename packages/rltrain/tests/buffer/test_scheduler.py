# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import math

import pytest

from rltrain.buffer.config import BufferConfig
from rltrain.buffer.scheduler import Scheduler
from rltrain.buffer.types import (
    Admit,
    Again,
    Batch,
    Cancel,
    CloseShort,
    DropGroup,
    Ended,
    Exhausted,
    Leave,
    Offered,
    Passed,
    Sampled,
    Start,
    Started,
    Synced,
    TrainerFree,
    Updated,
    Wait,
)

from .driven import Driver, attempt, names, of, waits


def test_a_group_is_trained_on_when_all_its_samples_ended() -> None:
    driver = Driver(BufferConfig(staleness=0))
    driver.offer("a")
    assert waits(driver.free()) == ["at_bound"]
    assert names(driver.end("a", 0)) == []
    assert names(driver.end("a", 1)) == [("a",)]


def test_no_more_groups_are_begun_than_batches_may_take_before_their_bound() -> None:
    driver = Driver(BufferConfig(staleness=2), prompts=2)
    driver.offer(*"abcdefgh")
    assert [each.group for each in of(Admit, driver.said)] == list("abcdef")
    assert driver.scheduler.ceiling.binds == "staleness"


def test_what_may_be_begun_while_a_step_is_taken_is_a_batch_less() -> None:
    driver = Driver(BufferConfig(staleness=1, head_start=0))
    driver.offer(*"abc")
    driver.free()
    driver.end("a")
    assert [each.group for each in of(Admit, driver.said)] == ["a", "b"]
    driver.tell(Updated())
    assert len(of(Admit, driver.said)) == 2
    assert [each.group for each in of(Admit, driver.tell(Synced(version=1)))] == ["c"]


def test_slots_bind_where_none_is_free_and_prompts_where_none_is_offered() -> None:
    driver = Driver(BufferConfig(staleness=9), slots=3)
    assert driver.scheduler.ceiling.binds == "prompts"
    driver.offer("a", "b")
    ceiling = driver.scheduler.ceiling
    assert (ceiling.binds, ceiling.running, ceiling.slots) == ("slots", 3, 3)
    driver.end("a", 0)
    assert driver.scheduler.ceiling.staleness == 10 * 2 - 1


def test_seconds_are_counted_to_the_ceiling_that_bound_in_them() -> None:
    driver = Driver(BufferConfig(staleness=0), slots=3)
    driver.tell(Passed(), after_s=5.0)
    driver.offer("a", "b")
    driver.tell(Passed(), after_s=7.0)
    assert driver.scheduler.ledger.bound_s == {"prompts": 5.0, "staleness": 7.0}
    assert driver.scheduler.ledger.idle_slot_s == 5.0 * 3 + 7.0


def test_a_slot_goes_to_a_begun_group_before_a_new_one() -> None:
    driver = Driver(BufferConfig(staleness=9), samples=3, slots=2)
    driver.offer("a", "b")
    assert [each.sample for each in of(Start, driver.end("a", 0))] == [attempt("a", 2)]
    assert [each.sample for each in of(Start, driver.end("a", 1))] == [attempt("b", 0)]


def test_the_trainer_waits_for_a_group_at_its_bound_and_not_for_a_younger_one() -> None:
    driver = Driver(BufferConfig(staleness=1, head_start=0))
    driver.offer(*"abcd")
    driver.free()
    assert names(driver.end("b")) == [("b",)]
    driver.step()
    said = driver.end("c")
    assert names(said) == []
    assert driver.scheduler.ledger.groups_trained == 1
    assert of(Wait, driver.said)[-1].groups == ("a",)
    assert names(driver.end("a")) == [("a",)]
    assert names(driver.step()) == [("c",)]


def test_the_look_ahead_takes_what_later_batches_would_have_no_place_for() -> None:
    driver = Driver(BufferConfig(staleness=2, head_start=0))
    driver.offer(*"abcd")
    driver.free()
    assert names(driver.end("a")) == [("a",)]
    driver.step()  # b and c are bound to 2 and d to 3; two batches are left for b and c
    assert names(driver.end("d")) == []
    assert of(Wait, driver.said)[-1].groups == ("b", "c")
    assert names(driver.end("c")) == [("c",)]


def test_the_first_batch_waits_for_a_head_start_within_the_bound() -> None:
    driver = Driver(BufferConfig(staleness=3, head_start=2))
    driver.offer(*"abcd")
    driver.free()
    assert names(driver.end("b")) == []
    assert names(driver.end("c")) == []
    assert names(driver.end("a")) == [("a",)]
    assert names(driver.step()) == [("b",)]


def test_a_head_start_never_waits_for_prompts_that_do_not_come() -> None:
    driver = Driver(BufferConfig(staleness=3, head_start=2))
    driver.offer("a")
    driver.tell(Exhausted())
    driver.free()
    assert names(driver.end("a")) == [("a",)]


def test_the_last_batch_takes_what_there_is() -> None:
    driver = Driver(BufferConfig(staleness=0), prompts=3)
    driver.offer("a", "b")
    driver.free()
    driver.end("a")
    driver.end("b")
    assert names(driver.said) == []
    assert names(driver.tell(Exhausted())) == [("a", "b")]
    assert waits(driver.step()) == ["no_prompts"]


def test_the_version_that_counts_is_the_lowest_that_was_heard_of() -> None:
    driver = Driver(BufferConfig(staleness=2, head_start=0))
    driver.offer(*"abc")
    driver.free()
    driver.end("a")
    driver.step()
    driver.offer("d")
    driver.tell(Sampled(sample=attempt("d", 1), version=0))
    driver.end("b")
    driver.step()
    driver.end("d")
    driver.end("c")
    driver.step()
    taken = of(Batch, driver.said)[-1].groups[0]
    ages = {each.groups[0].group: each.groups[0].staleness for each in of(Batch, driver.said)}
    assert ages["d"] in {(1, 2), (2, 2), (2, 3)}
    assert max(max(each) for each in ages.values()) <= 2
    assert taken


def test_what_an_end_says_of_its_oldest_token_counts_over_what_was_supposed() -> None:
    driver = Driver(BufferConfig(staleness=1, head_start=0))
    driver.offer("a", "b")
    driver.free()
    driver.end("a")
    driver.step()
    for place in (0, 1):
        driver.tell(
            Ended(sample=attempt("b", place), outcome="valid", tokens=1, reward=place, oldest=1)
        )
    assert of(Batch, driver.said)[-1].groups[0].staleness == (0, 0)


def test_a_version_below_every_step_that_is_left_takes_the_sample_and_not_its_group() -> None:
    driver = Driver(BufferConfig(staleness=0, retries=0), samples=3)
    driver.offer("a")
    driver.free()
    driver.end("a")
    driver.offer("b")
    driver.step()
    said = driver.tell(Sampled(sample=attempt("b", 1), version=0))
    assert of(Cancel, said) == [Cancel(sample=attempt("b", 1), reason="stale")]
    driver.end("b")
    driver.tell(Ended(sample=attempt("b", 1), outcome="cancelled", tokens=7))
    assert [(each.valid, each.reason) for each in of(CloseShort, driver.said)] == [(2, "stale")]
    assert driver.scheduler.ledger.tokens_lost == {"stale": 7}
    assert names(driver.said) == [("a",), ("b",)]


def test_a_valid_sample_that_no_step_may_be_taken_on_any_more_is_lost_as_stale() -> None:
    driver = Driver(BufferConfig(staleness=0, retries=0), samples=3)
    driver.offer("a")
    driver.free()
    driver.end("a")
    driver.offer("b")
    driver.step()
    driver.tell(Ended(sample=attempt("b", 0), outcome="valid", tokens=9, reward=1.0, oldest=0))
    assert driver.scheduler.ledger.tokens_lost == {"stale": 9}
    driver.end("b")
    assert names(driver.said)[-1] == ("b",)
    assert len(of(Batch, driver.said)[-1].groups[0].samples) == 2


def test_a_faulted_sample_is_begun_again_in_the_slot_that_is_free() -> None:
    driver = Driver(BufferConfig(staleness=0), slots=2)
    driver.offer("a")
    said = driver.end("a", 0, outcome="fault", tokens=5)
    again = attempt("a", 0, 1)
    assert of(Again, said) == [Again(sample=again, reason="retry", after="fault")]
    assert of(Start, said) == [Start(sample=again, reason="retry")]
    assert driver.scheduler.ledger.tokens_lost == {"fault": 5}


def test_a_sample_that_is_begun_again_comes_before_what_has_not_been_begun() -> None:
    driver = Driver(BufferConfig(staleness=3), samples=3, slots=2)
    driver.offer("a", "b")
    (start,) = of(Start, driver.end("a", 0, outcome="fault"))
    assert start.sample == attempt("a", 0, 1)


def test_no_reward_makes_a_faulted_or_cancelled_attempt_valid() -> None:
    driver = Driver(BufferConfig(staleness=0, retries=0, refills=0), samples=3)
    driver.offer("a")
    driver.tell(Ended(sample=attempt("a", 0), outcome="fault", tokens=1, reward=1.0))
    driver.tell(Ended(sample=attempt("a", 1), outcome="cancelled", tokens=1, reward=0.0))
    assert driver.scheduler.buffered == 0
    assert driver.scheduler.ledger.tokens_lost == {"fault": 2}


def test_a_new_attempt_is_as_old_as_it_was_told_to_be_and_not_as_the_one_before() -> None:
    driver = Driver(BufferConfig(staleness=1, head_start=0))
    driver.offer("a", "b")
    driver.free()
    driver.end("a")
    driver.step()
    driver.end("b", 1)
    driver.end("b", 0, outcome="fault")
    driver.end("b", 0)
    assert of(Batch, driver.said)[-1].groups[0].staleness == (0, 1)


def test_an_engine_that_is_ahead_of_the_others_makes_a_new_attempt_younger() -> None:
    driver = Driver(BufferConfig(staleness=1, head_start=0))
    driver.offer("a", "b")
    driver.free()
    driver.end("a")
    driver.tell(Updated())
    driver.engines = 1
    driver.end("b", 1)
    driver.end("b", 0, outcome="fault")
    driver.end("b", 0)
    driver.free()
    assert of(Batch, driver.said)[-1].groups[0].staleness == (0, 1)


def test_what_the_model_did_itself_is_never_tried_again() -> None:
    driver = Driver(BufferConfig(staleness=0))
    driver.offer("a")
    driver.free()
    assert of(Again, driver.end("a", 0, outcome="own")) == []
    assert names(driver.end("a", 1)) == [("a",)]


def refilled(step_s: float, trial_s: float, staleness: int = 1) -> list[object]:
    """After the second fault of a sample whose bound is so many batches of ``step_s`` away."""
    driver = Driver(BufferConfig(staleness=staleness, head_start=0), samples=3)
    driver.offer("a", "b")
    driver.free()
    driver.end("a", after_s=trial_s)
    driver.end("b", after_s=0.0)
    driver.step(after_s=step_s)
    driver.offer("c")
    driver.end("c", 0, outcome="fault", after_s=0.0)
    said = driver.end("c", 0, outcome="fault", after_s=0.0)
    return [*of(Again, said), *of(Leave, said)]


def test_a_place_is_refilled_only_if_that_will_end_before_the_bound() -> None:
    (soon,) = refilled(step_s=100.0, trial_s=1.0)
    assert isinstance(soon, Again)
    assert soon.reason == "refill"
    (later,) = refilled(step_s=100.0, trial_s=150.0, staleness=2)
    assert isinstance(later, Again)
    (late,) = refilled(step_s=100.0, trial_s=150.0)
    assert isinstance(late, Leave)
    assert "its bound comes at" in late.why


def test_a_group_closes_short_with_two_valid_samples() -> None:
    driver = Driver(BufferConfig(staleness=0, retries=0, refills=0), samples=3)
    driver.offer("a")
    driver.free()
    driver.end("a", 0, outcome="fault")
    said = driver.end("a")
    assert of(CloseShort, said) == [CloseShort(group="a", valid=2, reason="fault")]
    assert names(said) == [("a",)]


def test_a_group_with_one_valid_sample_is_dropped_with_that_reason_and_replaced() -> None:
    driver = Driver(BufferConfig(staleness=0, retries=0, refills=0))
    driver.offer("a", "b")
    driver.end("a", 0, outcome="fault")
    said = driver.end("a", 1)
    assert of(DropGroup, said) == [DropGroup(group="a", reason="few_valid")]
    assert [each.group for each in of(Admit, said)] == ["b"]
    assert driver.scheduler.ledger.tokens_lost == {"fault": 10, "few_valid": 10}


def test_a_group_whose_rewards_are_all_the_same_is_replaced() -> None:
    driver = Driver(BufferConfig(staleness=0))
    driver.offer("a", "b")
    driver.free()
    said = driver.end("a", rewards=(0.0, 1e-6))
    assert of(DropGroup, said) == [DropGroup(group="a", reason="no_variance")]
    assert names(driver.end("b")) == [("b",)]


def test_the_trainer_waits_so_long_at_the_bound_and_then_takes_what_is_valid() -> None:
    driver = Driver(BufferConfig(staleness=0, bound_wait_s=60.0), samples=3)
    driver.offer("a")
    driver.free()
    driver.end("a", 0, 1)
    (wait,) = of(Wait, driver.said)
    assert (wait.reason, wait.groups, wait.until_s) == ("at_bound", ("a",), 60.0)
    assert names(driver.tell(Passed(), after_s=58.0)) == []
    said = driver.tell(Passed(), after_s=1.0)
    assert of(Cancel, said) == [Cancel(sample=attempt("a", 2), reason="bound_wait")]
    assert names(said) == [("a",)]
    assert driver.scheduler.ending == (attempt("a", 2),)
    driver.end("a")
    driver.tell(Ended(sample=attempt("a", 2), outcome="valid", tokens=3, reward=9.0))
    assert driver.scheduler.ledger.tokens_lost == {"bound_wait": 3}
    assert driver.scheduler.ending == ()


def test_a_sample_begun_while_the_trainer_waits_has_the_same_time() -> None:
    driver = Driver(BufferConfig(staleness=0, bound_wait_s=60.0), slots=1)
    driver.offer("a")
    driver.free()
    driver.end("a", after_s=50.0)
    assert names(driver.tell(Passed(), after_s=59.0)) == []
    assert names(driver.end("a", after_s=0.5)) == [("a",)]


def test_neither_a_head_start_nor_the_last_batch_waits_for_ever() -> None:
    driver = Driver(BufferConfig(staleness=3, bound_wait_s=60.0), samples=3)
    driver.offer("a", "b")
    driver.tell(Exhausted())
    driver.free()
    driver.end("a")
    driver.end("b", 0, 1)
    assert names(driver.tell(Passed(), after_s=60.0)) == [("a",)]
    driver.tell(Ended(sample=attempt("b", 2), outcome="cancelled", tokens=3))
    assert names(driver.step()) == [("b",)]


def test_a_group_at_its_bound_with_too_few_valid_samples_is_dropped() -> None:
    driver = Driver(BufferConfig(staleness=0, bound_wait_s=60.0))
    driver.offer("a", "b")
    driver.free()
    driver.end("a", 0)
    said = driver.tell(Passed(), after_s=60.0)
    assert of(DropGroup, said) == [DropGroup(group="a", reason="few_valid")]
    assert [each.group for each in of(Admit, said)] == ["b"]


def test_a_batch_is_set_against_all_that_it_was_taken_from() -> None:
    driver = Driver(BufferConfig(staleness=1, head_start=0))
    driver.tell(Offered(group="a", difficulty=0.2))
    driver.tell(Offered(group="b", difficulty=0.6))
    driver.end("b", 0, tokens=30, rewards=(0.0,))
    driver.end("a", tokens=10, rewards=(1.0, 0.0))
    (batch,) = of(Batch, driver.free())
    against = batch.against
    assert (against.tokens.batch, against.tokens.population) == (10.0, 50 / 3)
    assert against.tokens.bias == pytest.approx(-0.4)
    assert (against.reward.batch, against.reward.population) == (0.5, 1 / 3)
    assert (against.difficulty.batch, against.difficulty.population) == (0.2, 0.4)
    assert against.unfinished == 1


@pytest.mark.parametrize(
    ("order", "taken"), [("completion", "c"), ("drop_stale", "c"), ("strict", "")]
)
def test_other_orders_leave_a_late_group_behind_or_wait_for_it_from_the_start(
    order: str, taken: str
) -> None:
    driver = Driver(BufferConfig(staleness=2, order=order, head_start=0))  # pyright: ignore
    driver.offer(*"abc")
    driver.free()
    assert names(driver.end("c")) == ([(taken,)] if taken else [])


def test_completion_order_trains_above_the_bound_and_drop_stale_throws_away() -> None:
    found: dict[str, Driver] = {}
    for order in ("completion", "drop_stale"):
        driver = found[order] = Driver(BufferConfig(staleness=1, order=order, head_start=0))
        driver.offer(*"abcdef")
        driver.free()
        for name in "bcd":
            driver.end(name)
            driver.step()
        driver.end("a")
    late = of(Batch, found["completion"].said)[-1].groups[0]
    assert (late.group, late.staleness) == ("a", (3, 3))
    dropped = of(DropGroup, found["drop_stale"].said)
    assert dropped == [DropGroup(group="a", reason="stale")]


@pytest.mark.parametrize(
    ("event", "said"),
    [
        (Updated(), "a step is finished that was not begun"),
        (Started(sample=attempt("z"), version=0), "is not under way"),
        (Offered(group="a"), "a is there already"),
        (Ended(sample=attempt("a"), outcome="valid", tokens=1), "has reward None"),
        (Ended(sample=attempt("a"), outcome="own", tokens=1, reward=math.nan), "has reward nan"),
    ],
)
def test_what_cannot_have_happened_is_refused(event: object, said: str) -> None:
    driver = Driver(BufferConfig())
    driver.offer("a")
    with pytest.raises(ValueError, match=said):
        driver.tell(event)  # pyright: ignore[reportArgumentType]


def test_time_does_not_go_back() -> None:
    scheduler = Scheduler(BufferConfig(), prompts=1, samples=2, slots=1)
    scheduler.on(TrainerFree(), 5.0)
    with pytest.raises(ValueError, match="before 5 s"):
        scheduler.on(Passed(), 4.0)


def test_a_step_of_single_samples_is_refused() -> None:
    with pytest.raises(ValueError, match="2 samples, are wanted"):
        Scheduler(BufferConfig(), prompts=1, samples=1, slots=1)
