# SPDX-License-Identifier: Apache-2.0
"""The year 2026: the extension of the work for Lindale Foods, and what was agreed for it."""

EXTENDED = "HP-2505"
EXTENSION_HOURS: dict[str, tuple[int, int, int, int]] = {
    "Principal": (120, 110, 90, 80),
    "Manager": (230, 240, 210, 160),
    "Consultant": (380, 395, 340, 250),
    "Analyst": (290, 300, 260, 180),
}
"""Hours by grade and quarter of 2026, from the extension letter."""
FIRST_DISCOUNT_PERMILLE = 60
"""As the first mail of 5 January 2026 has it: a slip."""
DISCOUNT_PERMILLE = 75
"""As agreed, by the correction of 8 January 2026. The letter leaves the discount to this."""
EXPECTED_FEES_2026: dict[str, tuple[int, int, int, int]] = {
    "HP-2503": (182_000, 175_000, 168_000, 160_000),
    "HP-2504": (246_000, 251_000, 198_000, 120_000),
    "HP-2506": (128_000, 96_000, 0, 0),
    "HP-2508": (88_000, 0, 0, 0),
    "HP-2510": (201_000, 204_000, 150_000, 150_000),
}
"""What the partners expect of the other engagements that go on, by quarter."""
