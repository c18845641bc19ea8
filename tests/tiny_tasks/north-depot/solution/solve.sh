#!/bin/sh
set -eu
cp /filesystem/cards/north.txt /filesystem/answer.txt
sed -n 's/^Word: //p' /filesystem/answer.txt > /logs/artifacts/final_answer.txt
