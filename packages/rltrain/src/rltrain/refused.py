# SPDX-License-Identifier: Apache-2.0
"""What a user can set right, in one line: what, where, what to do."""


class Refused(Exception):
    """rltrain cannot do what it was asked; nothing was changed."""


class Stopped(Refused):
    """A run was stopped by a gate or a rule of its own, and can be gone on with once it is clear
    why."""
