# SPDX-License-Identifier: Apache-2.0
"""Fill the budget workbook from the tariff, the planned routes and the fuel contract."""

import os
from pathlib import Path

import docx
import openpyxl
import pandas as pd
import pdfplumber

FILES = Path(os.environ.get("FILESYSTEM_ROOT", "/filesystem"))
WORKBOOK = FILES / "planning/budget_2026.xlsx"
YEAR = "2026"


def tariff() -> dict[str, float]:
    """Euro a kilometre by vehicle class, from the column of the budget's year."""
    with pdfplumber.open(FILES / "planning/toll_tariff_2026.pdf") as pdf:
        header, *rows = pdf.pages[0].extract_table()
    (column,) = [number for number, title in enumerate(header) if title.startswith(YEAR)]
    return {row[0]: float(row[column]) for row in rows}


def tolls() -> dict[str, float]:
    """Tolls by depot in thousands of euro, over the routes that will be driven."""
    routes = pd.read_csv(FILES / "operations/route_km_2026.csv")
    driven = routes[routes["status"] == "planned"]
    cost = driven["km"] * driven["vehicle_class"].map(tariff())
    return (cost.groupby(driven["depot"]).sum() / 1_000).to_dict()


def diesel_price() -> float:
    """The signed price, from the table in the contract."""
    table = docx.Document(str(FILES / "operations/fuel_contract_2026.docx")).tables[0]
    rows = [[cell.text for cell in row.cells] for row in table.rows]
    (price,) = [float(row[1]) for row in rows if row[0] == YEAR and row[2] == "signed"]
    return price


def main() -> None:
    """Type the inputs over, add the total, save in place."""
    book = openpyxl.load_workbook(WORKBOOK)
    book["Assumptions"]["B4"] = diesel_price()
    depots, by_depot = book["Depots"], tolls()
    for row in range(4, 10):
        depots[f"E{row}"] = round(by_depot[depots[f"A{row}"].value])
    depots["E10"] = "=SUM(E4:E9)"
    book.save(WORKBOOK)


if __name__ == "__main__":
    main()
