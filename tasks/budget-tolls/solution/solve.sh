#!/bin/sh
# The oracle: reads the tariff, the routes and the contract, and edits the workbook in place.
set -eu
exec python3 "$(dirname "$0")/solve.py"
