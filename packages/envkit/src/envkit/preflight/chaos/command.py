# SPDX-License-Identifier: Apache-2.0
"""``--chaos RULES`` and ``--score-chaos DIR``, as the command line asks for them."""

from __future__ import annotations

from pathlib import Path

import orjson

from envkit.fault import HarnessError
from envkit.preflight.chaos.choose import DIRECTORY, PLAN_NAME, choose, write_chosen
from envkit.preflight.chaos.log import LOG_NAME
from envkit.preflight.chaos.rules import load_rules
from envkit.preflight.chaos.score import score
from envkit.preflight.chaos.score_json import to_json
from envkit.preflight.chaos.score_text import print_score
from envkit.preflight.consoles import report_console
from envkit.preflight.types import Plan


def arm(rules: Path, plan: Plan, report_dir: Path | None) -> Path:
    """Chooses what strikes the trials of a plan, and leaves it in the report directory.

    The log of an earlier run there goes.

    Raises:
        HarnessError: the rules are wrong, ask for more than there are trials, or nobody said
            where the log of the strikes is to be kept.
    """
    if report_dir is None:
        raise HarnessError("--chaos needs --report DIR: the score is made from what lies there")
    wanted = load_rules(rules, plan.env)
    trials = [(spec.trial_id, spec.task_dir.name) for spec in plan.specs]
    path = report_dir.resolve() / DIRECTORY / PLAN_NAME
    write_chosen(path, choose(wanted, trials, plan.run_token))
    path.with_name(LOG_NAME).unlink(missing_ok=True)
    return path


def score_chaos(directory: Path, *, as_json: bool) -> int:
    """Prints the score of a chaos run; 0 where all of it holds, else 1.

    Raises:
        HarnessError: the directory is none of a chaos run.
    """
    found = score(directory)
    if as_json:
        print(orjson.dumps(to_json(found), option=orjson.OPT_INDENT_2).decode())
    else:
        print_score(found, report_console())
    return 0 if found.ok else 1
