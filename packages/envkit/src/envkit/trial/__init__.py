# SPDX-License-Identifier: Apache-2.0
"""One trial: start, act, grade, destroy; and what is kept of it.

record      what a trial leaves behind: attempts, phases, faults, reward
load        what it does beside its task: pauses, idle time, marks, a second grading
request     what one attempt is asked to do, across a socket
policy      what the agent ``model`` is made of, and how long it may take
config      the same in Harbor's terms
verdict     rewards and faults, from Harbor's result and the ledger
joined      what the loop saw and what became of the trial, as one trajectory
again       the verifier once more, on what was collected
run         the trial as one screen of calls over Harbor's ``Trial``
"""
