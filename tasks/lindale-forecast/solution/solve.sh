#!/bin/sh
# The oracle: reads the letter, the rate card and the mails, and edits the workbook in place.
set -eu
exec python3 "$(dirname "$0")/solve.py"
