# SPDX-License-Identifier: Apache-2.0
"""Events come out the same however their bytes are cut."""

from itertools import chain, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envkit.agent.mcp_events import Event, EventReader, EventTooLong

LINES = st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"]), max_size=20)
EVENTS = st.builds(
    lambda lines, number: Event(data="\n".join(lines).encode(), id=number),
    st.lists(LINES, min_size=1, max_size=3),
    st.text("0123456789", min_size=1, max_size=3),
)


def written(event: Event, newline: str) -> bytes:
    lines = [": a comment", f"id: {event.id}", "unknown: field", "retry: soon"]
    lines += [f"data: {line}" for line in event.data.decode().split("\n")]
    return "".join(line + newline for line in [*lines, ""]).encode()


@given(st.lists(EVENTS, max_size=4), st.sampled_from(["\n", "\r\n"]), st.data())
def test_any_cut_gives_the_same_events(
    events: list[Event], newline: str, data: st.DataObject
) -> None:
    stream = b"".join(written(event, newline) for event in events)
    cuts = data.draw(st.lists(st.integers(0, len(stream)), max_size=8).map(sorted))
    edges = [0, *cuts, len(stream)]
    reader = EventReader()
    parts = [stream[low:high] for low, high in pairwise(edges)]
    assert [event for part in parts for event in reader.feed(part)] == events


def test_a_bare_carriage_return_ends_a_line() -> None:
    reader = EventReader()
    stream = b"event: message\rdata: one\rdata\r\rid: 2\rretry: 30\rdata:two\r\r\n"
    assert list(reader.feed(stream)) == [
        Event(data=b"one\n"),
        Event(data=b"two", id="2", retry_ms=30),
    ]


@pytest.mark.parametrize("endless", [b"x" * 64, b"data: x\n"])
def test_an_event_without_an_end_is_refused(endless: bytes) -> None:
    reader = EventReader(most_bytes=100)
    with pytest.raises(EventTooLong, match="longer than 100 bytes"):
        list(chain.from_iterable(reader.feed(endless) for _ in range(100)))
