# SPDX-License-Identifier: Apache-2.0
"""read_text_file and read_image_file."""

import base64
import io
import os
from pathlib import PurePosixPath

from PIL import Image as Picture
from PIL import UnidentifiedImageError
from pydantic import Field

from envkit.servers.arguments import Arguments
from envkit.servers.contract import Done, Image, Json, ToolFault
from envkit.servers.filesystem.entries import SERVER, shown
from envkit.servers.tool import Effect, FileTool, NotAtOnce, World

TEXT_BYTES = 32 << 20
AT_ONCE_BYTES = 1 << 18
AT_ONCE_ENCODINGS = ("utf-8", "utf8", "ascii", "latin-1", "cp1252", "utf-16")
"""Others may take any time: punycode is quadratic."""
IMAGE_FILE_BYTES = 64 << 20
IMAGE_SENT_BYTES = 700_000
"""Base64 of it stays below the 1 MiB that a client buffers for one event."""
IMAGE_SIDES = (2000, 1400, 1000, 700, 400)

READERS = {
    ".pdf": "Use pdf_server_read_pdf_pages.",
    ".xlsx": "Use code_exec with openpyxl or pandas.",
    ".xlsm": "Use code_exec with openpyxl.",
    ".xls": "Use code_exec with pandas.",
    ".docx": "Use code_exec with python-docx.",
    ".pptx": "Use code_exec with python-pptx.",
    ".png": "Use read_image_file.",
    ".jpg": "Use read_image_file.",
    ".jpeg": "Use read_image_file.",
    ".gif": "Use read_image_file.",
    ".webp": "Use read_image_file.",
}


class ReadTextFile(Arguments):
    """Arguments of read_text_file."""

    file_path: str = Field(description="text file, starting with /")
    encoding: str = Field("utf-8", description="text encoding, such as utf-8 or cp1252")
    max_size: int = Field(40_000, ge=1, description="most characters to return")
    offset: int = Field(0, ge=0, description="characters to skip (see `next`)")


class ReadImageFile(Arguments):
    """Arguments of read_image_file."""

    file_path: str = Field(description="image file (png, jpeg, gif, webp, bmp, tiff)")


def read_all(fd: int, path: str, limit: int) -> bytes:
    """The whole file; raises ToolFault when it is larger than `limit` bytes."""
    size = os.fstat(fd).st_size
    if size > limit:
        raise ToolFault(
            "file_too_large",
            f"{path} has {size} bytes; one call reads up to {limit}.",
            field="file_path",
            fix="Read a part of it with code_exec (head, sed, grep).",
        )
    with os.fdopen(os.dup(fd), "rb") as file:
        return file.read(limit + 1)


def read_text_file(world: World, asked: ReadTextFile) -> Done:
    """A page of a text file."""
    with world.root.file(asked.file_path) as fd:
        few = os.fstat(fd).st_size <= AT_ONCE_BYTES
        if world.at_once and not (few and asked.encoding.lower() in AT_ONCE_ENCODINGS):
            raise NotAtOnce
        data = read_all(fd, asked.file_path, TEXT_BYTES)
    text, note = _decode(data, asked)
    size = min(asked.max_size, world.text_chars)
    page = text[asked.offset : asked.offset + size]
    after = asked.offset + len(page)
    if asked.offset and asked.offset >= len(text):
        raise ToolFault(
            "offset_out_of_range",
            f"{asked.file_path} has {len(text)} characters.",
            field="offset",
            fix=f"Valid offsets: 0 to {max(0, len(text) - 1)}.",
        )
    following: dict[str, Json] = {}
    if after < len(text):
        following = {"file_path": asked.file_path, "offset": after, "max_size": asked.max_size}
        note += f"\n[{len(text) - after} more characters: call again with offset={after}]"
    return Done(
        did=f"Read {len(page)} of {len(text)} characters of {shown(asked.file_path)}.",
        text=(page + note) or f"{asked.file_path} is empty.",
        code="ok" if text else "empty_file",
        counts={"characters": len(page), "total": len(text)},
        paths=[shown(asked.file_path)],
        next=following,
    )


def _decode(data: bytes, asked: ReadTextFile) -> tuple[str, str]:
    """The text, and a note when it was read in another encoding than asked."""
    suffix = PurePosixPath(asked.file_path).suffix.lower()
    wide = asked.encoding.lower().replace("_", "-").startswith(("utf-16", "utf-32"))
    if suffix in READERS or (b"\0" in data[:8192] and not wide and data[:2] not in _MARKS):
        raise ToolFault(
            "not_text",
            f"{asked.file_path} is not a text file.",
            field="file_path",
            fix=READERS.get(suffix, "Inspect it with code_exec."),
        )
    encoding = "utf-16" if data[:2] in _MARKS else asked.encoding
    try:
        return data.decode("utf-8-sig" if encoding.lower() == "utf-8" else encoding), ""
    except LookupError:
        message, fix = f"Unknown encoding {asked.encoding!r}.", "Try utf-8, cp1252 or latin-1."
    except UnicodeDecodeError:
        if encoding.lower().replace("_", "-") in ("utf-8", "utf8"):
            return data.decode("cp1252", "replace"), "\n[not valid utf-8: read as cp1252]"
        message, fix = f"{asked.file_path} is not {encoding}.", "Try utf-8, cp1252 or latin-1."
    raise ToolFault("wrong_encoding", message, field="encoding", fix=fix)


_MARKS = (b"\xff\xfe", b"\xfe\xff")


def read_image_file(world: World, asked: ReadImageFile) -> Done:
    """A picture, made smaller when it is too large to send."""
    with world.root.file(asked.file_path) as fd:
        data = read_all(fd, asked.file_path, IMAGE_FILE_BYTES)
    try:
        picture = Picture.open(io.BytesIO(data))
        picture.load()
    except (UnidentifiedImageError, OSError, ValueError, Picture.DecompressionBombError) as error:
        raise ToolFault(
            "not_an_image",
            f"{asked.file_path} could not be read as an image ({error}).",
            field="file_path",
            fix="Check the file with get_file_metadata.",
        ) from None
    sent, note = sendable(picture, data)
    width, height = picture.size
    return Done(
        did=f"Read {shown(asked.file_path)}, {width} x {height} pixels{note}.",
        counts={"width": width, "height": height, "bytes": len(data)},
        paths=[shown(asked.file_path)],
        images=[sent],
    )


def sendable(picture: Picture.Image, data: bytes = b"") -> tuple[Image, str]:
    """The picture in a form that fits one message, and how it was changed."""
    media_type = Picture.MIME.get(picture.format or "", "")
    fits = 0 < len(data) <= IMAGE_SENT_BYTES
    if fits and media_type in ("image/png", "image/jpeg", "image/gif", "image/webp"):
        return Image(data=base64.b64encode(data).decode(), media_type=media_type), ""
    for side in IMAGE_SIDES:
        packed, size = _as_jpeg(picture, side)
        if len(packed) <= IMAGE_SENT_BYTES:
            note = f", sent as JPEG of {size[0]} x {size[1]}"
            return Image(data=base64.b64encode(packed).decode(), media_type="image/jpeg"), note
    raise ToolFault(
        "image_too_large",
        "The image cannot be made small enough to send.",
        fix="Crop it with code_exec (Pillow) and read the part.",
    )


def _as_jpeg(picture: Picture.Image, side: int) -> tuple[bytes, tuple[int, int]]:
    smaller = picture.convert("RGB")
    smaller.thumbnail((side, side))
    packed = io.BytesIO()
    smaller.save(packed, "JPEG", quality=85)
    return packed.getvalue(), smaller.size


TOOLS = (
    FileTool(
        server=SERVER,
        name="read_text_file",
        about="Read a text file (txt, csv, md, json, code, ...), page by page.",
        arguments=ReadTextFile,
        effect=Effect.READ,
        run=read_text_file,
        at_once=True,
    ),
    FileTool(
        server=SERVER,
        name="read_image_file",
        about="Look at an image file.",
        arguments=ReadImageFile,
        effect=Effect.READ,
        run=read_image_file,
        document=True,
    ),
)
