# SPDX-License-Identifier: Apache-2.0
"""A scanned page: a picture of the signed resolution, with no text in it.

The page is set as a document, rendered, turned a little, made grainy and stored as one image. What
it says stands in the minutes of the same day too.
"""

import io
import random
from pathlib import Path
from tempfile import TemporaryDirectory

import pypdfium2 as pdfium
from facts.firm import FIRM
from facts.people import STAFF
from PIL import Image
from reportlab.lib.pagesizes import A4
from reportlab.lib.utils import ImageReader
from reportlab.pdfgen.canvas import Canvas

from paper.board import RESOLUTION
from paper.sheet import body, gap, heading, one_column

DOTS_PER_INCH, TILT_DEGREES, GRAIN, QUALITY, SEED = 120, 0.7, 0.12, 60, 16


def write(drive: Path) -> None:
    """Write the scan below the drive."""
    path = drive / "Board/resolution_2025-09-16_signed.pdf"
    path.parent.mkdir(parents=True, exist_ok=True)
    canvas = Canvas(str(path), pagesize=A4, invariant=1)
    canvas.setTitle("Scan")
    canvas.drawImage(ImageReader(io.BytesIO(_photograph())), 0, 0, *A4)
    canvas.save()


def _photograph() -> bytes:
    page = _grainy(_rendered().rotate(TILT_DEGREES, Image.Resampling.BICUBIC, fillcolor=250))
    picture = io.BytesIO()
    page.save(picture, "JPEG", quality=QUALITY)
    return picture.getvalue()


def _rendered() -> Image.Image:
    with TemporaryDirectory() as folder:
        path = Path(folder, "resolution.pdf")
        one_column(path, "Resolution", _parts())
        with pdfium.PdfDocument(path) as document:
            return document[0].render(scale=DOTS_PER_INCH / 72).to_pil().convert("L")


def _grainy(page: Image.Image) -> Image.Image:
    noise = random.Random(SEED).randbytes(page.width * page.height)
    return Image.blend(page, Image.frombytes("L", page.size, noise), GRAIN)


def _parts() -> list:
    signed = [body(f"<i>{name}</i><br/>{title}") for name, title in list(STAFF.values())[:2]]
    return [
        heading("Resolution of the board"),
        body(f"{FIRM}, 16 September 2025"),
        gap(),
        body(RESOLUTION),
        gap(40),
        *signed,
    ]
