# SPDX-License-Identifier: Apache-2.0
"""What importing rltrain may load: it plans and prints on machines that have no GPU stack."""

import subprocess
import sys

PRINT = "print(*{name.split('.')[0] for name in sys.modules})"
HEAVY = {"harbor", "mcp", "torch", "ray", "vllm", "transformers", "pandas", "pyarrow"}


def test_importing_rltrain_and_its_cli_loads_nothing_heavy() -> None:
    command = [sys.executable, "-c", f"import rltrain, rltrain.cli, sys; {PRINT}"]
    loaded = subprocess.run(command, capture_output=True, check=True, text=True, timeout=60)
    assert not HEAVY & set(loaded.stdout.split())
