# SPDX-License-Identifier: Apache-2.0
"""An agent that does not come from here works in turns where it asks for them, as documented."""

from itertools import pairwise
from pathlib import Path

import pytest

from envkit.sandbox.availability import availability

from ..trial.tiny import launcher, lend_parts, make_task, run_trials, spec

pytestmark = pytest.mark.integration


@pytest.fixture(autouse=True)
def parts(monkeypatch: pytest.MonkeyPatch) -> None:
    here = availability()
    if not here.ok:
        pytest.skip(f"missing tool: {here.line()}")
    lend_parts(monkeypatch)


def test_agents_that_take_turns_do_not_work_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ENVKIT_TEST_SHARED", str(tmp_path))
    task, out = make_task(tmp_path / "tasks"), tmp_path / "out"
    specs = [spec(task, out, f"t{n}", "own_parts:TakesTurns") for n in range(4)]
    ran = run_trials(launcher(out, concurrency=4, turns=1), specs)
    assert [ran[each.trial_id].reward for each in specs] == [1.0] * 4
    worked = sorted(
        tuple(map(float, line.split())) for line in (tmp_path / "worked").read_text().splitlines()
    )
    assert len(worked) == 8
    assert all(until <= since for (_, until), (since, _) in pairwise(worked))
