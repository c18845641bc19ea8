# SPDX-License-Identifier: Apache-2.0
"""A pre-trained instruct model does a task end to end, whatever reward it earns."""

from pathlib import Path

from envkit.agent.tokens import load_template
from envkit.trajectory.types import Kind, Stop

from . import rollouts, smollm2
from .policy import TASKS
from .served import served

LIMITS = {"turns": 3, "tokens_per_turn": 96, "repairs": 2}


def test_a_task_is_run_and_graded(engine_python: Path, tmp_path: Path) -> None:
    model = smollm2.checkpoint(engine_python)
    with served(smollm2.options(model, engine_python), tmp_path / "vllm.log") as engine:
        task = TASKS / "north-depot"
        spec = rollouts.trial("smollm2", task, 0, tmp_path / "out", engine.url, model, LIMITS)
        (done,) = rollouts.run(tmp_path / "out", [spec])
    assert done.record.verdict == "graded"
    assert done.record.reward_valid
    assert done.episode.stop in {Stop.FINAL, Stop.LENGTH, Stop.TURN_CAP}
    template, stream = load_template(model), done.episode.stream
    said = [
        template.decode(stream.token_ids[each.start : each.stop].tolist())
        for each in stream.segments
        if each.kind is Kind.MODEL
    ]
    assert said
    assert all(said)
