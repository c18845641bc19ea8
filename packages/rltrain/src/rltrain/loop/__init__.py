# SPDX-License-Identifier: Apache-2.0
"""A run, from its settings to its last checkpoint.

config       how long it goes on and what it keeps
settings     all tables of a recipe
"""
