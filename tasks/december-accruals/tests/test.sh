#!/bin/sh
# Writes /logs/verifier/reward.json, or no reward at all and a non-zero exit where it cannot judge.
set -eu
exec python3 -B "$(dirname "$0")/verify.py"
