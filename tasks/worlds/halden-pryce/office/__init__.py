# SPDX-License-Identifier: Apache-2.0
"""The workbooks and decks of the shared drive.

register    the ten engagements as their letters have them
billing     the invoices of the year, by engagement and month
expenses    claims, and their share of the fees
timesheets  hours as known on the cut-off day: preliminary
forecast    the year 2026, to be finished
capacity    hours that the practices had in the fourth quarter
tracker     budget and cost of one engagement
dashboard   the board's figures
board_pack, steering, growth  the decks
"""

from pathlib import Path

from office import (
    billing,
    board_pack,
    capacity,
    dashboard,
    expenses,
    forecast,
    growth,
    register,
    steering,
    timesheets,
    tracker,
)


def write(drive: Path) -> None:
    """Write every workbook and deck below the drive."""
    finance, board = drive / "Finance", drive / "Board"
    register.write(finance / "engagement_register.xlsx")
    billing.write(finance / "billing_2025.xlsx")
    expenses.write(finance / "expenses_2025.xlsx")
    timesheets.write(finance / "timesheets_2025_preliminary.xlsx")
    forecast.write(finance / "forecast_2026.xlsx")
    capacity.write(drive / "People/capacity_2025.xlsx")
    tracker.write(drive / "Engagements/HP-2504_Merrowfield_Bank/budget_tracker.xlsx")
    dashboard.write(board / "kpi_dashboard.xlsx")
    board_pack.write(board / "board_pack_2026-01.pptx")
    steering.write(drive / "Engagements/HP-2508_Skelwith_Energy/steering_pack_2025-12.pptx")
    growth.write(drive / "Engagements/HP-2506_Penhallow_Insurance/growth_options_interim.pptx")
