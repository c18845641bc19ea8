# SPDX-License-Identifier: Apache-2.0
"""One trial: start, act, grade, destroy; and what is kept of it.

record      what a trial leaves behind: attempts, phases, faults, reward
run         the trial as one screen of calls over Harbor's ``Trial``
"""
