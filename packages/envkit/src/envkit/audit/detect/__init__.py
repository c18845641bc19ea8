# SPDX-License-Identifier: Apache-2.0
"""The detectors, one file each, in the order they decide: later ones read what earlier ones found.

schema_rejection    a validator refused the arguments
package_discovery   an import failed, and calls went into finding out what there is
command_missing     the shell has no such program
identical_calls     the same call with the same result, again and again
missing_verdict     it was to be graded and nobody did
turn_cap_no_answer  all turns used, nothing handed in
polluted_zero       a zero that a fault plausibly caused
"""

from __future__ import annotations

from typing import Final

from envkit.audit.detect import (
    command_missing,
    identical_calls,
    missing_verdict,
    package_discovery,
    polluted_zero,
    schema_rejection,
    turn_cap_no_answer,
)
from envkit.audit.detect.types import Detector

DETECTORS: Final[tuple[Detector, ...]] = (
    schema_rejection.DETECTOR,
    package_discovery.DETECTOR,
    command_missing.DETECTOR,
    identical_calls.DETECTOR,
    missing_verdict.DETECTOR,
    turn_cap_no_answer.DETECTOR,
    polluted_zero.DETECTOR,
)
