# SPDX-License-Identifier: Apache-2.0
"""What was sent, against what the ranks of an engine say they received, loaded and hold.

Contract: every difference is one line that names its tensor. A tensor that an engine keeps
otherwise than it was sent it, so that nothing can be said of it, is a difference too, unless its
name ends as the configuration allows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

type Report = Mapping[str, Any]
"""Of one rank, as `Ledger.report` makes it."""


def differences(
    sent: Mapping[str, str], reports: Sequence[Report], transformed: tuple[str, ...]
) -> Iterator[str]:
    """What is not as it should be, by the fingerprints that were sent."""
    for rank, report in enumerate(reports):
        yield from _received(sent, report["received"], rank)
    unknown = set[str](sent).intersection(*(report["unknown"] for report in reports))
    for name in sorted(unknown):
        yield f"{name}: the engine has no use for it, and loaded it nowhere"
    for rank, report in enumerate(reports):
        for parameter in report["missing"]:
            yield f"rank {rank}: its {parameter} was sent nothing, or not all of it"
        for name, parameter in report["wrong"]:
            yield f"rank {rank}: {parameter} does not hold the values of {name} that it was sent"
        for name, parameter in report["transformed"]:
            if not name.endswith(transformed or ("\0",)):
                yield (
                    f"rank {rank}: {parameter} keeps {name} in a form that cannot be compared;"
                    " where that is right, name it in sync.transformed"
                )


def _received(sent: Mapping[str, str], received: Mapping[str, str], rank: int) -> Iterator[str]:
    for name, fingerprint in sent.items():
        if name not in received:
            yield f"rank {rank}: {name} did not arrive"
        elif received[name] != fingerprint:
            yield f"rank {rank}: {name} arrived with other values than it was sent with"
    for name in received:
        if name not in sent:
            yield f"rank {rank}: {name} arrived, and was not sent"


def transformed_in(reports: Iterable[Report]) -> int:
    """Tensors of which nothing can be said."""
    return len({name for report in reports for name, _ in report["transformed"]})
