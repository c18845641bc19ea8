# SPDX-License-Identifier: Apache-2.0
"""Weights to several engines, some of which fail: what becomes of each, and that it is said."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from rltrain.refused import Refused
from rltrain.sync.config import SyncConfig
from rltrain.sync.errors import ReplicasLost, SyncError, WrongWeights
from rltrain.sync.sender import Sender, open_sender
from rltrain.sync.types import Replica, State
from rltrain.sync.version import WeightVersion

sys.path.insert(0, str(Path(__file__).parent))
from loopback import Engine, serving

pytestmark = pytest.mark.trainer

SHORT = {"control_s": 1.0, "pause_s": 1.0, "transfer_s": 1.0, "join_s": 20.0}
ONE, TWO = (WeightVersion(lineage=0, step=step) for step in (1, 2))


def weights(shift: float = 0.0) -> Iterator[tuple[str, Tensor]]:
    for number in range(5):
        yield f"layers.{number}.weight", torch.arange(30.0).reshape(5, 6) + number + shift


def opened(*engines: Engine, **config: Any) -> Sender:
    settings = SyncConfig(**{"method": "gloo", **SHORT, **config})
    return open_sender(settings, replicas(*engines), family="qwen3")


def replicas(*engines: Engine) -> list[Replica]:
    return [Replica(name=f"e{number}", url=each.url) for number, each in enumerate(engines)]


def holds(engine: Engine, shift: float) -> bool:
    there = dict(weights(shift))
    return there.keys() == engine.weights.keys() and all(
        torch.equal(there[name], each) for name, each in engine.weights.items()
    )


@pytest.mark.parametrize("method", ["gloo", "file"])
def test_every_engine_holds_what_was_sent_and_samples_under_its_version(
    method: str, tmp_path: Path
) -> None:
    first, second = Engine(), Engine()
    with serving(first, second):
        sender = opened(first, second, method=method, directory=str(tmp_path / "weights"))
        for version, shift in ((ONE, 0.0), (TWO, 0.5)):
            synced = sender.sync(weights(shift), version)
            assert synced is not None
            assert [each.state for each in synced.replicas] == [State.NEW, State.NEW]
            assert (synced.tensors, synced.bytes, synced.verified) == (5, 600, 5)
            assert all(holds(each, shift) for each in (first, second))
    assert first.sampled_with == second.sampled_with == ["1", "2"]
    assert not first.paused
    assert not [each for each in tmp_path.rglob("*") if each.is_file()]


def test_a_version_is_named_only_while_nothing_is_sampled_and_after_it_was_compared() -> None:
    engine = Engine()
    with serving(engine):
        opened(engine).sync(weights(), ONE)
    assert engine.asked[-9:] == [
        *("/init_weight_transfer_engine", "/pause", "/start_weight_update", "/update_weights"),
        *("/finish_weight_update", "sync_report", "/update_weight_version", "/weight_info"),
        "/resume",
    ]


def test_a_pause_lets_an_engine_keep_what_it_has_reckoned() -> None:
    engine = Engine()
    with serving(engine):
        opened(engine).sync(weights(), ONE)
    assert engine.queries["/pause"] == "mode=keep&clear_cache=false"
    assert "/reset_prefix_cache" not in engine.asked


def test_keys_and_values_of_older_weights_are_forgotten_before_anything_is_sampled() -> None:
    engine = Engine()
    with serving(engine):
        opened(engine).sync(weights(), ONE, reset=True)
    assert engine.asked[-3:] == ["/weight_info", "/reset_prefix_cache", "/resume"]


def test_an_engine_that_cannot_forget_does_not_go_on() -> None:
    engine = Engine(resets=False)
    with serving(engine):
        sender = opened(engine)
        with pytest.raises(SyncError, match=r"e0 is lost: reset: the engine says .*False"):
            sender.sync(weights(), ONE, reset=True)
    assert engine.sampled_with == []


def test_tensors_travel_in_the_type_that_engines_compute_in() -> None:
    engine = Engine(dtype="bfloat16")
    with serving(engine):
        opened(engine).sync(weights(1 / 3), ONE)
    assert {each.dtype for each in engine.weights.values()} == {torch.bfloat16}
    assert torch.equal(engine.weights["layers.0.weight"], next(weights(1 / 3))[1].bfloat16())


@pytest.mark.parametrize(
    ("path", "op", "state", "told"),
    [
        ("/pause", "pause", State.OLD, ["default"]),
        ("/start_weight_update", "begin", State.LOST, []),
        ("/update_weights", "transfer of layers.0.weight", State.LOST, []),
        ("/finish_weight_update", "end", State.LOST, []),
        ("sync_report", "compare", State.LOST, []),
        ("/update_weight_version", "name the version", State.LOST, []),
        ("/resume", "resume", State.LOST, []),
    ],
)
@pytest.mark.parametrize("fault", ["fail", "close"])
def test_an_engine_that_fails_is_told_apart_and_the_other_goes_on(
    path: str, op: str, state: State, told: list[str], fault: str
) -> None:
    good, bad = Engine(), Engine(faults={path: fault})
    with serving(good, bad):
        sender = opened(good, bad)
        with pytest.raises(ReplicasLost, match=rf"replica e1 is {state.value}: {op}: ") as caught:
            sender.sync(weights(), ONE)
    assert [each.state for each in caught.value.outcomes] == [State.NEW, state]
    assert "others: e0 is new" in str(caught.value)
    assert holds(good, 0.0)
    assert good.sampled_with == ["1"]
    assert bad.sampled_with == told


@pytest.mark.parametrize("path", ["/pause", "/start_weight_update", "/update_weights"])
def test_an_engine_that_hangs_holds_the_others_up_no_longer_than_its_time(path: str) -> None:
    good, bad = Engine(), Engine(faults={path: "hang"})
    with serving(good, bad):
        sender = opened(good, bad)
        with pytest.raises(ReplicasLost, match=r"e1 is .*(no answer within 1 s|Timed out)"):
            sender.sync(weights(), ONE)
        assert good.sampled_with == ["1"]


def test_an_engine_that_was_lost_is_replaced_and_the_others_do_not_notice() -> None:
    good, bad, fresh = Engine(), Engine(faults={"/update_weights": "close"}), Engine()
    with serving(good, bad, fresh):
        sender = opened(good, bad)
        with pytest.raises(ReplicasLost):
            sender.sync(weights(), ONE)
        before = list(good.asked)
        sender.join([Replica(name="e1", url=fresh.url)])
        sender.sync(weights(), ONE, only=["e1"])
        assert good.asked == before
        assert sender.sync(weights(1.0), TWO) is not None
    assert fresh.sampled_with == ["1", "2"]
    assert holds(good, 1.0)
    assert holds(fresh, 1.0)


def test_an_engine_that_left_is_asked_nothing_more() -> None:
    stays, leaves = Engine(), Engine()
    with serving(stays, leaves):
        sender = opened(stays, leaves)
        sender.leave(["e1"])
        sender.sync(weights(), ONE)
        with pytest.raises(Refused, match="e1: there is no replica"):
            sender.sync(weights(), ONE, only=["e1"])
    assert leaves.sampled_with == []


def test_an_engine_that_holds_other_values_stops_the_run_and_samples_nothing() -> None:
    good, bad = Engine(), Engine(spoil="layers.3.weight")
    with serving(good, bad):
        sender = opened(good, bad)
        with pytest.raises(WrongWeights, match=r"e1 is lost: .*layers\.3\.weight.*e0 is new"):
            sender.sync(weights(), ONE)
    assert bad.sampled_with == []
    assert (bad.version, bad.paused) == ("default", True)


def test_what_arrives_changed_stops_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Engine()
    receive = Engine._receive

    def flipped(self: Engine, info: dict[str, Any]) -> None:
        receive(self, info)
        self.received["layers.4.weight"] = "0" * 16

    monkeypatch.setattr(Engine, "_receive", flipped)
    with serving(engine):
        sender = opened(engine)
        with pytest.raises(WrongWeights, match=r"layers\.4\.weight arrived with other values"):
            sender.sync(weights(), ONE)


def ending(after: int) -> Iterator[tuple[str, Tensor]]:
    """Weights that end in an error."""
    for number, each in enumerate(weights()):
        if number == after:
            raise RuntimeError("another rank is gone")
        yield each


def test_engines_that_were_sent_nothing_go_on_as_before_when_the_trainer_fails() -> None:
    engine = Engine()
    with serving(engine):
        sender = opened(engine)
        with pytest.raises(SyncError, match="could not be sent: another rank is gone") as caught:
            sender.sync(ending(0), ONE)
        assert [each.state for each in caught.value.outcomes] == [State.OLD]
        assert engine.sampled_with == ["default"]
        assert sender.sync(weights(), ONE) is not None


def test_engines_with_a_part_of_an_update_do_not_go_on_when_the_trainer_fails(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("rltrain.sync.rounds.MIB", 200)
    engine = Engine()
    with serving(engine):
        sender = opened(engine, bucket_mib=1)
        with pytest.raises(SyncError) as caught:
            sender.sync(ending(4), ONE)
    assert [each.state for each in caught.value.outcomes] == [State.LOST]
    assert engine.sampled_with == []
    assert engine.weights


def test_a_directory_that_cannot_be_written_is_named_and_engines_go_on_as_before(
    tmp_path: Path,
) -> None:
    taken = tmp_path / "taken"
    taken.write_text("a file", "utf-8")
    engine = Engine()
    with serving(engine):
        sender = opened(engine, method="file", directory=str(taken))
        with pytest.raises(SyncError, match=r"sync\.directory: .*taken: .*; make room"):
            sender.sync(weights(), ONE)
    assert engine.sampled_with == ["default"]


def test_a_tensor_that_is_sent_twice_is_refused() -> None:
    engine = Engine()
    with serving(engine):
        sender = opened(engine)
        with pytest.raises(SyncError, match=r"layers\.0\.weight was sent twice"):
            sender.sync([*weights(), *weights()], ONE)


@pytest.mark.parametrize("path", ["/pause", "/update_weights", ""])
def test_all_weights_are_gone_through_whatever_becomes_of_engines(path: str) -> None:
    engine = Engine(faults={path: "fail"})
    everything = weights()
    with serving(engine):
        sender = opened(engine)
        try:
            sender.sync(everything, ONE)
        except SyncError:
            assert path
        else:
            assert not path
    assert list(everything) == []


def test_other_ranks_go_through_all_weights_and_ask_nobody() -> None:
    everything = weights()
    sender = open_sender(SyncConfig(), [], family="qwen3", rank=1)
    assert sender.sync(everything, ONE) is None
    assert list(everything) == []


def test_an_engine_without_our_extension_is_named_with_what_to_do() -> None:
    engine = Engine(faults={"sync_hello": "fail"})
    with serving(engine), pytest.raises(SyncError, match=r"e0: join: .*rltrain\.sync\.serve says"):
        opened(engine)


def test_an_engine_of_other_ranks_than_was_said_is_refused() -> None:
    engine = Engine(ranks=2)
    with serving(engine), pytest.raises(Refused, match="e0: has 2 ranks and not 1"):
        opened(engine)


def test_engines_that_compute_in_different_types_are_refused() -> None:
    first, second = Engine(), Engine(dtype="bfloat16")
    with serving(first, second):
        sender = opened(first, second)
        with pytest.raises(SyncError, match="compute in different types"):
            sender.sync(weights(), ONE)
    assert first.sampled_with == ["default"]


def test_weights_without_an_engine_are_an_error() -> None:
    with pytest.raises(SyncError, match="there is no replica"):
        open_sender(SyncConfig(), [], family="qwen3").sync(weights(), ONE)
