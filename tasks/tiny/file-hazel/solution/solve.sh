#!/bin/sh
# The oracle: does the task in the agent's box, from the cards as they are.
set -eu
files=${FILESYSTEM_ROOT:-/filesystem} logs=${LOGS_ROOT:-/logs}
field() { sed -n "s/^$1: //p" "$files/cards/$2.txt"; }
card=hazel
cp "$files/cards/$card.txt" "$files/tray/charlie.txt"
printf charlie > "$logs/artifacts/final_answer.txt"
