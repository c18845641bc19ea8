# SPDX-License-Identifier: Apache-2.0
"""What must hold before anything is trained. A gate that measured too little has failed.

In the order of a check of trajectories against a policy:

config     the bounds
options    which trajectories, by which policy
policy     what a checkpoint says of itself
taken      what of a trajectory is compared
survey     all that a store says of itself
causes     why a check has failed, and what of it shows before anything is scored
score      what the trainer makes of rows
figures    how far it is from what was recorded
diagnose   which of the usual mistakes that is
report     what was found, and the same as plain data
check      all of it in order
show       the same for a person
"""
