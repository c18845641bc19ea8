# SPDX-License-Identifier: Apache-2.0
"""Real trials of a world whose documents were laid out beforehand."""

import json
import secrets
from hashlib import sha256
from pathlib import Path

import pytest

from envkit.sandbox.availability import availability
from envkit.sandbox.prepare import prepare
from envkit.servers.pdf.library import SMALLEST
from envkit.servers.pdf.shelf import pack

from .tiny import ANSWER, DONE, launcher, make_task, run, run_trials, spec

pytestmark = pytest.mark.integration

WORLD = 'name = "tiny"\nservers = ["filesystem_server", "code_execution_server", "pdf_server"]\n'
READ = {"tool": "pdf_server_read_pdf_pages", "arguments": {"file_path": "/warm.pdf"}}
CHANGE = run("sed -i 's/(warm)/(cold)/' /filesystem/warm.pdf")
LOOK = run("ls -a / | grep -c parsed || true")


@pytest.fixture
def task(tmp_path: Path) -> Path:
    if not availability().ok:
        pytest.skip(f"missing tool: {availability().line()}")
    world = tmp_path / "tasks" / "worlds" / "tiny"
    (world / "filesystem").mkdir(parents=True)
    (world / "world.toml").write_text(WORLD)
    (world / "filesystem" / "warm.pdf").write_bytes(SMALLEST)
    (world / "filesystem" / "unique.txt").write_text(secrets.token_hex(16))
    return make_task(tmp_path / "tasks", calls=[READ, LOOK, CHANGE, READ, DONE, ANSWER])


def _texts(task: Path, out: Path) -> list[str]:
    ran = run_trials(launcher(out), [spec(task, out, "t0")])
    assert (ran["t0"].reward, ran["t0"].reward_valid) == (1.0, True), ran["t0"].fault
    calls = (ran["t0"].trial_dir / "agent" / "calls.jsonl").read_text().splitlines()
    return [json.loads(line)["text"] for line in calls]


def test_a_gateway_answers_from_the_shelf_until_the_document_changes(
    task: Path, tmp_path: Path
) -> None:
    shelf = prepare(task).parsed
    assert shelf is not None
    (record,) = [path for path in shelf.iterdir() if path.suffix != ".json"]
    before, seen, _, after, _ = _texts(task, tmp_path / "out")
    assert before.endswith("\nwarm")
    assert seen.strip().startswith("0"), "the agent's box sees what was parsed"
    assert after.endswith("\ncold")
    record.chmod(0o644)
    record.write_bytes(pack(["text\0from the shelf"]))
    inventory = shelf / "inventory.json"
    inventory.write_text(json.dumps({record.name: sha256(record.read_bytes()).hexdigest()}))
    before, _, _, after, _ = _texts(task, tmp_path / "again")
    assert before.endswith("\nfrom the shelf")
    assert after.endswith("\ncold")
