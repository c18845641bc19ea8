# SPDX-License-Identifier: Apache-2.0
"""Trials that sample from the policy while it is trained.

config     how many at once, how tokens are drawn, and what an episode may use
"""
