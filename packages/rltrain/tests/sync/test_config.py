# SPDX-License-Identifier: Apache-2.0
"""The settings of a sync."""

from typing import Any

import pytest

from rltrain.config.read import made
from rltrain.refused import Refused
from rltrain.sync.config import CanaryConfig, SyncConfig


@pytest.mark.parametrize(
    ("table", "named"),
    [
        ({"method": "rdma"}, "method"),
        ({"method": "file"}, "directory"),
        ({"bucket_mib": 0}, "bucket_mib"),
        ({"transfer_s": 0.0}, "transfer_s"),
        ({"canary": {"sequences": 0}}, "sync.canary"),
        ({"canary": {"bound": -1.0}}, "sync.canary"),
    ],
)
def test_what_cannot_be_is_refused_by_name(table: dict[str, Any], named: str) -> None:
    with pytest.raises(Refused, match=named):
        made(SyncConfig, table, "sync")


def test_the_bound_is_what_the_computation_allows_unless_it_is_given() -> None:
    assert CanaryConfig().bound_of("float32") == 1e-4
    assert CanaryConfig().bound_of("bfloat16") == 0.03
    assert CanaryConfig(bound=0.01).bound_of("bfloat16") == 0.01
