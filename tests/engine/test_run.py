# SPDX-License-Identifier: Apache-2.0
"""``envkit run`` with a vLLM that it starts itself, and that ends with it."""

import json
import subprocess
import sys
from pathlib import Path

from envkit.agent.tokens import load_template
from envkit.trajectory.store import Store

from .policy import TASKS

RUN_S = 420
"""The engine's start and three short trials."""
CONTEXT = "--max-model-len=8192"
"""Said with "=", which tells its server from the one that these tests share."""


def test_a_run_starts_an_engine_for_a_model_and_ends_it(
    engine_python: Path, checkpoint: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    words = ["run", TASKS, "--engine", f"vllm:{checkpoint}", "--engine-python", engine_python]
    words += ["--engine-arg=--enforce-eager", f"--engine-arg={CONTEXT}"]
    words += ["--out", out, "--concurrency", 3, "--turns-cap", 6, "--temperature", 0.8, "--json"]
    envkit = Path(sys.executable).with_name("envkit")
    done = subprocess.run(
        [envkit, *map(str, words)], capture_output=True, text=True, timeout=RUN_S, check=False
    )
    assert done.stdout, done.stderr
    told = json.loads(done.stdout)
    assert told["verdict"] == "PASS", (told["why"], done.stderr)
    assert told["trajectories"]["trajectories"] == told["rewards"]["n"] == 3
    rows = list(Store(out / "trajectories"))
    for row in rows:
        assert row.identity.engine.server.startswith("vllm ")
        assert row.identity.sampling.temperature == 0.8
        assert row.identity.sampling.logprobs_mode == "processed"
        copy = load_template(out / "tokenizers" / row.identity.tokenizer_digest)
        assert "card" in copy.decode(row.episode.stream.token_ids.tolist())
    assert _still_served(checkpoint) == []


def _still_served(model: Path) -> list[list[str]]:
    """Command lines of what serves this model for a run."""
    lines = (_words(path) for path in Path("/proc").glob("[0-9]*/cmdline"))
    return [words for words in lines if str(model.resolve()) in words and CONTEXT in words]


def _words(cmdline: Path) -> list[str]:
    try:
        return cmdline.read_bytes().decode(errors="replace").split("\0")
    except OSError:  # it ended meanwhile
        return []
