# SPDX-License-Identifier: Apache-2.0
"""The policy: what scores tokens and is changed by them.

config     what is trained, and how a step is taken
fused      log-probs and entropies without all logits at once
ranks      the processes that train together
types      `Backend`: what loop and gates ask of any trainer
fsdp       the backend by torch: FSDP2 over ranks, on CPUs and GPUs

Contract: backends differ in where they compute, never in what: the same batch gives the same
gradient.
"""
