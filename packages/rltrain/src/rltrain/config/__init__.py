# SPDX-License-Identifier: Apache-2.0
"""Settings: TOML in, frozen dataclasses out, and the resolved whole as TOML again.

read     a file and ``--set a.b=c`` to the dataclass of a command
show     what came of it, every value written out

Contract: each component's settings are a frozen dataclass beside its code, with its own checks in
``__post_init__``; nothing here knows any of them. Whatever is wrong is one line: where it stands,
what is wrong, and the nearest name there is.
"""
