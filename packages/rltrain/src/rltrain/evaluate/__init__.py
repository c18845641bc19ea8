# SPDX-License-Identifier: Apache-2.0
"""How good the policy is at tasks that it was not trained on.

config     how often, and with which context
"""
