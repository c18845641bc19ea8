# SPDX-License-Identifier: Apache-2.0
"""An audit of a trial of every stop, budget and fault: what it finds is what a table says.

The table, ``tests/audit/model_trials.toml``, is written from what happens in them. The same is
asked of their trial directories and of the rows of a store that they are joined into.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

import pytest
from harbor.models.trial.config import TrialConfig

from envkit.agent.loaded import voice
from envkit.audit import examine
from envkit.audit.read import read
from envkit.audit.types import Run
from envkit.show.source import rows, source_of
from envkit.trajectory.types import Trajectory
from envkit.trajectory.writer import Writer

from .conftest import PlayOnce
from .scripted_model import Played
from .test_model_agent import PLAYS, STRUCK
from .test_model_traps import PLAYS as TRAPS
from .tiny import lend_parts

pytestmark = pytest.mark.integration

TABLE = tomllib.loads((Path(__file__).parents[1] / "audit/model_trials.toml").read_text())
GRADES_AFTER_FAULTS = "override_error_policy" in TrialConfig.model_fields
FOUND = {**TABLE["stops"], **TABLE["calls"], **TABLE["faults"]}
FOUND |= {} if GRADES_AFTER_FAULTS else TABLE["ungraded"]


@dataclass(frozen=True, kw_only=True)
class Audited:
    """What an audit says of trials, by the names of their plays."""

    found: dict[str, list[str]]
    runs: dict[str, Run]
    unreadable: int


def audited(root: Path) -> Audited:
    report = examine(root)
    found = dict[str, list[str]]()
    for each in report.findings:
        found.setdefault(play_of(each.run), []).append(f"{each.detector} {each.owner.value}")
    runs = {play_of(each.id): each for each in read(root) if isinstance(each, Run)}
    return Audited(found=found, runs=runs, unreadable=len(report.unreadable))


def play_of(run: str) -> str:
    return run.rsplit("/", 1)[-1].split(".")[0]


@pytest.fixture(scope="module")
def trials(play_once: PlayOnce) -> list[dict[str, Played]]:
    return [play_once("played", PLAYS), play_once("traps", TRAPS)]


@pytest.fixture(scope="module")
def struck(reach: None, play_once: PlayOnce) -> Audited:
    with pytest.MonkeyPatch.context() as patch:
        lend_parts(patch)
        return audited(out(play_once("struck", STRUCK, env="faulty_box:FaultyEnvironment")))


@pytest.fixture(scope="module")
def directories(trials: list[dict[str, Played]]) -> Audited:
    first, second = (audited(out(played)) for played in trials)
    return Audited(
        found=first.found | {n: each for n, each in second.found.items() if n not in PLAYS},
        runs=second.runs | first.runs,
        unreadable=first.unreadable + second.unreadable,
    )


@pytest.fixture(scope="module")
def store(trials: list[dict[str, Played]], tmp_path_factory: pytest.TempPathFactory) -> Audited:
    run = tmp_path_factory.mktemp("run")
    with Writer.open(run / "trajectories") as writer:
        for played in trials:
            for row in stored(played):
                if row.identity.trajectory_id not in writer:
                    writer.append(row)
            for mine in played.values():
                template = voice(mine.model).template
                template.save(run / "tokenizers" / template.tokenizer_digest)
    return audited(run)


def out(played: dict[str, Played]) -> Path:
    """Directory of all the trials of a run."""
    return next(iter(played.values())).directory.parent


def stored(played: dict[str, Played]) -> list[Trajectory]:
    """Their last attempts, joined with their records."""
    source = source_of(out(played))
    assert source is not None
    found = list(rows(source))
    good = [row for row in found if isinstance(row, Trajectory)]
    assert len(good) == len(found) == len(played)
    return good


def test_the_table_has_every_kind_of_trial() -> None:
    assert set(FOUND) == {*PLAYS, *STRUCK, *TRAPS}
    assert {*TABLE["answered"]["yes"], *TABLE["answered"]["no"]} == set(FOUND)
    assert set(TABLE["ungraded"]) <= set(TABLE["faults"])


@pytest.mark.parametrize("where", ["directories", "store"])
@pytest.mark.parametrize("name", [*PLAYS, *(name for name in TRAPS if name not in PLAYS)])
def test_an_audit_finds_what_happened_and_nothing_else(
    request: pytest.FixtureRequest, where: str, name: str
) -> None:
    seen: Audited = request.getfixturevalue(where)
    assert seen.unreadable == 0
    agrees(seen, name)


@pytest.mark.parametrize("name", STRUCK)
def test_an_audit_finds_what_was_struck_and_nothing_else(struck: Audited, name: str) -> None:
    agrees(struck, name)


def agrees(seen: Audited, name: str) -> None:
    """What was found in one trial is what the table has of it."""
    assert seen.found.get(name, []) == FOUND[name]
    run = seen.runs[name]
    assert run.answered is (name in TABLE["answered"]["yes"])
    assert sum(call.failure is not None for call in run.calls) == TABLE["failed"].get(name, 0)
