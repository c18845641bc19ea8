# SPDX-License-Identifier: Apache-2.0
"""An office file that does not tell when it was saved.

The libraries stamp the time of saving on every part of the archive and into `docProps/core.xml`,
also of a workbook that is embedded behind a chart. `settled` puts the world's own time there.
"""

import io
import re
import zipfile
from datetime import datetime

_EPOCH = (1980, 1, 1, 0, 0, 0)
_CORE = "docProps/core.xml"
_STAMP = re.compile(rb"(<dcterms:(created|modified)[^>]*>)[^<]*")
_ZIP = b"PK\x03\x04"


def settled(archive: bytes, saved: datetime) -> bytes:
    """The archive with the same parts in the same order, as if saved at `saved` (UTC)."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(archive)) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            entry = zipfile.ZipInfo(name, date_time=_EPOCH)
            entry.compress_type, entry.create_system = zipfile.ZIP_DEFLATED, 3
            entry.external_attr = 0o644 << 16
            new.writestr(entry, _part(name, old.read(name), saved))
    return out.getvalue()


def _part(name: str, content: bytes, saved: datetime) -> bytes:
    if content.startswith(_ZIP):
        return settled(content, saved)
    if name != _CORE:
        return content
    return _STAMP.sub(rb"\g<1>" + saved.strftime("%Y-%m-%dT%H:%M:%SZ").encode(), content)
