# SPDX-License-Identifier: Apache-2.0
"""What works on this machine, what does not, and the one line that fixes it.

types        a finding, and what probes read this machine through
ask          another program's answer, within a deadline
interpreter  envkit, Python and the optional extras
room         open files, processes, memory, disk, inodes: what so many trials need of each
namespaces   user namespaces, and each thing that blocks them
cgroups      which control groups there are, and whether limits of boxes can be set in them
clock        a clock that steps, runs at another rate, or is years off
bubblewrap   the sandbox program, what it can do, and a box made with it
programs     Docker, LibreOffice, Chromium
keys         names of API keys that are set; never a value
leftovers    what killed runs left, and its removal
examine      all of them, in this order
report       the findings for a person and for a program
"""
