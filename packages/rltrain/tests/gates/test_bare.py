# SPDX-License-Identifier: Apache-2.0
"""``rltrain check`` where there is no torch."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from rltrain.cli import app


def test_without_torch_it_is_one_line_and_exits_2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(sys.modules, "rltrain.gates.check", raising=False)
    monkeypatch.delitem(sys.modules, "rltrain.policy.types", raising=False)
    done = CliRunner().invoke(app, ["check", str(tmp_path), "--policy", str(tmp_path)])
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr == "rltrain: torch is not installed; pip install 'rltrain[torch]'\n"
