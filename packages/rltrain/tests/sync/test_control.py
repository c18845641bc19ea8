# SPDX-License-Identifier: Apache-2.0
"""Single operations of an engine, and the words for what goes wrong with them."""

from __future__ import annotations

import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from rltrain.refused import Refused
from rltrain.sync.control import Control
from rltrain.sync.errors import OperationFailed

sys.path.insert(0, str(Path(__file__).parent))
from loopback import Engine, serving

pytestmark = pytest.mark.trainer

SHORT_S, LONG_S = 0.3, 20.0


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("hang", "pause: no answer within 0.3 s"),
        ("close", "pause: RemoteDisconnected"),
        ("fail", "pause: status 500: it broke inside"),
        ("garbage", "pause: the answer is no JSON: <html>"),
    ],
)
def test_what_goes_wrong_is_one_line_that_names_the_operation(fault: str, said: str) -> None:
    engine = Engine(faults={"/pause": fault})
    with serving(engine), pytest.raises(OperationFailed, match=said) as caught:
        Control(engine.url).post(
            "pause", "/pause?mode=keep", SHORT_S if fault == "hang" else LONG_S
        )
    assert "\n" not in str(caught.value)


def test_what_is_answered_comes_back() -> None:
    engine = Engine(version="7")
    with serving(engine):
        told = Control(f"{engine.url}/v1/").get("ask", "/weight_info", LONG_S)
    assert told == {"weight_version": "7"}


def test_an_engine_that_is_not_there_is_named() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(OperationFailed, match="ask: ConnectionRefusedError"):
            Control(url).get("ask", "/weight_info", LONG_S)


@contextmanager
def dripping() -> Iterator[str]:
    """A byte of a long answer each time that somebody might lose patience."""
    over = threading.Event()

    def drip(server: socket.socket) -> None:
        peer, _ = server.accept()
        with peer:
            peer.recv(1 << 16)
            peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 60\r\n\r\n")
            while not over.wait(SHORT_S / 4):
                peer.sendall(b" ")

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=drip, args=(server,))
        thread.start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}"
        over.set()
        thread.join()


def test_an_answer_that_never_ends_is_not_waited_for() -> None:
    with dripping() as url, pytest.raises(OperationFailed, match="no answer within"):
        Control(url).get("ask", "/weight_info", SHORT_S)


@pytest.mark.parametrize("url", ["127.0.0.1:8000", "ftp://there", "http://", "http://there:port"])
def test_what_is_no_url_is_refused(url: str) -> None:
    with pytest.raises(Refused, match="is no URL of an engine"):
        Control(url)
