#!/bin/sh
# The oracle: reads ledger, card, register, letters and billing, and writes the document.
set -eu
exec python3 "$(dirname "$0")/solve.py"
