# SPDX-License-Identifier: Apache-2.0
"""The PDF files and plain texts of the shared drive."""
