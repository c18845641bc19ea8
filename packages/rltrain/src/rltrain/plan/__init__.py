# SPDX-License-Identifier: Apache-2.0
"""What bounds a run, before a GPU is rented.

assumptions  what no recipe says: GPUs, lengths, tools, speeds; each with its reason and its spread
model        config.json of a model, from its directory or from the ones that are shipped
memory       bytes of its weights, of a token of its KV cache, of a state of its linear layers
trials       how long trials are and what they spend their time on, made up or recorded
speed        seconds of a trial and of a step, as a function of how many trials are under way
hardware     speeds, reckoned from GPUs and the model
clock        a run by those speeds through the real scheduler
ceilings     how many trials KV memory holds and how many staleness lets be under way
published    what is known of the published runs
grid         splits of the nodes, or trials at once, that are compared
calibrate    assumptions out of a run that was measured
plan         all of it, for a recipe
advice       one sentence on it
document     as JSON
show         in a terminal
page         as one HTML page
"""
