# SPDX-License-Identifier: Apache-2.0
"""Write small traces, read them with the real readers, audit them with the real audit."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from envkit.audit import Report, examine
from envkit.audit.types import Finding

settings.register_profile("audit", deadline=None)  # a busy machine is no finding
settings.load_profile("audit")

type Step = tuple[str, object, object] | list[tuple[str, object, object]] | str


def mcp(text: object) -> list[dict[str, str]]:
    """MCP text content; anything but a string is escaped JSON inside it."""
    return [{"type": "text", "text": text if isinstance(text, str) else json.dumps(text)}]


def shell_failure(stderr: str, code: int) -> list[dict[str, str]]:
    """A failed command as a code execution server reports it."""
    output = f"\nError output:\n{stderr}\n\n\nCommand failed with exit code {code}"
    return mcp({"success": False, "output": output})


class Traces:
    """A directory of runs as OpenAI messages."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def run(
        self,
        task: str,
        steps: list[Step],
        *,
        batch: str = "batch",
        cap: int | None = None,
        reward: float | None = None,
        graded: bool | None = None,
    ) -> Path:
        """Write one run: a step is a call with its result, parallel calls, or a word."""
        directory = self.root / batch / task
        directory.mkdir(parents=True)
        self.write(directory / "trajectory.json", {"messages": messages(steps)})
        if cap is not None:
            config = {"agent_config_values": {"max_steps": cap}}
            self.write(directory / "agent_config.json", config)
        if graded is not None or reward is not None:
            self.write(directory / "verifiers.json", [])
        if reward is not None:
            grades = {"grading_run_status": "completed", "scoring_results": {"final_score": reward}}
            self.write(directory / "grades.json", grades)
        return directory

    def write(self, path: Path, document: object) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(document), "utf-8")
        return path

    def audit(self) -> Report:
        return examine(self.root)

    def findings(self, detector: str) -> list[Finding]:
        return [found for found in self.audit().findings if found.detector == detector]

    def judged(self, detector: str) -> int:
        return self.audit().detectors[detector].judged


def messages(steps: list[Step]) -> list[dict[str, Any]]:
    """The chat messages of a run."""
    said: list[dict[str, Any]] = [{"role": "user", "content": "What is the total?"}]
    for number, step in enumerate(steps):
        if isinstance(step, str):
            said.append({"role": "assistant", "content": step})
            continue
        calls = step if isinstance(step, list) else [step]
        ids = [f"call-{number}-{index}" for index in range(len(calls))]
        said.append(
            {"role": "assistant", "content": "", "tool_calls": list(map(_call, ids, calls))}
        )
        for key, (_, _, result) in zip(ids, calls, strict=True):
            said.append({"role": "tool", "tool_call_id": key, "content": result})
    return said


def _call(key: str, call: tuple[str, object, object]) -> dict[str, Any]:
    name, arguments, _ = call
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return {"id": key, "type": "function", "function": {"name": name, "arguments": text}}


@pytest.fixture
def traces(tmp_path: Path) -> Traces:
    """An empty directory to write runs into."""
    return Traces(tmp_path / "traces")


@pytest.fixture
def say() -> Callable[[object], list[dict[str, str]]]:
    """MCP text content."""
    return mcp


@pytest.fixture
def fail() -> Callable[[str, int], list[dict[str, str]]]:
    """A failed shell command: its stderr and exit code."""
    return shell_failure


@pytest.fixture
def fixtures() -> Path:
    """The hand-written traces."""
    return Path(__file__).resolve().parents[1] / "fixtures" / "traces"
