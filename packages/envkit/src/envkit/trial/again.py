# SPDX-License-Identifier: Apache-2.0
"""Grade what a trial collected once more: a verifier that answers otherwise is no verifier.

Contract: the first reward, its files and its faults are untouched; what goes wrong in here is the
second grading's. Harbor's own regrade does it: its verifier, in a box of its own.
"""

from __future__ import annotations

import shutil

from harbor.trial.trial import Trial

from envkit.fault import Fault, classify
from envkit.sandbox.ledger import Ledger, aside
from envkit.trial.config import again_config
from envkit.trial.record import Grade
from envkit.trial.request import TrialRequest
from envkit.trial.verdict import faults_of, phase_of_crash, result_of, rewards_of


async def grade_again(request: TrialRequest, book: Ledger) -> Grade:
    """The second grade; never raises for what went wrong in it. ``book`` is charged its usage."""
    config = again_config(request)
    trial: Trial | None = None
    told: list[Fault] = []
    with aside("grade") as own:
        try:
            trial = await Trial.create(config)
            await trial.run()
        except Exception as error:
            told.append(classify(error, phase_of_crash(trial, own)))
    book.usage |= {f"{name} again": usage for name, usage in own.usage.items()}
    shutil.rmtree(config.trials_dir / config.trial_name / "artifacts", ignore_errors=True)
    result = result_of(trial)
    faults = [f for f in faults_of(told, result, own) if not f.policy.reward_valid]
    rewards = {} if faults else rewards_of(result)
    return Grade(reward=rewards.get("reward"), rewards=rewards, fault=faults[0] if faults else None)
