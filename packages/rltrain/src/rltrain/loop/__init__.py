# SPDX-License-Identifier: Apache-2.0
"""A run, from its settings to its last checkpoint.

config       how long it goes on and what it keeps
settings     all tables of a recipe
types        what a run is given, who hears of it, how it ended
directory    what it was asked and what it is of, on disk; one process at a time
origin       the policy it began with, which must stay as it was
prepare      from a command line to a run; everything that can be refused is refused here
checkpoint   what outlives a kill
figures      the numbers of a step
numbers      where they go
seconds      where a step's time goes
stopping     Ctrl-C and SIGTERM, heard at the next step
fit          a run, as the story of its steps
run          the same by all ranks, one of which holds the directory
launch       several ranks on one machine
export       a checkpoint for others
"""
