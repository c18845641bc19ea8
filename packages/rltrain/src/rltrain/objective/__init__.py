# SPDX-License-Identifier: Apache-2.0
"""The objective: what a batch of samples is worth, as a sum over its tokens.

In the order of the flow:

types        samples and tokens, as flat tensors
groups       sums by prompt
advantage    rewards and groups → what each sample is worth, and which groups are dropped and why
shape        options on rewards and flags: length penalty, overlong filtering
aggregate    which weight a token of each sample has; stamped before any split of the batch
loss         what a token costs: one frozen dataclass a loss, by name
terms        KL to a reference and entropy, with the weight of the policy term
config       all of its settings
report       what a loss did: masked by sign, ratios, divergences

Contract: weights depend on the whole batch and on nothing of how it is cut, so that the sum over
all micro-batches of all ranks is the objective, and its gradient the gradient. A sample that is not
live changes no weight of any other; one whose reward is not valid is in no baseline.
"""
