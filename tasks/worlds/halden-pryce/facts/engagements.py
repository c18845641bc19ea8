# SPDX-License-Identifier: Apache-2.0
"""The ten engagements of 2025: client, leads, terms and their changes, budgeted hours."""

from dataclasses import dataclass
from enum import StrEnum


class Basis(StrEnum):
    """How an engagement is charged."""

    TIME = "time and materials"
    CAPPED = "time and materials, capped"
    FIXED = "fixed fee"


@dataclass(frozen=True, slots=True, kw_only=True)
class Engagement:
    """One piece of work for one client, as its letter has it."""

    code: str
    client: str
    title: str
    practice: str
    partner: str
    manager: str
    """Keys of people: who answers for the work, and who runs it."""
    contact: tuple[str, str]
    """At the client: name and mail address."""
    basis: Basis
    discount_permille: int
    """Off the rate card, as the letter has it; `CHANGES` holds what came later."""
    fee: int = 0
    """The fixed fee, or the cap; 0 where there is neither."""
    instalments: dict[int, int]
    """Of a fixed fee: month to percent."""
    months: tuple[int, int]
    """First and last month of work in 2025."""
    expense_limit_permille: int = 50
    """Expenses charged on are at most this share of an invoice's fees; firm policy says 5 %."""
    budget_hours: dict[str, int]
    """By grade, for all of 2025."""

    @property
    def folder(self) -> str:
        """The engagement's directory: `HP-2501_Tarnbrook_Water`."""
        return f"{self.code}_{self.client.replace(' ', '_')}"


def _hours(*hours: int) -> dict[str, int]:
    grades = ("Partner", "Principal", "Manager", "Consultant", "Analyst")
    return {grade: found for grade, found in zip(grades, hours, strict=True) if found}


_ALL = (
    Engagement(
        code="HP-2501", client="Tarnbrook Water", title="Leakage programme",
        practice="Operations", partner="gareth.holloway", manager="daniel.okoro",
        contact=("Miriam Stokes", "miriam.stokes@tarnbrookwater.example"),
        basis=Basis.TIME, discount_permille=80, instalments={}, months=(4, 12),
        expense_limit_permille=60, budget_hours=_hours(310, 0, 870, 1030, 1060),
    ),
    Engagement(
        code="HP-2502", client="Orsett Retail", title="Store network review",
        practice="Strategy", partner="helena.marsden", manager="priya.nandan",
        contact=("Dominic Farr", "dominic.farr@orsettretail.example"),
        basis=Basis.FIXED, discount_permille=0, fee=398_000, instalments={3: 30, 5: 40, 7: 30},
        months=(2, 7), budget_hours=_hours(270, 0, 500, 700, 640),
    ),
    Engagement(
        code="HP-2503", client="Calderbridge Hospitals", title="Ward staffing model",
        practice="Organisation", partner="judith.aldane", manager="erin.sutcliffe",
        contact=("Oluwaseun Grant", "oluwaseun.grant@calderbridge.example"),
        basis=Basis.TIME, discount_permille=150, instalments={}, months=(1, 12),
        expense_limit_permille=30, budget_hours=_hours(570, 0, 880, 1450, 970),
    ),
    Engagement(
        code="HP-2504", client="Merrowfield Bank", title="Payments platform",
        practice="Digital", partner="marcus.vane", manager="leila.haddad",
        contact=("Anthea Lowell", "anthea.lowell@merrowfield.example"),
        basis=Basis.TIME, discount_permille=75, instalments={}, months=(3, 12),
        budget_hours=_hours(410, 580, 650, 1480, 1120),
    ),
    Engagement(
        code="HP-2505", client="Lindale Foods", title="Plant productivity",
        practice="Operations", partner="gareth.holloway", manager="simone.archer",
        contact=("Jonas Petch", "jonas.petch@lindalefoods.example"),
        basis=Basis.TIME, discount_permille=50, instalments={}, months=(6, 12),
        budget_hours=_hours(0, 510, 630, 770, 530),
    ),
    Engagement(
        code="HP-2506", client="Penhallow Insurance", title="Growth options",
        practice="Strategy", partner="helena.marsden", manager="owen.tregarth",
        contact=("Clare Imrie", "clare.imrie@penhallow.example"),
        basis=Basis.TIME, discount_permille=100, instalments={}, months=(8, 12),
        budget_hours=_hours(0, 410, 450, 540, 600),
    ),
    Engagement(
        code="HP-2507", client="Thornby Rail", title="Depot maintenance",
        practice="Operations", partner="gareth.holloway", manager="ruth.castell",
        contact=("Neil Garside", "neil.garside@thornbyrail.example"),
        basis=Basis.FIXED, discount_permille=0, fee=560_000,
        instalments={3: 25, 6: 25, 9: 25, 12: 25},
        months=(1, 12), budget_hours=_hours(410, 370, 390, 240, 700),
    ),
    Engagement(
        code="HP-2508", client="Skelwith Energy", title="Metering data",
        practice="Digital", partner="marcus.vane", manager="tom.eversley",
        contact=("Farida Noor", "farida.noor@skelwith.example"),
        basis=Basis.CAPPED, discount_permille=60, fee=600_000, instalments={}, months=(5, 12),
        budget_hours=_hours(270, 0, 800, 860, 920),
    ),
    Engagement(
        code="HP-2509", client="Brayfield Council", title="Shared services",
        practice="Organisation", partner="judith.aldane", manager="colin.mayhew",
        contact=("Hester Cole", "hester.cole@brayfield.example"),
        basis=Basis.FIXED, discount_permille=0, fee=580_000, instalments={5: 40, 8: 30, 11: 30},
        months=(3, 11), budget_hours=_hours(270, 910, 0, 1080, 460),
    ),
    Engagement(
        code="HP-2510", client="Quillan Pharma", title="Launch readiness",
        practice="Strategy", partner="helena.marsden", manager="owen.tregarth",
        contact=("Ravi Anand", "ravi.anand@quillan.example"),
        basis=Basis.TIME, discount_permille=50, instalments={}, months=(1, 12),
        budget_hours=_hours(470, 390, 0, 1500, 1590),
    ),
)  # fmt: skip
ENGAGEMENTS: dict[str, Engagement] = {engagement.code: engagement for engagement in _ALL}

CHANGES: dict[str, tuple[int, int]] = {"HP-2504": (9, 180)}
"""Variation letters: first month of the new discount, and the discount in per mille."""


def discount_in(code: str, month: int) -> int:
    """The discount in per mille that holds for work of the month (1 to 12)."""
    since, permille = CHANGES.get(code, (13, 0))
    return permille if month >= since else ENGAGEMENTS[code].discount_permille
