# SPDX-License-Identifier: Apache-2.0
"""The process of a crew, where its own code fails."""

from __future__ import annotations

import asyncio
from typing import Any

from envkit.crew.serve import Link


def test_a_callback_that_fails_ends_the_work_and_is_told() -> None:
    """What it was to say would be waited for without end."""

    def fails() -> None:
        raise AssertionError("a defect")

    async def work() -> Link:
        nobody: Any = None
        link = Link(nobody, nobody)
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(link.break_off)
        loop.call_soon(fails)
        async with asyncio.timeout(10.0):
            await link.gone.wait()
        return link

    assert str(asyncio.run(work()).broke) == "a defect"


def test_a_future_that_nobody_asked_for_its_error_ends_nothing() -> None:
    async def work() -> Link:
        nobody: Any = None
        link = Link(nobody, nobody)
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(link.break_off)
        loop.create_future().set_exception(ConnectionError("closed meanwhile"))
        await asyncio.sleep(0)
        return link

    link = asyncio.run(work())
    assert (link.broke, link.gone.is_set()) == (None, False)
