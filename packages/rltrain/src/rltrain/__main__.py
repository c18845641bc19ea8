# SPDX-License-Identifier: Apache-2.0
"""``python -m rltrain``, and ``torchrun … -m rltrain`` with a rank in each process."""

from rltrain.cli import main

if __name__ == "__main__":
    main()
