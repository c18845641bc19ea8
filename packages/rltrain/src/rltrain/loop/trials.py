# SPDX-License-Identifier: Apache-2.0
"""What a scheduler's attempts are called where trials are run, and back.

Contract: the name of an attempt is the same in every lineage, so what has ended before a kill is
found by it, and is not run again.
"""

from __future__ import annotations

import re
from typing import Final

from rltrain.buffer.types import SampleId

_NAME: Final = re.compile(r"(?P<group>g\d{6,})-(?P<place>\d{2,})-(?P<attempt>\d+)")


def trial_id(sample: SampleId) -> str:
    """Safe as a name of a file."""
    return f"{sample.group}-{sample.place:02}-{sample.attempt}"


def sample_id(trial: str) -> SampleId | None:
    """None for what is no attempt of a scheduler's: a trial of an evaluation."""
    found = _NAME.fullmatch(trial)
    if found is None:
        return None
    return SampleId(group=found["group"], place=int(found["place"]), attempt=int(found["attempt"]))
