# SPDX-License-Identifier: Apache-2.0
"""HTTP/1.1 to one server over connections that are kept: h11 on the loop's own streams.

Contract: a request goes out once. A connection that is lost is an error of the request that used
it, and a request is never sent again, because nobody knows whether it arrived. A response that is
not read to its end takes its connection with it, which tells the server that nobody waits.

A client of our own, because 550 general ones on two cores work more on themselves than on calls.
"""

import asyncio
import functools
import ssl
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from urllib.parse import urljoin, urlsplit

import h11

KEPT_S = 4.0
"""An idle connection is used again within this time: servers close theirs after 5 s or more, and a
request that meets the closing is lost."""
READ_BYTES = 1 << 16
MAX_BODY_BYTES = 32 << 20
"""Of a body that is read whole: a rendered page in base64 takes megabytes; a server gone mad must
still not fill the memory."""
REDIRECTS = (307, 308)
"""Those that keep method and body. Others would turn a call into something else."""
_NOT_SENDABLE = (h11.LocalProtocolError, UnicodeEncodeError)


class Response:
    """The answer to one request, while its connection is held for it."""

    def __init__(self, line: "_Line", head: h11.Response) -> None:
        self.status = head.status_code
        self._line = line
        self._headers = {bytes(name): bytes(value) for name, value in head.headers}

    def header(self, name: str) -> str:
        """A header's value by its name in lower case; empty where there is none."""
        return self._headers.get(name.encode(), b"").decode("latin-1")

    async def part(self) -> bytes | None:
        """The next part of the body, as it comes; None at its end."""
        event = await self._line.event()
        return bytes(event.data) if isinstance(event, h11.Data) else None

    async def body(self) -> bytes:
        """The rest of the body, whole.

        Raises:
            h11.RemoteProtocolError: it is longer than `MAX_BODY_BYTES`.
        """
        whole = bytearray()
        while (part := await self.part()) is not None:
            whole += part
            if len(whole) > MAX_BODY_BYTES:
                raise h11.RemoteProtocolError(f"a body is longer than {MAX_BODY_BYTES} bytes")
        return bytes(whole)


class HttpLink:
    """Every connection to one URL."""

    def __init__(self, url: str, headers: Mapping[str, str]) -> None:
        """Take an http or https URL, and the headers that each request carries.

        Raises:
            ValueError: the URL is of another kind, or no request can carry it or the headers.
        """
        self._headers = list(headers.items())
        self._idle: list[tuple[_Line, float]] = []
        self._point(url)
        try:
            self._request("GET", {}, b"")
        except _NOT_SENDABLE:  # which would quote a token
            raise ValueError(f"no request can carry {url!r} and its headers") from None

    @property
    def url(self) -> str:
        """Where requests go; a server may have moved it within its origin."""
        return self._url

    @asynccontextmanager
    async def exchange(
        self, method: str, headers: Mapping[str, str], body: bytes = b""
    ) -> AsyncGenerator[Response]:
        """Send a request and hold its response; the caller sets the deadline.

        Raises:
            OSError: the server cannot be reached, or the connection is lost.
            h11.RemoteProtocolError: what came back is not HTTP, or was cut; or the server gave
                a name or a place that no request can carry.
        """
        try:
            request = self._request(method, headers, body)
        except _NOT_SENDABLE as error:
            raise h11.RemoteProtocolError(f"it wants sent what cannot be: {error}") from error
        line = self._kept() or await self._dial()
        try:
            yield Response(line, await line.ask(request, body))
        finally:
            self._keep(line)

    def moved(self, response: Response) -> bool:
        """Whether the response sends us elsewhere within the origin; later requests go there."""
        if response.status not in REDIRECTS:
            return False
        try:
            target = urljoin(self._url, response.header("location"))
        except ValueError:  # it is no URL
            return False
        if target == self._url or urlsplit(target)[:2] != urlsplit(self._url)[:2]:
            return False
        self._point(target)
        return True

    def close(self) -> None:
        """Close what is kept, at once."""
        while self._idle:
            self._idle.pop()[0].abort()

    def _point(self, url: str) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"{url!r} is no http or https URL")
        self._url, self._host = url, parts.hostname
        self._tls = parts.scheme == "https"
        self._port = parts.port or (443 if self._tls else 80)
        self._authority = parts.netloc.rpartition("@")[2]
        self._target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")

    def _request(self, method: str, headers: Mapping[str, str], body: bytes) -> h11.Request:
        fixed = [("host", self._authority), *self._headers, *headers.items()]
        if body:
            fixed.append(("content-length", str(len(body))))
        carried = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in fixed]
        return h11.Request(method=method, target=self._target, headers=carried)

    def _kept(self) -> "_Line | None":
        """The connection used last; those that are stale or closed are let go."""
        now = asyncio.get_running_loop().time()
        while self._idle:
            line, since = self._idle.pop()
            if now - since < KEPT_S and not line.ended:
                return line
            line.abort()
        return None

    async def _dial(self) -> "_Line":
        context = _authorities() if self._tls else None
        reader, writer = await asyncio.open_connection(
            self._host, self._port, ssl=context, limit=READ_BYTES
        )
        return _Line(reader, writer)

    def _keep(self, line: "_Line") -> None:
        if line.renew():
            self._idle.append((line, asyncio.get_running_loop().time()))
        else:
            line.abort()


class _Line:
    """One connection: a request and its response at a time."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._http = h11.Connection(h11.CLIENT)

    @property
    def ended(self) -> bool:
        """Whether the server closed it."""
        return self._reader.at_eof() or self._writer.is_closing()

    async def ask(self, request: h11.Request, body: bytes) -> h11.Response:
        """Send it, in one write, and wait for the head of its response."""
        sent = [self._http.send(request)]
        if body:
            sent.append(self._http.send(h11.Data(data=body)))
        sent.append(self._http.send(h11.EndOfMessage()))
        self._writer.write(b"".join(filter(None, sent)))
        while not isinstance(head := await self.event(), h11.Response):
            pass  # informational
        return head

    async def event(self) -> h11.Event:
        """The next part of the response."""
        while (event := self._http.next_event()) is h11.NEED_DATA:
            data = await self._reader.read(READ_BYTES)
            if not data and self._http.their_state is h11.SEND_RESPONSE:
                raise ConnectionResetError("the server closed the connection without an answer")
            self._http.receive_data(data)
        if event is h11.PAUSED:
            raise h11.RemoteProtocolError("more than one response to a request")
        assert isinstance(event, h11.Event)
        return event

    def renew(self) -> bool:
        """Make it ready for the next request, if this one came to its end and both may go on."""
        if self.ended or self._http.our_state is not h11.DONE:
            return False
        if self._http.their_state is not h11.DONE or self._http.trailing_data[0]:
            return False
        self._http.start_next_cycle()
        return True

    def abort(self) -> None:
        """Close it at once."""
        self._writer.transport.abort()


@functools.cache
def _authorities() -> ssl.SSLContext:
    """Whom to trust, read once a process and only when needed: 20 ms and a megabyte."""
    import httpx2

    return httpx2.create_ssl_context()
