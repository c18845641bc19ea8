# SPDX-License-Identifier: Apache-2.0
"""``rltrain tiny-policy`` says in one line what it cannot do, and leaves nothing then."""

import json
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from rltrain.cli import app

from .recordings import write_recordings


def refused(tmp_path: Path, *arguments: str) -> str:
    before = sorted(tmp_path.rglob("*"))
    result = CliRunner().invoke(app, ["tiny-policy", *arguments])
    assert result.exit_code == 2
    assert sorted(tmp_path.rglob("*")) == before
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    return line


def test_an_unknown_family_is_refused_with_those_there_are(tmp_path: Path) -> None:
    recorded = str(write_recordings(tmp_path / "recorded"))
    out = str(tmp_path / "policy")
    line = refused(tmp_path, out, "--transcripts", recorded, "--family", "qwen9")
    assert line.startswith("rltrain: --family qwen9: no such family; there are glm, ")


def test_a_directory_that_is_there_is_not_overwritten(tmp_path: Path) -> None:
    recorded = str(write_recordings(tmp_path / "recorded"))
    line = refused(tmp_path, recorded, "--transcripts", recorded)
    assert line == f"rltrain: {recorded}: is there already; name a directory that is not"


def test_a_directory_that_cannot_be_made_is_refused_by_its_name(tmp_path: Path) -> None:
    recorded = str(write_recordings(tmp_path / "recorded"))
    (tmp_path / "file").write_text("", "utf-8")
    line = refused(tmp_path, str(tmp_path / "file/policy"), "--transcripts", recorded)
    assert line.startswith(f"rltrain: {tmp_path / 'file'}/.policy.")
    assert line.endswith(": Not a directory; name an OUT that can be made")


def test_transcripts_that_are_not_there_are_refused(tmp_path: Path) -> None:
    line = refused(tmp_path, str(tmp_path / "policy"), "--transcripts", str(tmp_path / "none"))
    assert line == f"rltrain: --transcripts {tmp_path / 'none'}: is no directory"


def test_without_torch_the_line_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "rltrain.tiny.train", raising=False)
    monkeypatch.setitem(sys.modules, "torch", None)
    recorded = str(write_recordings(tmp_path / "recorded"))
    line = refused(tmp_path, str(tmp_path / "policy"), "--transcripts", recorded)
    assert line == "rltrain: torch is not installed; pip install 'rltrain[torch]'"


@pytest.mark.parametrize("share", ["-0.1", "1.5"])
def test_a_share_of_mistakes_that_is_none_is_refused(tmp_path: Path, share: str) -> None:
    recorded = str(write_recordings(tmp_path / "recorded"))
    arguments = [str(tmp_path / "policy"), "--transcripts", recorded, "--mistakes", share]
    result = CliRunner().invoke(app, ["tiny-policy", *arguments])
    assert result.exit_code == 2
    assert "--mistakes" in result.stderr
    assert not (tmp_path / "policy").exists()


@pytest.mark.trainer
def test_json_is_one_document_that_says_what_was_made(tmp_path: Path) -> None:
    recorded, out = str(write_recordings(tmp_path / "recorded")), str(tmp_path / "policy")
    arguments = [out, "--transcripts", recorded, "--steps", "1", "--json"]
    result = CliRunner().invoke(app, ["tiny-policy", *arguments])
    assert result.exit_code == 0
    document = json.loads(result.stdout)
    assert document["directory"] == out
    assert document["steps"] == 1
