# SPDX-License-Identifier: Apache-2.0
"""``rltrain check`` passes what a real engine sampled, and names what was done to it since."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from envkit.agent.engine.serve import Served
from envkit.agent.tokens.vocabulary import Vocabulary
from envkit.trajectory.store import Store
from envkit.trajectory.types import Trajectory
from envkit.trajectory.weights import weights_digest

from .policy import ROOT, TASKS, run

SAMPLES = 14
"""Of each of three tasks: enough tokens, and some turns that are not what their text is made to."""
RUN_S = 300
CHECK_S = 300


def _spoiled() -> Any:
    """What the trainer's own tests spoil trajectories with."""
    place = ROOT / "packages/rltrain/tests/gates/spoiled.py"
    spec = importlib.util.spec_from_file_location("spoiled_for_engine", place)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


spoiled = _spoiled()


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """What the engine sampled, and by which policy."""

    python: Path
    policy: Path
    store: Path
    rows: list[Trajectory]

    def check(self, store: Path, policy: Path | None = None) -> tuple[int, dict[str, Any]]:
        """The exit code of the program, and what it printed."""
        words = ["check", store, "--policy", policy or self.policy, "--json"]
        done = subprocess.run(
            [self.python.with_name("rltrain"), *map(str, words)],
            capture_output=True,
            text=True,
            timeout=CHECK_S,
            check=False,
        )
        assert done.stdout, done.stderr
        return done.returncode, json.loads(done.stdout)


@pytest.fixture(scope="module")
def ran(
    engine: Served,
    engine_python: Path,
    checkpoint: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Ran:
    out = tmp_path_factory.mktemp("check") / "out"
    asked = ("--engine", engine.url, "--tokenizer", checkpoint, "--temperature", 1)
    more = ("--samples", SAMPLES, "--concurrency", 4, "--turns-cap", 8, "--out", out)
    run(RUN_S, Path(sys.executable).with_name("envkit"), "run", TASKS, *asked, *more)
    store = out / "trajectories"
    return Ran(python=engine_python, policy=checkpoint, store=store, rows=list(Store(store)))


def test_what_the_engine_sampled_passes(ran: Ran) -> None:
    code, told = ran.check(ran.store)
    assert (code, told["verdict"], told["causes"]) == (0, "PASS", [])
    assert told["figures"]["tokens"] >= 2048
    assert told["figures"]["mean"] < 1e-4, told["figures"]
    assert told["notes"] == []
    digest = weights_digest(ran.policy)
    assert {row.identity.engine.model_digest for row in ran.rows} == {digest}
    print("check:", json.dumps(told["figures"]))


def shifted(ran: Ran, place: Path) -> tuple[Path, Path]:
    return spoiled.write(place / "s", [spoiled.shifted(row, 1) for row in ran.rows]), ran.policy


def wrong_temperature(ran: Ran, place: Path) -> tuple[Path, Path]:
    rows = [spoiled.recorded_at(row, 0.7) for row in ran.rows]
    return spoiled.write(place / "s", rows), ran.policy


def retokenised(ran: Ran, place: Path) -> tuple[Path, Path]:
    words = Vocabulary((ran.policy / "tokenizer.json").read_text("utf-8"))
    rows = [spoiled.retokenised(row, words) for row in ran.rows]
    return spoiled.write(place / "s", rows), ran.policy


def other_tokenizer(ran: Ran, place: Path) -> tuple[Path, Path]:
    policy = Path(shutil.copytree(ran.policy, place / "policy"))
    told = json.loads((policy / "tokenizer.json").read_text("utf-8"))
    ids = told["model"]["vocab"]
    one, other = sorted(ids, key=ids.__getitem__)[300:302]
    ids[one], ids[other] = ids[other], ids[one]
    (policy / "tokenizer.json").write_text(json.dumps(told), "utf-8")
    return ran.store, policy


def corrupt_row(ran: Ran, place: Path) -> tuple[Path, Path]:
    store = spoiled.write(place / "s", ran.rows)
    spoiled.flip_a_byte(store)
    return store, ran.policy


def other_weights(ran: Ran, place: Path) -> tuple[Path, Path]:
    policy = Path(shutil.copytree(ran.policy, place / "policy"))
    file = policy / "model.safetensors"
    data = bytearray(file.read_bytes())
    data[-2] ^= 1
    file.chmod(0o600)
    file.write_bytes(data)
    return ran.store, policy


def too_few(ran: Ran, place: Path) -> tuple[Path, Path]:
    return spoiled.write(place / "s", ran.rows[:10]), ran.policy


SPOILT: dict[str, tuple[Callable[[Ran, Path], tuple[Path, Path]], str]] = {
    "shifted": (shifted, "stand one token later than the tokens they are of"),
    "temperature": (wrong_temperature, "are of temperature 1, recorded as 0.7"),
    "retokenised": (retokenised, "their text was tokenised again"),
    "tokenizer": (other_tokenizer, "were made with another tokenizer than the policy's"),
    "damaged": (corrupt_row, "1 row of the store damaged"),
    "policy": (other_weights, "the policy is not the version that sampled"),
    "not_measured": (too_few, "2,048 are needed"),
}


@pytest.mark.parametrize("code", SPOILT)
def test_what_was_done_to_it_is_named(ran: Ran, tmp_path: Path, code: str) -> None:
    spoil, said = SPOILT[code]
    exit_code, told = ran.check(*spoil(ran, tmp_path))
    assert exit_code == 1
    assert [each["code"] for each in told["causes"]] == [code], told["causes"]
    assert said in told["causes"][0]["says"]
    assert told["verdict"] == ("NOT MEASURED" if code == "not_measured" else "FAIL")
