#!/bin/sh
# The oracle: does the task in the agent's box, from the cards as they are.
set -eu
files=${FILESYSTEM_ROOT:-/filesystem} logs=${LOGS_ROOT:-/logs}
field() { sed -n "s/^$1: //p" "$files/cards/$2.txt"; }
card=walnut
card=$(field Next "$card")
cp "$files/cards/$card.txt" "$files/tray/echo.txt"
printf '%s, %s' "$(field Keeper "$card")" "$(field Colour "$card")" > "$logs/artifacts/final_answer.txt"
