# SPDX-License-Identifier: Apache-2.0
"""In a whole trial: the agent's code and its verifier both run on warmed interpreters."""

from pathlib import Path

import pytest

from envkit.sandbox.availability import availability

from ...trial.tiny import ANSWER, launcher, make_task, run, run_trials, spec

pytestmark = pytest.mark.integration

WARM = "import os; assert os.getppid() == 0"
"""The parent of a warmed interpreter is outside its box."""

_VERIFY = """\
#!/bin/bash
python3 -c '{warm}' && [ -e /filesystem/done.txt ] && reward=1.0
printf '{{"reward": %s}}' "${{reward:-0.0}}" > /logs/verifier/reward.json
"""


def test_agent_code_and_its_verifier_run_warm(tmp_path: Path) -> None:
    if not (here := availability()).ok:
        pytest.skip(f"missing tool: {here.line()}")
    calls = (
        run(WARM, language="python"),
        run(f"python3 -c '{WARM}' && echo done > /filesystem/done.txt"),
        ANSWER,
    )
    task = make_task(tmp_path / "tasks", "warm", calls)
    (task / "tests/test.sh").write_text(_VERIFY.format(warm=WARM))
    ran = run_trials(launcher(tmp_path / "out"), [spec(task, tmp_path / "out")])
    record = ran["warm__000"]
    assert (record.reward, record.reward_valid, len(record.attempts)) == (1.0, True, 1)
    assert ran.leftovers == []
