# SPDX-License-Identifier: Apache-2.0
"""What importing envkit loads, seen from a fresh interpreter."""

import subprocess
import sys

import pytest

HEAVY = {"harbor", "mcp", "torch", "ray", "vllm", "pandas", "numpy", "pyarrow", "openpyxl"}
LIGHT = (
    *("envkit.cli", "envkit.cli_audit", "envkit.audit", "envkit.task", "envkit.fault"),
    *("envkit.preflight.quarantine", "envkit.trajectory"),
)
WITHOUT_ARROW = ("episode_file", "invariants", "atif", "messages")
"""What a trial imports of `envkit.trajectory`: pyarrow starts threads, and forks need one alone."""


def modules_after(code: str) -> set[str]:
    """The top-level modules a fresh interpreter holds after ``code``."""
    script = f"{code}\nimport sys; print(*{{name.split('.')[0] for name in sys.modules}})"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, check=True, text=True, timeout=60
    )
    return set(done.stdout.splitlines()[-1].split())


def test_importing_envkit_loads_only_the_standard_library() -> None:
    ours = modules_after("import envkit") - modules_after("pass")
    assert ours - set(sys.stdlib_module_names) == {"envkit"}


@pytest.mark.parametrize("module", LIGHT)
def test_the_light_modules_load_nothing_heavy(module: str) -> None:
    assert not HEAVY & modules_after(f"import {module}")


@pytest.mark.parametrize("module", WITHOUT_ARROW)
def test_a_trial_writes_its_episode_without_arrow(module: str) -> None:
    loaded = modules_after(f"import envkit.trajectory.{module}")
    assert not (HEAVY - {"numpy"}) & loaded
