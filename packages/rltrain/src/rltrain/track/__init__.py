# SPDX-License-Identifier: Apache-2.0
"""What a run tells: numbers of every step, and a page that shows them.

metrics        ``metrics.jsonl``: written step by step, read back, cut for a resumed run
boards         the same numbers to TensorBoard and W&B
run            a run's directory, read
summary        the figures that a person asks for first
scale          values to pixels: ticks, gaps, labels that keep apart
chart, stack   lines over steps, with a band and a bound; parts on top of each other
catalogue      which numbers are shown where, and what they mean
page_sections  the sections of the page
page           the page: no network, no script, no other file
"""
