# SPDX-License-Identifier: Apache-2.0
"""The contract with trainers: what was sampled, what was observed, what it was worth.

types       the carriers: one `Trajectory` is one row
invariants  what must hold of a row, checked on write and on read
"""
