#!/bin/sh
set -eu
cp /filesystem/cards/east.txt /filesystem/answer.txt
sed -n 's/^Word: //p' /filesystem/answer.txt > /logs/artifacts/final_answer.txt
