# SPDX-License-Identifier: Apache-2.0
"""Group training forms: the page shows labels, the values are those of its form fields."""

from pathlib import Path

from facts.firm import FIRM
from facts.people import STAFF
from facts.utilisation import TRAINING
from reportlab.lib.pagesizes import A4
from reportlab.pdfgen.canvas import Canvas

_COURSES = {
    "TR-2025-17": ("Negotiation workshop", "4 to 6 November 2025"),
    "TR-2025-19": ("Cloud architecture", "10 to 14 November 2025"),
}


def write(drive: Path) -> None:
    """Write the forms below the drive."""
    for number in TRAINING:
        _form(drive / f"People/Training/{number}.pdf", number)


def _form(path: Path, number: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    canvas = Canvas(str(path), pagesize=A4, invariant=1)
    canvas.setTitle(f"Group training form {number}")
    canvas.setFont("Helvetica-Bold", 15)
    canvas.drawString(60, 770, "Group training form")
    canvas.setFont("Helvetica", 10)
    canvas.drawString(60, 750, f"{FIRM}, People. Hours are those of all participants together.")
    for line, (label, value) in enumerate(_fields(number).items()):
        top = 710 - 34 * line
        canvas.drawString(60, top, label)
        name = label.lower().replace(" ", "_")
        canvas.acroForm.textfield(
            name=name, value=value, tooltip=label, x=210, y=top - 6, width=280, height=20,
            fontName="Helvetica", fontSize=10, borderWidth=0.5, fieldFlags="",
        )  # fmt: skip
    canvas.save()


def _fields(number: str) -> dict[str, str]:
    practice, hours, status = TRAINING[number]
    course, dates = _COURSES[number]
    return {
        "Form number": number,
        "Practice": practice,
        "Course": course,
        "Dates": dates,
        "Total hours": str(hours),
        "Status": status,
        "Decided by": STAFF["philippa.crane"][0],
    }
