# SPDX-License-Identifier: Apache-2.0
"""Whether trainer and trials make the same ids of the same words.

Contract: digests of tokenizer and chat template, taken from the policy's directory by each
environment with its own libraries, are the same, or nothing is sampled. Engines are given ids.
"""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from envkit.fault import TemplateRefused
from rltrain.refused import Refused

ASK_S: Final = 120.0
"""An interpreter that imports tokenizers from a cold disk, on a loaded machine."""
SCRIPT: Final = """\
import json, sys
from pathlib import Path
from envkit.agent.tokens.template import load_template
found = load_template(Path(sys.argv[1]))
print(json.dumps({"tokenizer": found.tokenizer_digest, "template": found.template_digest}))
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rendering:
    """Two digests."""

    tokenizer: str
    template: str

    @property
    def line(self) -> str:
        """For a person."""
        return f"tokenizer {self.tokenizer[:12]}, template {self.template[:12]}"


def of_trainer(policy: Path) -> Rendering:
    """As this environment has it.

    Raises:
        Refused: the policy's template cannot be used.
    """
    from envkit.agent.tokens.template import load_template

    try:
        found = load_template(policy)
    except TemplateRefused as error:
        raise Refused(f"policy.path: {error}") from error
    return Rendering(tokenizer=found.tokenizer_digest, template=found.template_digest)


def of_environment(python: Path, policy: Path) -> Rendering:
    """As the environment has it in which trials are executed.

    Raises:
        Refused: envkit is not in it, or it does not take the policy's template.
    """
    where = f"rollout.environment_python: {python}"
    try:
        done = subprocess.run(
            [str(python), "-P", "-c", SCRIPT, str(policy)],
            capture_output=True,
            text=True,
            timeout=ASK_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Refused(f"{where}: {error}; name an interpreter that has envkit[run]") from error
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no word"])[-1]
        raise Refused(f"{where}: cannot read the policy's template: {last}; install envkit[run]")
    return Rendering(**json.loads(done.stdout.splitlines()[-1]))  # others may print as they start


def expect_same(trainer: Rendering, trials: Rendering) -> None:
    """Go on.

    Raises:
        Refused: what is trained on would not be what was sampled.
    """
    for name in ("tokenizer", "template"):
        ours, theirs = getattr(trainer, name), getattr(trials, name)
        if ours != theirs:
            raise Refused(
                f"rollout.environment_python: its {name} of the policy is {theirs[:12]}, the"
                f" trainer's is {ours[:12]}; install the same tokenizers and envkit in both"
            )
