# SPDX-License-Identifier: Apache-2.0
"""Faults on purpose, below everything that judges them; then what was made of each.

expected   the table: what must follow from each kind of fault in each phase (``expected.toml``)
rules      the faults that a user asks for, from a TOML file
choose     which trial each of them strikes: by seed, to the exact count
log        what the injector did, written by it alone
order      a struck attempt gets the layer, and a short budget for what will hang
layer      a Harbor environment between the guard and the provider, which strikes
verifiers  what a verifier does in place of its work
served     the same over the gateways of envkit's own boxes: sockets, signals, limits
local      the same over these boxes: signals, streams, limits
hands      processes and limits, reached from outside
clocks     the clocks that a trial's process reads
wire       the connection between an agent and its gateway
channel    what the fork server answers
streams    files on their way into and out of a box
model      the controls: what the model's own code does
row, score the log joined with the trials' records
score_text, score_json   the confusion matrix
command    ``--chaos`` and ``--score-chaos``

Nothing outside this package reads the log, and nothing in it classifies: `score` compares.
"""
