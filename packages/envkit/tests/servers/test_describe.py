# SPDX-License-Identifier: Apache-2.0
"""The tools fit their budget in a prompt, and the short names on the command line work."""

import pytest

from envkit.servers import catalog
from envkit.servers.config import SERVERS, GatewayConfig, server_names
from envkit.servers.describe import LIST_TOKENS, describe, tokens


def test_the_list_of_all_tools_fits_its_budget() -> None:
    spent = sum(tokens(tool) for tool in catalog.offered(GatewayConfig()).values())
    assert 1000 < spent <= LIST_TOKENS["individual"]


def test_every_tool_is_described_on_a_line_with_its_cost() -> None:
    lines = describe(GatewayConfig(servers=("pdf_server",))).splitlines()
    assert [line.split()[0] for line in lines[:-1]] == [
        "pdf_server_read_pdf_pages",
        "pdf_server_search_pdf",
        "pdf_server_read_page_as_image",
        "pdf_server_get_pdf_info",
    ]
    assert lines[-1].startswith("4 tools, about ")


def test_short_names_mean_the_full_ids() -> None:
    assert server_names("fs, code,pdf_server,pdf") == SERVERS


def test_an_unknown_server_is_named_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match="unknown server 'word'; known servers: filesystem_server"):
        server_names("pdf,word")
