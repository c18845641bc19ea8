# SPDX-License-Identifier: Apache-2.0
"""A policy of a million parameters that calls tools: what tests and first runs sample from.

transcripts  what replays of recorded calls left behind: instruction, tools, calls, results
tokenizer    a byte-level tokenizer of those texts, with a family's special tokens and template
mistakes     transcripts with values of others in them, and calls left out
examples     transcripts as ids, as the agent loop would have seen them
train        a small model from its configuration, and a minute of supervised steps
make         all of it: a Hugging Face checkpoint in a directory

Contract: it is taught the form of tool calls and not the answers, so it succeeds as often as a
guess among the answers does; with mistakes it is taught the tasks as well, and succeeds the more
often the fewer they are. The same transcripts, family, seed and machine give the same weights.
"""
