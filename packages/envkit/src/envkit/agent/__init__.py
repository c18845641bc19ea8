# SPDX-License-Identifier: Apache-2.0
"""What acts in a trial.

types        what passes between the parts of the loop, and the protocols they are known by
mcp_http     connections to one server that are kept while they are good
mcp_events   server-sent events out of bytes as they come
mcp_wire     one message out, and the one that answers it
mcp_session  both eras of the protocol behind one way to ask
mcp_results  tools and results as a server gives them, held to what is relied on
mcp_faults   what a connection and a server come to, as faults
mcp_client   one server, and calls that always come back on time
recording    the tool calls of a task's oracle
think        how long a replay waits before a call
atif         a replay as an ATIF trajectory
replay       the agent that replays a task's recorded tool calls through the gateway
tokens       ids of everything that the model did not sample
parse        calls read out of what the model said
engine       ids that the model samples, and what is told of them
toolbelt     the tools of an episode
stream       its tokens: one list that is only appended to
limits       what it may still use, and what of that is the model's own
repair       what is wrong with a turn, and what the model is told of it
observe      a result that is too long, as its head and its tail
show         the answers to one turn, as the tokens that follow it
history      what an episode has come to so far
journal      the same on the disk, as it goes on
resumed      an episode that goes on where a killed one was
loop         prompt, then sample, parse, act, observe until something ends it
prompt       the messages an episode begins with
loaded       templates and parsers, loaded once a process
hear         what a recorded episode says
told         an episode as it happened, in ATIF
settings     what the model's agent is told, as plain data
warm         what every trial of it needs, loaded before they are forked
model        the agent that a model drives
"""
