# SPDX-License-Identifier: Apache-2.0
"""What crosses a crew's socket comes back as it was, and what is no line is refused as such."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from envkit.crew.lines import SAID, TOLD, Begin, Cancel, NotALine, Open, line, said, told
from envkit.crew.types import (
    Begun,
    CrewOptions,
    Ended,
    Gauges,
    Notice,
    Phase,
    Ready,
    Refused,
    Restarted,
    TrialOrder,
)

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
FLOAT = st.floats(allow_nan=False, allow_infinity=False)
WHOLE = st.integers(-1, 2**53)
JSON = st.recursive(
    st.none() | st.booleans() | WHOLE | FLOAT | TEXT,
    lambda each: st.lists(each, max_size=3) | st.dictionaries(TEXT, each, max_size=3),
    max_leaves=5,
)
SETTINGS = st.dictionaries(TEXT, JSON, max_size=3)
ORDER = st.builds(
    TrialOrder,
    trial_id=TEXT,
    group_id=TEXT,
    sample=WHOLE,
    task=TEXT,
    engine=TEXT,
    model=TEXT,
    settings=SETTINGS,
    resume_from=TEXT,
)
OPTIONS = st.builds(
    CrewOptions,
    python=st.just(Path("/usr/bin/python")),
    root=st.just(Path("/runs/a b")),
    tasks=st.lists(st.sampled_from([Path("/tasks/a"), Path("b")]), max_size=2).map(tuple),
    agent=SETTINGS,
    env_args=SETTINGS,
    concurrency=st.integers(1, 10**6),
    at_work=st.none() | WHOLE,
    keep_trials=st.sampled_from(["none", "faulted", "all"]),
    environ=st.none() | st.dictionaries(TEXT, TEXT, max_size=2),
)
ENDED = st.builds(
    Ended,
    trial=TEXT,
    group=TEXT,
    sample=WHOLE,
    outcome=st.sampled_from(["valid", "own", "fault", "cancelled"]),
    reward=st.none() | FLOAT,
    fault_message=TEXT,
    oldest=st.none() | WHOLE,
    newest=st.none() | WHOLE,
    seconds=st.dictionaries(TEXT, FLOAT, max_size=3),
)
EVENTS = (
    ENDED
    | st.builds(Begun, trial=TEXT, at=FLOAT)
    | st.builds(Restarted, trial=TEXT, tokens=WHOLE, line=TEXT)
    | st.builds(Phase, trial=TEXT, phase=TEXT, at=FLOAT)
    | st.builds(Refused, trial=TEXT, line=TEXT)
    | st.builds(Notice, line=TEXT)
    | st.builds(
        Gauges,
        under_way=WHOLE,
        acting=WHOLE,
        starting=WHOLE,
        live=WHOLE,
        memory_mib=FLOAT,
        stall_ms=FLOAT,
    )
    | st.builds(
        Ready,
        run_token=TEXT,
        pid=WHOLE,
        version=TEXT,
        store=TEXT,
        rows=WHOLE,
        cut_off=st.lists(TEXT, max_size=2).map(tuple),
        resumable=st.dictionaries(TEXT, TEXT, max_size=2),
        tokenizer_digest=TEXT,
        template_digest=TEXT,
        template_family=TEXT,
        tasks=st.dictionaries(TEXT, TEXT, max_size=2),
    )
)


@given(
    st.builds(Begin, order=ORDER) | st.builds(Open, options=OPTIONS) | st.builds(Cancel, trial=TEXT)
)
def test_what_a_crew_is_told_comes_to_it_as_it_was(message: Open | Begin | Cancel) -> None:
    data = line(message)
    assert data.endswith(b"\n")
    assert data.count(b"\n") == 1
    assert told(data) == message


@given(EVENTS)
def test_what_a_crew_says_is_heard_as_it_was_said(event: Ended) -> None:
    assert said(line(event)) == event


@given(st.binary(max_size=60) | JSON.map(orjson.dumps) | SETTINGS.map(orjson.dumps))
def test_what_is_no_line_is_refused_and_never_a_traceback(data: bytes) -> None:
    for read in (told, said):
        with pytest.raises(NotALine):
            read(data)


@given(st.sampled_from([*TOLD, *SAID]), SETTINGS)
def test_a_known_kind_with_fields_of_nobodys_is_refused(
    kind: str, fields: dict[str, object]
) -> None:
    data = orjson.dumps({**fields, "say": kind})
    with pytest.raises(NotALine):
        (told if kind in TOLD else said)(data)


def test_another_schema_is_refused_with_what_to_do() -> None:
    data = orjson.dumps({"say": "hello", "schema": "envkit.crew/2", "more": 1})
    with pytest.raises(NotALine, match=r"speaks 'envkit.crew/2', .* envkit of one version"):
        said(data)


def test_what_is_no_json_is_refused_by_whoever_says_it() -> None:
    for odd in (object(), {1, 2}, "\udcff"):
        order = TrialOrder(
            trial_id="a", group_id="g", sample=0, task="t", engine="e", settings={"odd": odd}
        )
        with pytest.raises(NotALine, match="begin: cannot be said"):
            line(Begin(order=order))
