# SPDX-License-Identifier: Apache-2.0
# pyright: basic, reportMissingImports=false
"""Whether a trainer makes the log-probs that an engine recorded.

Contract: it passes only where nothing is wrong with the store and the mean of \\|l - μ\\| over at
least ``least`` comparable tokens is at most ``limit``. What fails has a cause, named with its
evidence. Nothing is loaded to score what cannot be compared.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from envkit.trajectory.errors import OtherSchema
from envkit.trajectory.store import Store
from envkit.trajectory.weights import weights_digest
from rltrain.batch.source import opened
from rltrain.gates.causes import HOPELESS, found_before, of_schema
from rltrain.gates.diagnose import Case, diagnose, not_finite
from rltrain.gates.figures import Figures, by_turn, histogram, worst
from rltrain.gates.options import Options
from rltrain.gates.policy import PolicyFacts
from rltrain.gates.report import Report, Scale
from rltrain.gates.survey import Survey, Told, survey
from rltrain.gates.taken import Compared, Row, finite, of_all
from rltrain.policy.types import Backend
from rltrain.refused import Refused

type Progress = Callable[[str], Told]
"""Names what is done next; what it gives is told how far that is."""


def silent(what: str) -> Told:
    """Shows nothing."""
    return lambda done, of: None


def check(options: Options, progress: Progress = silent) -> Report:
    """Read, score, and where they differ say why.

    Raises:
        Refused: there is no store or no policy, or it cannot be loaded.
        EnvkitError: a tokenizer or a file of weights cannot be read.
    """
    if options.tokens < options.least:
        raise Refused(f"--tokens {options.tokens}: is below --least {options.least}; raise it")
    policy = PolicyFacts.read(options.policy)
    try:
        store = opened(options.store)
    except OtherSchema as other:
        return Report(options=options, causes=(of_schema(other),))
    seen = survey(store, progress("reading the store"))
    report = _before(options, seen, policy, progress)
    if any(each.code in HOPELESS for each in report.causes):
        return report
    return _scored(report, store, seen, policy, progress)


def _before(options: Options, seen: Survey, policy: PolicyFacts, progress: Progress) -> Report:
    """What shows without the model."""
    comparable = seen.comparable
    version = max(comparable, key=lambda each: (comparable[each], each), default=-1)
    version = version if options.version is None else options.version
    digest = functools.cache(lambda: weights_digest(policy.path, progress("reading the weights")))
    return Report(
        options=options,
        causes=tuple(found_before(seen, policy, digest, version, options.least)),
        notes=tuple(_notes(options, seen)),
        scale=Scale(
            rows=len(seen.rows),
            sampled=seen.sampled,
            comparable=dict(sorted(comparable.items())),
            version=version,
        ),
    )


def _notes(options: Options, seen: Survey) -> Iterator[str]:
    with_tokens = [row for row in seen.rows if row.sampled]
    if len(seen.comparable) > 1 and options.version is None:
        yield "several versions of the weights sampled; the one of most tokens is checked"
    if silent := sum(not row.model_digest for row in with_tokens):
        yield f"{silent:,} rows do not say which weights sampled them"
    if silent := sum(not row.tokenizer_digest for row in with_tokens):
        yield f"{silent:,} rows do not say which tokenizer they were made with"
    if stale := seen.sampled - seen.comparable.total():
        yield f"{stale:,} tokens attended to older weights, or have no log-prob; left out"


def _scored(
    report: Report, store: Store, seen: Survey, policy: PolicyFacts, progress: Progress
) -> Report:
    """With what the trainer makes of it."""
    from rltrain.gates.score import trainer

    options, scale = report.options, report.scale
    assert scale is not None
    names = seen.chosen(scale.version, options.tokens)
    rows = [Row.of(store.read(name), scale.version) for name in names]
    told = progress("loading the policy")
    with trainer(policy.path, options.dtype) as backend:
        told(1, 1)
        found = _compared(backend, rows, options, progress("scoring"))
        cause = not_finite(found)
        found = [kept for each in found if (kept := finite(each)).row.sample.mask.any()]
        figures = Figures.of(*of_all(found)) if found else None
        if figures and not cause:
            case = Case(
                rows=found,
                figures=figures,
                limit=options.limit,
                words=policy.vocabulary,
                rescore=functools.partial(_again, backend, options),
            )
            told = progress("looking for the cause")
            cause = diagnose(case)
            told(1, 1)
    return replace(
        report,
        causes=(*report.causes, *([cause] if cause else [])),
        scale=replace(scale, scored_rows=len(rows)),
        figures=figures,
        histogram=histogram(found),
        turns=by_turn(found),
        worst=worst(found, policy.vocabulary.decode),
    )


def _compared(
    backend: Backend, rows: Sequence[Row], options: Options, told: Told
) -> list[Compared]:
    from rltrain.gates.score import compared

    return compared(backend, rows, cap=options.micro_batch_tokens, told=told)


def _again(
    backend: Backend, options: Options, rows: Sequence[Row], temperature: float
) -> list[Compared]:
    from rltrain.gates.score import at_temperature

    warmed = at_temperature(rows, temperature)
    return _compared(backend, warmed, options, lambda done, of: None)
