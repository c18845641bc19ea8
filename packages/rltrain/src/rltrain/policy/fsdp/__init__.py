# SPDX-License-Identifier: Apache-2.0
"""The torch backend, by FSDP2.

attention  one packed sample after the other
scorer     a causal language model that scores the trained tokens of a micro-batch
leak       refuses a model in which packed samples see each other
load       a checkpoint, sharded over the ranks
whole      whole tensors again, by the checkpoint's names
backend    `FsdpBackend`
"""
