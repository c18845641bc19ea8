# SPDX-License-Identifier: Apache-2.0
"""What a verifier does in place of its work, and how its command is known."""

from __future__ import annotations

from typing import Final

_REWARD: Final = "/logs/verifier/reward.json"
SCRIPTS: Final = {
    "hang": "sleep infinity",
    "crash": "echo 'Traceback (most recent call last):' >&2; exit 1",
    "no-reward": "true",
    "killed": f"printf '{{\"reward\": 0.0}}' > {_REWARD}; kill -9 $$",
    "empty": f": > {_REWARD}",
    "broken-json": f"printf '{{\"reward\": ' > {_REWARD}",
    "binary": f"printf '\\x80\\xff' > {_REWARD}",
    "nan": f"printf '{{\"reward\": NaN}}' > {_REWARD}",
    "text": f'printf \'{{"reward": "full"}}\' > {_REWARD}',
    "nameless": f"printf '{{\"score\": 1.0}}' > {_REWARD}",
    "bare": f"printf '1.0' > {_REWARD}",
}
"""What a verifier does in place of its work."""


def verifies(command: str) -> bool:
    """Whether a command is the one by which Harbor runs a task's verifier."""
    return command.startswith(("(/tests/", "/tests/")) or "/tests/test.sh >" in command
