# SPDX-License-Identifier: Apache-2.0
"""Working ahead: in order, on all cores, no further than is said."""

import threading
from collections.abc import Iterator

import pytest

from envkit.trajectory import ahead
from envkit.trajectory.ahead import in_order
from envkit.trajectory.arrow import pa


@pytest.fixture(params=[1, 2, 5])
def cores(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(ahead.pa, "cpu_count", lambda: request.param)
    return request.param


@pytest.mark.parametrize("count", [0, 1, 2, 100])
def test_results_come_in_the_order_of_the_pieces(cores: int, count: int) -> None:
    made = list(in_order(lambda n: [n, -n], range(count)))
    assert made == [each for n in range(count) for each in (n, -n)]


def test_what_a_piece_raises_is_raised_in_its_turn(cores: int) -> None:
    def work(n: int) -> list[int]:
        if n == 3:
            raise OSError("gone")
        return [n]

    results = in_order(work, range(50))
    assert [next(results), next(results), next(results)] == [0, 1, 2]
    with pytest.raises(OSError, match="gone"):
        next(results)


def test_nothing_is_begun_further_ahead_than_two_a_core(cores: int) -> None:
    begun = set[int]()

    def work(n: int) -> list[int]:
        begun.add(n)
        return [n]

    for n in in_order(work, range(100)):
        assert max(begun) <= n + 2 * cores


def test_who_stops_taking_leaves_no_thread(cores: int) -> None:
    results: Iterator[int] = in_order(lambda n: [n], range(1000))
    assert next(results) == 0
    del results
    assert not [each for each in threading.enumerate() if each.name.startswith("trajectories")]


def test_who_waits_works(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pieces that wait for each other end only where two threads are at work."""
    monkeypatch.setattr(ahead.pa, "cpu_count", lambda: 2)
    both = threading.Barrier(2, timeout=30)
    seen = set[str]()

    def work(n: int) -> list[int]:
        both.wait()
        seen.add(threading.current_thread().name)
        return [n]

    assert list(in_order(work, range(4))) == [0, 1, 2, 3]
    assert threading.current_thread().name in seen
    assert len(seen) == 2
    assert pa.cpu_count() == 2
