# SPDX-License-Identifier: Apache-2.0
"""What lies between trials that end and steps that are taken.

config     how old a sample may be, and what is done to keep to that
types      what a scheduler is told, and what it decides
book       what it knows: groups, attempts, versions, losses
order      how many groups may be begun, and which the next step takes
predict    when an attempt will have ended, and when a bound will have come
figures    a batch against the population; which ceiling binds
groups     what becomes of groups whose attempts fault, come too late or are all over
state      all of it as plain data
scheduler  events in, decisions out
simulate   a run on a clock of its own, through that same scheduler
"""
