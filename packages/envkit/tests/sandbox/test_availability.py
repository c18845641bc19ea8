# SPDX-License-Identifier: Apache-2.0
"""What keeps boxes from being made is named beside what can be done about it."""

import pytest

from envkit.sandbox import mounts
from envkit.sandbox.availability import judge_gateways

LACKS = "mount_setattr: Function not implemented"


def test_the_first_call_that_a_kernel_lacks_is_named() -> None:
    assert mounts.refused({"no_such_call": 99_999}) == "no_such_call: Function not implemented"


def test_a_kernel_that_has_all_refuses_none(root: object) -> None:
    assert mounts.refused() == ""


@pytest.mark.parametrize(
    ("refused", "release", "fix"),
    [
        (LACKS, "5.10.0-28-amd64", "boot Linux 5.12 or later"),
        (LACKS, "4.4.302+", "boot Linux 5.12 or later"),
        (LACKS, "5.15.0", "filter"),
        ("clone3: Operation not permitted", "6.8.0-45-generic", "filter"),
    ],
)
def test_a_refusal_tells_an_old_kernel_from_a_filter(refused: str, release: str, fix: str) -> None:
    here = judge_gateways(refused, release)
    assert not here.ok
    assert fix in here.fix
    assert refused in here.line()
    assert release in here.line()
    assert "\n" not in here.line()


def test_nothing_refused_is_no_problem() -> None:
    assert judge_gateways("", "6.1.0").ok
