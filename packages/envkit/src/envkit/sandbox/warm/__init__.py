# SPDX-License-Identifier: Apache-2.0
"""``python3`` in a box is a fork of a warmed parent; what that cannot be, starts cold.

program       which command lines of an interpreter it can answer
request       what is asked of it, as bytes beside three descriptors
fitness       would a cold interpreter have done something else?
ending        end a program as an interpreter ends one
interpreter   become the asked program and run it
title         what a process list shows of a child
zygote        the warmed parent, one a root file system; forks into boxes
parent        the fork server's side of it: start one, ask it
door          a box's way to it: the socket of its shim, and commands that are one Python

All but the last two run inside boxes, on the root's own interpreter: they import the standard
library and what is beside them, nothing else.
"""
