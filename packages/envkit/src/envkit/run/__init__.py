# SPDX-License-Identifier: Apache-2.0
"""Many trials of a model, each a row of a trajectory store.

options   what was asked for, and what in it cannot stand together
begin     from that to a run's directory, its plan, and what of it is done
weights   which weights the engine samples with
rows      from a trial that ended to its row
events    trials that ended, a line each, for whoever watches from outside
shelf     rows made durable in groups
sink      what a run does with them: counted, and said
storing   a launcher whose trials have ended once their rows are durable
figures   what the trajectories of a run come to
report    the same for a person, and as JSON
command   all of it in order: `envkit run`

How trials are run, killed, resumed and watched is `envkit.preflight`'s.
"""
