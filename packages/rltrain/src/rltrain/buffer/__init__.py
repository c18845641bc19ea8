# SPDX-License-Identifier: Apache-2.0
"""What lies between trials that end and steps that are taken.

config     how old a sample may be
"""
