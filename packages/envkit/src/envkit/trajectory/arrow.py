# SPDX-License-Identifier: Apache-2.0
"""Arrow, by names that a type checker can read: it ships no types of its own."""

from __future__ import annotations

from typing import Any

import pyarrow

pa: Any = pyarrow

type Array = Any
type Batch = Any
type Buffer = Any
type DataType = Any
type Schema = Any
type Table = Any
