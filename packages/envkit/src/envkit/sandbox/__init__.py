# SPDX-License-Identifier: Apache-2.0
"""Isolated boxes on this machine, and deadlines around any provider's.

limits        what a box may use, and what it did use
cgroup        control groups, version 1 or 2
kernel        mount, prctl and capset
bwrap         which bubblewrap, and the command line of a box
enter         run something in a living box, confined
box           a box: namespaces, a throw-away root, limits
stage         the private mount namespace where writable layers live
mounts        mounts and namespaces by the newer system calls
scene         what the boxes of gateways all see, mounted once
cell          the box of a gateway: one process, forked straight into it
archive       files in and out of a box, by trusted code
wire          JSON messages with descriptors over a Unix socket
channel       requests and answers; a channel is a capability
spec          what is asked of the fork server
nursery       the warmed process whose copies trials and gateways are
warm          a box's python3 as a fork of a warmed parent
lodging       what one environment of a trial occupies
forkserver    the small, single-threaded process that starts it all
prepare       what all trials of a task share
session       a trial's way to its fork server
output        a bounded part of what a command wrote
command       run a command in a box over a channel
carrier       carry files into and out of a box over a channel
gateway       start a trial's gateway and wait for its first answer
starvation    did a command outlive its limit, or did it never get a core
turns         which trials work on the cores now
canary        marks by which trials that share anything find each other out
ledger        what happened, whether anybody up the stack saw it
account       what a closed environment used, and what agent code ran into
guard         deadlines and the ledger around any Harbor environment
provider      what Harbor must be told of a provider on this machine
local         the Harbor environment over boxes
unsafe        the Harbor environment without isolation, by explicit choice
userns        what can keep this user from making user namespaces
availability  can a box be made here, and what fixes it
reaper        what a killed run left, and its removal
"""

from envkit.sandbox.availability import Availability, availability

__all__ = ["Availability", "availability"]
