# SPDX-License-Identifier: Apache-2.0
"""write_file, create_folder, copy_file, move_file: nothing is overwritten unless asked."""

import os
from collections.abc import Iterator
from pathlib import PurePosixPath

from pydantic import Field

from envkit.servers.arguments import Arguments
from envkit.servers.contract import Done, ToolFault
from envkit.servers.files import changing, exists, make_folders, place, rename
from envkit.servers.filesystem.entries import SERVER, shown
from envkit.servers.tool import Effect, FileTool, World


class WriteFile(Arguments):
    """Arguments of write_file."""

    file_path: str = Field(description="file to write, starting with /; folders are created")
    content: str = Field(description="the whole text of the file")
    overwrite: bool = Field(False, description="replace the file if it exists")


class CreateFolder(Arguments):
    """Arguments of create_folder."""

    path: str = Field(description="folder to create, starting with /")


class CopyFile(Arguments):
    """Arguments of copy_file."""

    source_path: str = Field(description="file to copy, starting with /")
    destination_path: str = Field(description="where to, starting with /, with the file's name")
    overwrite: bool = Field(False, description="replace the file if it exists")


class MoveFile(Arguments):
    """Arguments of move_file."""

    source_path: str = Field(description="file or folder to move, starting with /")
    destination_path: str = Field(description="where to, starting with /, with the new name")
    overwrite: bool = Field(False, description="replace a file that is there")


def _folders_above(world: World, path: str, field: str) -> int:
    above = PurePosixPath(world.root.relative(path, field)).parent
    return make_folders(world.root, str(above), world.starting, field)


def write_file(world: World, asked: WriteFile) -> Done:
    """Put text into a file."""
    made = _folders_above(world, asked.file_path, "file_path")
    try:
        data = asked.content.encode()
    except UnicodeEncodeError as error:
        raise ToolFault(
            "invalid_argument",
            f"`content` holds a character that no file can hold ({error.reason}).",
            field="content",
            fix="Remove unpaired surrogates.",
        ) from None
    placed = place(
        world.root, asked.file_path, [data], overwrite=asked.overwrite, starting=world.starting
    )
    verb = "Replaced" if placed.replaced else "Created"
    return Done(
        did=f"{verb} {shown(asked.file_path)} with {placed.size} bytes.",
        counts={"bytes": placed.size, "folders_created": made},
        paths=[shown(asked.file_path)],
    )


def create_folder(world: World, asked: CreateFolder) -> Done:
    """Create a folder and those above it."""
    made = make_folders(world.root, asked.path, world.starting, "path")
    path = shown(world.root.relative(asked.path).removeprefix("."))
    did = f"Created {path} ({made} folder(s))." if made else f"{path} was already there."
    return Done(
        did=did,
        code="ok" if made else "already_there",
        counts={"folders_created": made},
        paths=[path],
    )


def _chunks(fd: int) -> Iterator[bytes]:
    while chunk := os.read(fd, 1 << 20):
        yield chunk


def copy_file(world: World, asked: CopyFile) -> Done:
    """Copy one file."""
    with world.root.file(asked.source_path, field="source_path") as fd:
        made = _folders_above(world, asked.destination_path, "destination_path")
        placed = place(
            world.root,
            asked.destination_path,
            _chunks(fd),
            overwrite=asked.overwrite,
            starting=world.starting,
            field="destination_path",
            mode=os.fstat(fd).st_mode & 0o777,
        )
    return Done(
        did=f"Copied {shown(asked.source_path)} to {shown(asked.destination_path)}.",
        counts={"bytes": placed.size, "folders_created": made},
        paths=[shown(asked.destination_path)],
    )


def move_file(world: World, asked: MoveFile) -> Done:
    """Move or rename one file or folder."""
    os.close(world.root.open(asked.source_path, os.O_PATH, field="source_path"))
    made = _folders_above(world, asked.destination_path, "destination_path")
    with (
        world.root.parent(asked.source_path, field="source_path") as (from_fd, old),
        world.root.parent(asked.destination_path, field="destination_path") as (to_fd, new),
        changing(asked.destination_path, "destination_path"),
    ):
        world.starting()
        try:
            rename(from_fd, old, to_fd, new, replace=asked.overwrite)
        except FileExistsError:
            raise exists(asked.destination_path, "destination_path") from None
    return Done(
        did=f"Moved {shown(asked.source_path)} to {shown(asked.destination_path)}.",
        counts={"folders_created": made},
        paths=[shown(asked.source_path), shown(asked.destination_path)],
    )


TOOLS = (
    FileTool(
        server=SERVER,
        name="write_file",
        about="Write a text file; refuses to replace one unless overwrite is true.",
        arguments=WriteFile,
        effect=Effect.CHANGE,
        run=write_file,
    ),
    FileTool(
        server=SERVER,
        name="create_folder",
        about="Create a folder and the folders above it.",
        arguments=CreateFolder,
        effect=Effect.ADD,
        run=create_folder,
    ),
    FileTool(
        server=SERVER,
        name="copy_file",
        about="Copy a file; refuses to replace one unless overwrite is true.",
        arguments=CopyFile,
        effect=Effect.CHANGE,
        run=copy_file,
    ),
    FileTool(
        server=SERVER,
        name="move_file",
        about="Move or rename a file or folder; refuses to replace unless overwrite is true.",
        arguments=MoveFile,
        effect=Effect.CHANGE,
        run=move_file,
    ),
)
