# SPDX-License-Identifier: Apache-2.0
"""The one set of facts that every document of the world is written from.

Money is in thousands of euro where a name does not say otherwise. The documents agree with each
other, except where one of them is marked as a superseded draft.
"""

FIRM = "Brackwater Freight"
SEGMENTS = ("Road", "Rail", "Warehousing", "Central")

RESULTS: dict[str, tuple[int, int, int, int]] = {
    "Revenue": (212_480, 96_315, 58_740, 0),
    "of which fuel surcharges passed through": (18_960, 5_427, 0, 0),
    "Operating profit": (14_872, 8_094, 6_531, -4_118),
    "Depreciation and amortisation": (11_236, 6_748, 3_905, 412),
    "Restructuring costs": (1_940, 1_265, 0, 350),
    "Share-based payments": (615, 388, 204, 1_120),
    "Gains on disposal": (870, 2_150, 0, 0),
}
"""Full-year 2025, a value for each segment; `Gains on disposal` are part of operating profit."""

QUARTERLY_REVENUE: dict[str, tuple[int, int, int, int]] = {
    "Road": (51_320, 53_905, 52_770, 54_485),
    "Rail": (22_840, 24_210, 24_655, 24_610),
    "Warehousing": (14_190, 14_560, 14_905, 15_085),
}

POLICY = "FN-2025-07"
DRAFT_POLICY = "FN-2025-04"

VEHICLES = ("Rigid 18 t", "Articulated 40 t", "Road train 60 t")
TARIFF_2025 = (0.142, 0.207, 0.268)
"""Toll in euro a kilometre, by vehicle class."""
TARIFF_2026 = (0.151, 0.223, 0.291)

PLANNED_KM: dict[str, tuple[int, int, int]] = {
    "Nordhaven": (1_284_000, 3_910_000, 640_000),
    "Eastmere": (965_000, 2_745_000, 0),
    "Kilbrook": (1_742_000, 1_388_000, 0),
    "Sandwick": (418_000, 2_206_000, 915_000),
    "Torvale": (1_103_000, 1_874_000, 372_000),
    "Westerfall": (687_000, 3_052_000, 1_240_000),
}
"""Kilometres planned for 2026, by depot and vehicle class."""
WITHDRAWN_KM: dict[str, tuple[int, int, int]] = {
    "Eastmere": (0, 310_000, 0),
    "Torvale": (0, 0, 96_000),
}
"""Kilometres of routes that were planned and then withdrawn."""

DIESEL_2025 = 1.395
DIESEL_2026 = 1.482
"""Contract price in euro a litre, without value added tax."""
SPOT = {"2025-09": 1.418, "2025-10": 1.426, "2025-11": 1.439, "2025-12": 1.431}
LITRES_PER_100_KM = 31.4
DRIVER_COST_PER_KM = 0.512
OTHER_COSTS_2025 = 8_400
COST_INFLATION = 0.024


def group(row: str) -> int:
    """The group's value of a results row: the sum over its segments."""
    return sum(RESULTS[row])


def planned_thousand_km(depot: str) -> float:
    """Thousands of kilometres planned for the depot, over all vehicle classes."""
    return sum(PLANNED_KM[depot]) / 1_000
