# SPDX-License-Identifier: Apache-2.0
"""A run as a person reads it: which trajectories it has, and one of them turn by turn.

In the order data flows:

source     what a path holds: a run, a store, a segment, trials, one trial
texts      ids to text by the run's own copies of its tokenizers
story      one trajectory as turns, with where its tokens and seconds went
parts      what a story's turn is made of
rows       the list of a run, and its summary
facts, facts_turns   the words of a story's head and of its turns, the same on every medium
plain      text from outside that can do nothing but be read
terminal   on a terminal
page, page_turns, page.css   as one page that needs no network and no script
as_json    for other programs
"""
