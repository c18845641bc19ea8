# SPDX-License-Identifier: Apache-2.0
"""The trainer's weights into running engines, and whether they are there.

In the order of the flow:

version      which weights: a lineage, and the steps taken in it
config       how they travel, how long each part may take, and what is then compared
types        engines, and what became of each
errors       what a sync ends in that is not right
serve        what an engine has to be started with
names        from the trainer's tensors to those that an engine's checkpoint has
fingerprint  one number of a tensor's values
buckets      many tensors as few messages
group        the processes that a message goes to
control      single operations of an engine, each with its deadline
links        the three ways to an engine: gloo, NCCL, files
verify       what was sent, against what engines say they received and hold
sender       `open_sender`: all of it in order, to all engines side by side
probes       what is scored twice after each sync
canary       the scores of engines against the trainer's
extension    the part that runs inside an engine
receiver     its weight-transfer engine
ledger       where what it loads comes to lie, and whether it lies there afterwards
held         what of a module is computed with

Contract: an HTTP 200 proves nothing. A version counts as held only where every tensor that was sent
arrived with the values it left with, was loaded, is computed with, and nothing of the engine's was
left as it was.
"""
