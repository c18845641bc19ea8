#!/bin/sh
# The oracle: reads invoices, letter, cards and ledger as an agent would, and compares them.
set -eu
exec python3 "$(dirname "$0")/solve.py"
