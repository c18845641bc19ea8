# SPDX-License-Identifier: Apache-2.0
"""Which machines sample and which train.

config     nodes, engines, and how a model is cut over them
"""
