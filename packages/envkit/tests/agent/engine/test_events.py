# SPDX-License-Identifier: Apache-2.0
"""Events come out whole, however the bytes came in."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from envkit.agent.engine.events import Events

payloads = st.lists(st.binary(min_size=1).filter(lambda each: not set(each) & set(b"\r\n")))


@given(payloads, st.data(), st.sampled_from([b"\n\n", b"\r\n\r\n"]))
def test_any_cut_of_the_stream_gives_the_same_payloads(
    sent: list[bytes], data: st.DataObject, end: bytes
) -> None:
    text = b"".join(b"data: " + each + end for each in sent)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)))))
    edges = [0, *cuts, len(text)]
    events = Events()
    chunks = [text[start:stop] for start, stop in itertools.pairwise(edges)]
    assert [each for chunk in chunks for each in events.feed(chunk)] == sent
    assert events.feed(b"data: last\n\n") == [b"last"]


def test_comments_and_other_fields_are_no_payloads() -> None:
    said = b": ping\n\nevent: token\nid: 7\ndata: one\n\nretry: 10\n\ndata:two\ndata: three\n\n"
    events = Events()
    assert events.feed(said + b"data: ha") == [b"one", b"two\nthree"]
    assert events.feed(b"lf\n\n") == [b"half"]
