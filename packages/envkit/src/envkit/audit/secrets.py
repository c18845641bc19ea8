# SPDX-License-Identifier: Apache-2.0
"""Replace secrets by ``<secret>`` before anything of a trace is shown.

Contract: `mask` is idempotent and never lengthens a secret into view. It runs before a text is
cut, because half a key no longer looks like one. What it knows: provider keys by their public
prefixes, bearer and basic credentials, JWTs, private keys (also without their end), passwords in
URLs, signatures in query strings, and values assigned to names such as ``api_key`` or ``password``.
"""

from __future__ import annotations

import re
from typing import Final

MASK: Final = "<secret>"

_PREFIXED: Final = "|".join(
    (
        r"sk-(?:ant-|proj-|or-v1-|live-)?[A-Za-z0-9_\-]{16,}",
        r"(?:sk|pk|rk)_(?:live|test)_[A-Za-z0-9]{10,}",
        r"gh[pousr]_[A-Za-z0-9]{20,}",
        r"github_pat_[A-Za-z0-9_]{20,}",
        r"glpat-[A-Za-z0-9_\-]{16,}",
        r"xox[abeoprs]-[A-Za-z0-9\-]{10,}",
        r"(?:AKIA|ASIA|AROA|AIDA)[A-Z0-9]{16}",
        r"AIza[A-Za-z0-9_\-]{30,}",
        r"ya29\.[A-Za-z0-9_\-]{20,}",
        r"hf_[A-Za-z0-9]{20,}",
        r"npm_[A-Za-z0-9]{20,}",
        r"pypi-[A-Za-z0-9_\-]{20,}",
        r"(?:ak|as)-[A-Za-z0-9]{20,}",
        r"xai-[A-Za-z0-9]{20,}",
        r"gsk_[A-Za-z0-9]{20,}",
        r"dop_v1_[a-f0-9]{20,}",
        r"eyJ[A-Za-z0-9_\-]{6,}\.[A-Za-z0-9_\-]{4,}(?:\.[A-Za-z0-9_\-]*)?",
    )
)
_NAMES: Final = (
    r"(?:api|access|secret|private|auth|session|signing|encryption)"
    r"[_\- ]?(?:key|token|secret)(?:[_\-]id)?"
    r"|aws_secret_access_key|client[_\-]secret|passw(?:or)?d|passphrase|pwd|secret|token"
    r"|x-amz-(?:signature|security-token|credential)|sig(?:nature)?"
)
_KEY_BLOCK: Final = re.compile(
    r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----.*?"
    r"(?:-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|\Z)",
    re.DOTALL,
)
_CREDENTIAL: Final = re.compile(
    r"(bearer\s+|authorization\\?[\"']?\s{0,3}[:=]\s{0,3}\\?[\"']?basic\s+)(?!<secret>)"
    r"(?:(?<=basic )|(?=[^\s\"'\\]*\d|[^\s\"'\\]{20}))"
    r"[A-Za-z0-9+/=_.~\-]{8,}",
    re.IGNORECASE,
)
"""A bearer's token has a digit or is long; "bearer securities" has none and is short."""
_URL: Final = re.compile(
    r"([A-Za-z][A-Za-z0-9+.\-]{1,20}://[^\s/:@'\"<>]{0,200}:)[^\s/@'\"<>]{1,400}@"
)
_TOKEN: Final = re.compile(rf"(?<![A-Za-z0-9_])(?:{_PREFIXED})")
_ASSIGNED: Final = re.compile(
    rf"((?<![A-Za-z])(?:[A-Za-z0-9]{{1,40}}[_\-]){{0,4}}(?:{_NAMES})\\?[\"']?\s{{0,3}}(?:=>|[:=])\s{{0,3}}\\?[\"']?)"
    r"(?!<secret>|null\b|none\b|true\b|false\b|bearer\b|basic\b)[^\s\"'\\,;&<>(){}\[\]]{6,}",
    re.IGNORECASE,
)


def mask(text: str) -> str:
    """``text`` with every secret replaced."""
    text = _KEY_BLOCK.sub(MASK, text)
    text = _URL.sub(rf"\1{MASK}@", text)
    text = _CREDENTIAL.sub(rf"\1{MASK}", text)
    text = _TOKEN.sub(MASK, text)
    return _ASSIGNED.sub(rf"\1{MASK}", text)
