# SPDX-License-Identifier: Apache-2.0
"""Judge the answer text: three criteria, each 0 or 1, and their mean as the reward.

Exits non-zero and writes no reward where it cannot judge: the artifacts did not arrive, or its
own check on a known answer fails. An absent, empty or unreadable answer is judged, as wrong.
"""

import json
import os
import sys
from pathlib import Path

from claims import names_note, plain, states
from numbers_in_text import is_amount, is_percent

LOGS = Path(os.environ.get("LOGS_ROOT", "/logs"))
EBITDA = 8_094 + 6_748 + 1_265 - 2_150
NET_REVENUE = 96_315 - 5_427
MARGIN = 100 * EBITDA / NET_REVENUE
MAX_BYTES = 64 * 1024
KNOWN_GOOD = "Adjusted EBITDA: 13,957\nAdjusted EBITDA margin: 15.4 %\nFinance note: FN-2025-07"


def judge(answer: str) -> dict[str, int]:
    """Criterion by criterion, 1 where it holds."""
    text = plain(answer)
    return {
        "adjusted_ebitda": int(states(text, "amount", lambda found: is_amount(found, EBITDA))),
        "margin": int(states(text, "margin", lambda found: is_percent(found, MARGIN))),
        "finance_note": int(names_note(text, 2025, 7)),
    }


def read_answer(artifacts: Path) -> str:
    """The answer's text, its first 64 KiB; empty where the agent gave none."""
    path = artifacts / "final_answer.txt"
    if not path.is_file():
        return ""
    with path.open("rb") as file:
        return file.read(MAX_BYTES).decode("utf-8", errors="replace")


def write_reward(criteria: dict[str, int], verifier: Path) -> None:
    """The reward file, complete or absent."""
    rewards = {"reward": sum(criteria.values()) / len(criteria), **criteria}
    verifier.mkdir(parents=True, exist_ok=True)
    draft = verifier / "reward.json.tmp"
    draft.write_text(json.dumps(rewards), encoding="utf-8")
    draft.replace(verifier / "reward.json")


def main() -> None:
    """Check the judge, judge, write."""
    if not all(judge(KNOWN_GOOD).values()) or any(judge("").values()):
        sys.exit("verifier: its own check failed, so it cannot judge")
    artifacts = LOGS / "artifacts"
    if not artifacts.is_dir():
        sys.exit(f"verifier: {artifacts} did not arrive, so there is nothing to judge")
    criteria = judge(read_answer(artifacts))
    print(json.dumps(criteria))
    write_reward(criteria, LOGS / "verifier")


if __name__ == "__main__":
    main()
