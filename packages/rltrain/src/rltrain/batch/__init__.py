# SPDX-License-Identifier: Apache-2.0
"""From trajectories to what a trainer's ranks are given.

In the order of the flow:

sample     what a trainer takes of a trajectory
stamp      what each sample is worth and weighs, once for the whole batch
cost       what a sample of so many tokens costs
modelcost  that cost, read from a model's configuration
pack       which samples go together, and on which rank
micro      micro-batches as tensors
"""
