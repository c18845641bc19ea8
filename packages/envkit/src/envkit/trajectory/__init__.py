# SPDX-License-Identifier: Apache-2.0
"""The contract with trainers: what was sampled, what was observed, what it was worth.

types         the carriers: one `Trajectory` is one row
errors        what can be wrong with a row or a file
digest        digests of token ids
weights       the digest of a model's weights
invariants    what must hold of a row, checked on write and on read
plain         records as plain data and back
episode_file  an episode in a file of its own, from the trial's process to the writer
arrow         Arrow, by names that a type checker can read
head          what can be known of a row without reading it
columns       a row as Arrow columns
index         what stands at the head of a segment
segment       one file: written once, damage known by row
ahead         the next rows read while this one is used
store         a directory of segments, read
writer        the one process that adds to it, durable within a second
compact       small segments merged into large ones
text          a trajectory as text, turn by turn
atif          a trajectory in ATIF, for viewers and auditors
messages      conversations as OpenAI messages, out of trajectories and from anywhere
"""
