#!/bin/sh
# The oracle: reads the letter and the ledger, and edits the deck in place.
set -eu
exec python3 "$(dirname "$0")/solve.py"
