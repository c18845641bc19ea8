# SPDX-License-Identifier: Apache-2.0
"""What stands at the head of a segment: which rows it holds, where, and what they came to.

Contract: an index is believed only where its own checksum holds, over the names and types of the
columns too. Arrow keeps it twice, in the schema at the head of the file and in that of the footer,
so one damaged copy costs nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import orjson

from envkit.trajectory.arrow import Schema, pa
from envkit.trajectory.crc import crc32
from envkit.trajectory.errors import Damaged, OtherSchema
from envkit.trajectory.head import Head
from envkit.trajectory.plain import from_plain

MAJOR: Final = 1
MINOR: Final = 0
NAME: Final = "envkit.trajectory"
SCHEMA: Final = f"{NAME}/{MAJOR}.{MINOR}"
"""Files of this major are read whatever their minor."""

_SCHEMA_KEY, _INDEX_KEY, _CHECK_KEY = b"envkit.schema", b"envkit.index", b"envkit.check"


class Index(NamedTuple):
    """The rows of a segment, a list of each fact; their messages follow each other in the file."""

    heads: Mapping[str, Sequence[Any]]
    """By field of `Head`: made heads of where one is asked for, as most are not."""
    lengths: Sequence[int]
    """Bytes of each row's message."""
    crc32s: Sequence[int]
    """Of all bytes before each row, and of all: so neighbours are proven as fast as one row, and
    each also without the others."""
    checksums: Sequence[int]
    """Each row's column of this name: equal where two rows hold the same."""

    def head(self, number: int) -> Head:
        """What can be known of a row without reading it."""
        return from_plain(Head, {name: values[number] for name, values in self.heads.items()})


def with_index(schema: Schema, index: Index, version: str = SCHEMA) -> Schema:
    """A schema that carries an index."""
    text = orjson.dumps(index._asdict())
    check = f"{_check(schema, version.encode(), text):08x}".encode()
    return schema.with_metadata(
        {_SCHEMA_KEY: version.encode(), _INDEX_KEY: text, _CHECK_KEY: check}
    )


def read_index(schema: Schema, file: str) -> tuple[str, Index]:
    """The schema's version and the index that it carries.

    Raises:
        Damaged: it carries none, or not the one that was written.
        OtherSchema: another major version wrote it.
    """
    metadata: dict[bytes, bytes] = schema.metadata or {}
    try:
        version, text, check = (metadata[key] for key in (_SCHEMA_KEY, _INDEX_KEY, _CHECK_KEY))
    except KeyError as error:
        raise Damaged(file, "", "carries no index of trajectories") from error
    if f"{_check(schema, version, text):08x}".encode() != check:
        raise Damaged(file, "", "its index is not the one that was written")
    name, _, number = version.decode().partition("/")
    if name != NAME or number.partition(".")[0] != str(MAJOR):
        raise OtherSchema(file, version.decode(), SCHEMA)
    found = orjson.loads(text)
    return version.decode(), Index(*(found[name] for name in Index._fields))


def _check(schema: Schema, version: bytes, text: bytes) -> int:
    columns = ",".join(f"{field.name}:{_type(field.type)}" for field in schema)
    return crc32(b"\0".join([version, columns.encode(), text]))


def _type(kind: Any) -> str:
    """A type by a name that does not depend on how a version of Arrow spells it."""
    if pa.types.is_map(kind):
        return f"map({_type(kind.key_type)},{_type(kind.item_type)})"
    if pa.types.is_list(kind):
        return f"list({_type(kind.value_type)})"
    if pa.types.is_struct(kind):
        inner = (kind.field(number) for number in range(kind.num_fields))
        return f"struct({','.join(f'{each.name}:{_type(each.type)}' for each in inner)})"
    return str(kind)
