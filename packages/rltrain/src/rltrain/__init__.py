# SPDX-License-Identifier: Apache-2.0
"""Asynchronous reinforcement learning on envkit trajectories."""

__version__ = "0.1.0"
