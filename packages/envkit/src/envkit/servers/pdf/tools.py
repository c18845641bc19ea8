# SPDX-License-Identifier: Apache-2.0
"""The tools of the `pdf_server`, in the order they are listed."""

from envkit.servers.pdf.looking import IMAGE, INFO
from envkit.servers.pdf.reading import TOOL as READ
from envkit.servers.pdf.search import TOOL as SEARCH

TOOLS = (READ, SEARCH, IMAGE, INFO)
