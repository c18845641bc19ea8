# SPDX-License-Identifier: Apache-2.0
"""What a run tells: numbers of every step, and a page that shows them."""
