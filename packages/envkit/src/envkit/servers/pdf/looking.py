# SPDX-License-Identifier: Apache-2.0
"""read_page_as_image and get_pdf_info: what a page looks like and what a file says of itself."""

from pydantic import Field

from envkit.servers.arguments import Arguments
from envkit.servers.contract import Done
from envkit.servers.filesystem.reading import sendable
from envkit.servers.pdf.document import SERVER, open_pdf, page_number
from envkit.servers.pdf.library import facts, outline, render_page
from envkit.servers.tool import Effect, FileTool, World

IMAGE_SIDE = 1600
OUTLINE_LINES = 80


class PageAsImage(Arguments):
    """Arguments of read_page_as_image."""

    file_path: str = Field(description="PDF file, starting with /")
    page_number: int = Field(description="page number from 1")
    password: str = Field("", description="password of a protected file")


class PdfInfo(Arguments):
    """Arguments of get_pdf_info."""

    file_path: str = Field(description="PDF file, starting with /")
    password: str = Field("", description="password of a protected file")


def read_page_as_image(world: World, asked: PageAsImage) -> Done:
    """One page as a picture."""
    with open_pdf(world, asked.file_path, asked.password) as document:
        number = page_number(document, asked.page_number, "page_number")
        image, _ = sendable(render_page(document.raw, number - 1, IMAGE_SIDE))
        return Done(
            did=f"Rendered page {number} of {document.pages} of {document.path}.",
            counts={"pages": document.pages},
            paths=[document.path],
            images=[image],
        )


def get_pdf_info(world: World, asked: PdfInfo) -> Done:
    """Page count, metadata and outline."""
    with open_pdf(world, asked.file_path, asked.password) as document:
        marks = outline(document.raw)
        lines = [f"Pages: {document.pages}"]
        lines += [f"{name}: {value}" for name, value in facts(document.raw).items()]
        if marks:
            lines.append("Outline:")
        lines += [
            f"{'  ' * level}- {title} (page {page or 'unknown'})"
            for level, title, page in marks[:OUTLINE_LINES]
        ]
        if len(marks) > OUTLINE_LINES:
            lines.append(f"[{len(marks) - OUTLINE_LINES} more entries]")
        return Done(
            did=f"Read the metadata of {document.path}.",
            text="\n".join(lines),
            counts={"pages": document.pages, "outline": len(marks)},
            paths=[document.path],
        )


IMAGE = FileTool(
    server=SERVER,
    name="read_page_as_image",
    about="Look at one page of a PDF as an image (scans, charts, signatures).",
    arguments=PageAsImage,
    effect=Effect.READ,
    run=read_page_as_image,
    document=True,
)

INFO = FileTool(
    server=SERVER,
    name="get_pdf_info",
    about="Page count, title, author and outline of a PDF.",
    arguments=PdfInfo,
    effect=Effect.READ,
    run=get_pdf_info,
    document=True,
)
