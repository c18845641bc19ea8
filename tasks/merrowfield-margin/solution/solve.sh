#!/bin/sh
# The oracle: reads letters, cards, cost rates and ledger as an agent would, and works the answer out.
set -eu
exec python3 "$(dirname "$0")/solve.py"
