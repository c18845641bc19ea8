# SPDX-License-Identifier: Apache-2.0
"""The one set of facts that every document of Halden Pryce is written from.

firm         the firm, its practices, the year and its working days
people       fee earners with their grades, staff, client contacts, mail addresses
rates        rate cards and cost rates by grade, and which card holds in which month
engagements  ten engagements: client, team leads, terms and their changes, budgets
hours        hours worked, by engagement, person and month
fees         what those hours are worth and cost
invoices     numbered invoices, one of which charges too much
utilisation  leave, training and targets, and the figures that were reported too early
outlook      the year 2026: an extension and what was agreed for it, first wrongly
office       what only workbooks and decks show: a first proposal, the plan, the pipeline
decoys       each statement of the world that is wrong, and what supersedes it

Money is in pounds. A module imports only from those above it. Documents take every figure from
here; where one of them says something else, `decoys` lists it.
"""
