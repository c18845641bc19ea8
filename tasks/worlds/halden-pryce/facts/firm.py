# SPDX-License-Identifier: Apache-2.0
"""The firm, its practices, and the year that the documents are about."""

from datetime import date

FIRM = "Halden Pryce"
LEGAL_NAME = "Halden Pryce LLP"
DOMAIN = "haldenpryce.example"
ADDRESS = ("14 Cordwain Street", "London EC2N 7QX")
PHONE = "020 7946 0148"

TODAY = date(2026, 1, 12)
"""The world's day: 2025 is closed, its December is not invoiced yet."""
YEAR = 2025
LEDGER_CLOSED = date(2026, 1, 9)
"""The hours ledger is final from this day."""
CUT_OFF = date(2025, 12, 19)
"""Preliminary figures for December were taken on this day; late timesheets came after it."""

PRACTICES = ("Strategy", "Operations", "Digital", "Organisation")
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
"""A table of months has twelve entries, January first; a month's number is its index plus one."""
WORKING_DAYS = (22, 20, 21, 20, 20, 21, 23, 20, 22, 23, 20, 21)
HOURS_A_DAY = 7.5

type Months = tuple[int, int, int, int, int, int, int, int, int, int, int, int]


def standard_hours(month: int) -> float:
    """Contract hours of one fee earner in the month (1 to 12)."""
    return WORKING_DAYS[month - 1] * HOURS_A_DAY
