# SPDX-License-Identifier: Apache-2.0
"""Only the very same question gets the answer that was made before."""

import asyncio
from typing import Any

import pytest
from starlette.types import Message, Receive, Scope, Send

from envkit.servers import remembered
from envkit.servers.remembered import MOST_ANSWERS, MOST_BYTES, Remembered


class Counting:
    """Answers with the number of times it was asked."""

    def __init__(self, status: int = 200, parts: int = 1) -> None:
        self.asked: list[bytes] = []
        self.status = status
        self.parts = parts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        body, more = b"", True
        while more:
            message = await receive()
            body, more = body + message["body"], message.get("more_body", False)
        self.asked.append(body)
        headers = [(b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        for left in reversed(range(self.parts)):
            said = str(len(self.asked)).encode()
            await send({"type": "http.response.body", "body": said, "more_body": left > 0})


@pytest.fixture(autouse=True)
def nothing_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remembered, "_answers", {})


def ask(app: Remembered, body: bytes = b"{}", cuts: int = 1, **headers: str) -> tuple[int, bytes]:
    named = {"mcp_method": "tools/list", "content_length": str(len(body)), **headers}
    raw = [(name.replace("_", "-").encode(), value.encode()) for name, value in named.items()]
    scope: dict[str, Any] = {"type": "http", "method": "POST", "path": "/mcp/", "headers": raw}
    size = -(-len(body) // cuts)
    parts = [body[start : start + size] for start in range(0, len(body), size)]
    sent: list[Message] = []

    async def receive() -> Message:
        part = parts.pop(0)
        return {"type": "http.request", "body": part, "more_body": bool(parts)}

    async def send(message: Message) -> None:
        sent.append(message)

    asyncio.run(app(scope, receive, send))
    return sent[0]["status"], b"".join(each["body"] for each in sent[1:])


def test_the_same_question_is_answered_once_a_process() -> None:
    first, second = Counting(), Counting()
    assert ask(Remembered(first, of="tools")) == (200, b"1")
    assert ask(Remembered(first, of="tools")) == (200, b"1")
    assert ask(Remembered(second, of="tools"), authorization="another") == (200, b"1")
    assert (len(first.asked), len(second.asked)) == (1, 0)


@pytest.mark.parametrize(
    "other",
    [
        {"body": b'{"id": 2}'},
        {"accept": "text/event-stream"},
        {"mcp_protocol_version": "2025-11-25"},
        {"mcp_method": "server/discover"},
    ],
)
def test_another_question_gets_an_answer_of_its_own(other: dict[str, Any]) -> None:
    app = Counting()
    ask(Remembered(app, of="tools"))
    assert ask(Remembered(app, of="tools"), **other) == (200, b"2")


def test_other_tools_get_an_answer_of_their_own() -> None:
    app = Counting()
    ask(Remembered(app, of=("read",)))
    assert ask(Remembered(app, of=("read", "write"))) == (200, b"2")


@pytest.mark.parametrize(
    ("app", "question"),
    [
        (Counting(status=400), {}),
        (Counting(parts=2), {}),
        (Counting(), {"mcp_method": "tools/call"}),
        (Counting(), {"content_length": "many"}),
        (Counting(), {"body": b"x" * (MOST_BYTES + 1)}),
        (Counting(), {"body": b"in two parts", "cuts": 2}),
    ],
    ids=["error", "parts", "call", "no-length", "long", "cut"],
)
def test_what_may_differ_is_asked_again(app: Counting, question: dict[str, Any]) -> None:
    for _ in range(2):
        ask(Remembered(app, of="tools"), **question)
    assert app.asked == [question.get("body", b"{}")] * 2


def test_no_more_is_kept_than_was_meant_to() -> None:
    app = Counting()
    for number in [*range(MOST_ANSWERS + 2), MOST_ANSWERS + 1, 0]:
        ask(Remembered(app, of="tools"), body=str(number).encode())
    assert len(app.asked) == MOST_ANSWERS + 3
