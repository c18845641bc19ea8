# SPDX-License-Identifier: Apache-2.0
"""Judge the fees, staff cost and margin of HP-2504: three criteria, each 0 or 1."""

from answer import Marks, claim, is_close, run

FEES, COST = 940_953.42, 442_746.0
MARGIN = 100 * (FEES - COST) / FEES
RIGHT = "Fees: £940,953.42\nStaff cost: £442,746\nMargin: 52.9 %"


def judge(answer: str) -> Marks:
    """Criterion by criterion, 1 where it holds."""
    return {
        "fees": int(is_close(claim(answer, "Fees"), FEES, 1.0)),
        "staff_cost": int(is_close(claim(answer, "Staff cost"), COST, 1.0)),
        "margin": int(is_close(claim(answer, "Margin"), MARGIN, 0.0505)),
    }


if __name__ == "__main__":
    run(judge, RIGHT)
