#!/bin/sh
# 1 for the word, 0 for any other answer or none.
set -eu
reward=0.0
if [ "$(cat /logs/artifacts/final_answer.txt 2>/dev/null)" = "birch" ]; then reward=1.0; fi
printf '{"reward": %s}' "$reward" > /logs/verifier/reward.json
