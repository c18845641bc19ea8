# SPDX-License-Identifier: Apache-2.0
"""A world's declared packages and tools as a root file system for boxes on this machine.

rootfs      build once, cached by digest: interpreter, distributions, tools, their libraries
closure     which installed distributions a set of promised packages needs
"""
