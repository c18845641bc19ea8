# SPDX-License-Identifier: Apache-2.0
"""Why a check has failed: each cause with its evidence, and those that show before anything is
scored.

Contract: a check fails exactly where it has a cause. A cause says what is wrong and names what
shows it; one of `HOPELESS` makes what would be scored meaningless, so that nothing is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from envkit.trajectory.errors import BrokenInvariant, OtherSchema
from envkit.trajectory.store import Bad
from rltrain.gates.policy import PolicyFacts
from rltrain.gates.survey import RowSeen, Survey, is_row

type Code = Literal[
    "schema",
    "damaged",
    "not_finite",
    "retokenised",
    "tokenizer",
    "vocabulary",
    "policy",
    "distribution",
    "not_measured",
    "shifted",
    "temperature",
    "numerical",
    "other_policy",
]

HOPELESS: Final = frozenset(
    {"schema", "tokenizer", "vocabulary", "policy", "distribution", "not_measured"}
)
SHOWN: Final = 5
"""Rows that are named of many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """One reason."""

    code: Code
    says: str
    """What is wrong, in a line."""
    evidence: tuple[str, ...] = ()
    """What shows it, a line each."""
    todo: str = ""
    """What to look at."""


def of_schema(error: OtherSchema) -> Cause:
    """A store of another major version."""
    return Cause(
        code="schema",
        says=f"the store is {error.theirs}, and this version reads {error.ours}",
        evidence=(str(error),),
        todo="install the envkit that wrote it, or record anew",
    )


def found_before(
    seen: Survey, policy: PolicyFacts, digest: Callable[[], str], version: int, least: int
) -> list[Cause]:
    """Everything that shows without scoring; ``digest`` is of the policy's weights, asked only
    where a row says of which it is."""
    causes = [*_of_bad(seen.bad), *_of_floored(seen.rows)]
    causes += _of_tokenizer(seen.rows, policy)
    causes += _of_ids(seen.rows, policy)
    causes += _of_weights(seen.rows, policy, digest)
    causes += _of_distribution(seen.rows)
    causes += _of_amount(seen, version, least)
    return causes


def _of_bad(bad: Sequence[Bad]) -> Iterator[Cause]:
    """What the store itself finds wrong, by what it means."""
    by: dict[Code, list[Bad]] = {}
    for each in bad:
        by.setdefault(_meaning(each), []).append(each)
    for code, of_it in by.items():
        says, todo = _BAD[code]
        rows = sum(map(is_row, of_it))
        files = len(of_it) - rows
        counts = [_many(rows, "row")] * bool(rows) + [_many(files, "file")] * bool(files)
        yield Cause(
            code=code,
            says=f"{' and '.join(counts)} {says}",
            evidence=_some(str(each) for each in of_it),
            todo=todo,
        )


_BAD: Final[dict[Code, tuple[str, str]]] = {
    "damaged": (
        "of the store damaged",
        "copy the store again from where it was written; every other row can be read",
    ),
    "not_finite": (
        "with recorded log-probs that are none",
        "minus infinity or NaN: look for a mask over logits, or a sampler that rewrites them",
    ),
    "retokenised": (
        "with observations that are not the ids the model was shown",
        "whoever wrote the store encoded text again; store the engine's own ids",
    ),
}


def _meaning(bad: Bad) -> Code:
    if isinstance(bad, BrokenInvariant):
        if bad.field.endswith("observation_sha256"):
            return "retokenised"
        if bad.field == "episode.stream.logprobs":
            return "not_finite"
    return "damaged"


def _of_floored(rows: Sequence[RowSeen]) -> Iterator[Cause]:
    floored = [each for each in rows if each.floored]
    if floored:
        says, todo = _BAD["not_finite"]
        yield Cause(
            code="not_finite",
            says=f"{_many(len(floored), 'row')} {says}",
            evidence=_some(f"{row.trajectory_id}: {row.floored} tokens" for row in floored),
            todo=todo,
        )


def _of_tokenizer(rows: Sequence[RowSeen], policy: PolicyFacts) -> Iterator[Cause]:
    mine = policy.vocabulary.digest
    others = [row for row in rows if row.tokenizer_digest not in ("", mine)]
    if others:
        found = Counter(row.tokenizer_digest for row in others).most_common()
        yield Cause(
            code="tokenizer",
            says=f"{_of(len(others), rows)} were made with another tokenizer than the policy's",
            evidence=(
                f"policy    {mine[:16]}  {policy.path / 'tokenizer.json'}",
                *_some(f"recorded  {digest[:16]}  {_many(n, 'row')}" for digest, n in found),
            ),
            todo="name the policy that sampled, with the tokenizer it sampled with",
        )


def _of_ids(rows: Sequence[RowSeen], policy: PolicyFacts) -> Iterator[Cause]:
    beyond = [row for row in rows if row.highest_id >= policy.size]
    if beyond:
        yield Cause(
            code="vocabulary",
            says=f"{_of(len(beyond), rows)} hold ids that the policy has not: 0 to "
            f"{policy.size - 1} it has",
            evidence=_some(f"{row.trajectory_id}: id {row.highest_id}" for row in beyond),
            todo="name the policy that sampled",
        )


def _of_weights(
    rows: Sequence[RowSeen], policy: PolicyFacts, digest: Callable[[], str]
) -> Iterator[Cause]:
    told = [row for row in rows if row.model_digest]
    others = [row for row in told if row.model_digest != digest()]
    if others:
        found = Counter(row.model_digest for row in others).most_common()
        yield Cause(
            code="policy",
            says=f"the policy is not the version that sampled {_of(len(others), rows)}",
            evidence=(
                f"policy    {digest()[:16]}  {policy.path}",
                *_some(f"recorded  {each[:16]}  {_many(n, 'row')}" for each, n in found),
            ),
            todo="name the checkpoint that the engine served",
        )


def _of_distribution(rows: Sequence[RowSeen]) -> Iterator[Cause]:
    others = [row.other for row in rows if row.other]
    if others:
        yield Cause(
            code="distribution",
            says=f"{_of(len(others), rows)} were sampled from a distribution that no trainer makes",
            evidence=_some(others),
            todo="sample without truncation and penalties, and record log-probs of what was "
            "sampled from",
        )


def _of_amount(seen: Survey, version: int, least: int) -> Iterator[Cause]:
    count = seen.comparable[version]
    if count < least:
        yield Cause(
            code="not_measured",
            says=f"{count:,} comparable tokens of {seen.sampled:,} sampled; {least:,} are needed",
            evidence=tuple(
                f"{n:,} of version {each if each >= 0 else 'unknown'}"
                for each, n in sorted(seen.comparable.items())
            ),
            todo="record more, or name another --version",
        )


def _some(lines: Iterable[str]) -> tuple[str, ...]:
    """The first few, and how many more there are."""
    every = list(lines)
    more = len(every) - SHOWN
    return (*every[:SHOWN], *([f"and {more:,} more"] if more > 0 else []))


def _many(count: int, name: str) -> str:
    return f"{count:,} {name}{'' if count == 1 else 's'}"


def _of(count: int, rows: Sequence[RowSeen]) -> str:
    return f"{count:,} of {_many(len(rows), 'row')}"
