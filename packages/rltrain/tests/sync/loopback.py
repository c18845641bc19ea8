# SPDX-License-Identifier: Apache-2.0
"""Something that answers as vLLM does while weights are sent to it, and fails where it is told to.

It meets the trainer, receives and fingerprints with what our part of an engine uses, and keeps
tensors as they come: what only vLLM's own loaders can get wrong is tested with vLLM.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor

from rltrain.sync.buckets import Item, unpacked
from rltrain.sync.fingerprint import fingerprint
from rltrain.sync.group import Group, Meeting, joined


@dataclass(slots=True, eq=False, kw_only=True)
class Engine:
    """One rank. ``faults`` has the paths that fail, and how."""

    faults: dict[str, str] = field(default_factory=dict[str, str])
    dtype: str = "float32"
    ranks: int = 1
    resets: bool = True
    """Whether it can forget keys and values."""
    url: str = ""
    weights: dict[str, Tensor] = field(default_factory=dict[str, Tensor])
    version: str = "default"
    paused: bool = False
    asked: list[str] = field(default_factory=list[str])
    """Paths, in order."""
    queries: dict[str, str] = field(default_factory=dict[str, str])
    """The last of each path."""
    sampled_with: list[str] = field(default_factory=list[str])
    """The version each time it was resumed."""
    logprobs: Callable[[list[int]], list[float]] | None = None
    """Of all ids but the first."""
    spoil: str = ""
    """A tensor of which it holds other values than it was sent."""
    group: Group | None = None
    received: dict[str, str] = field(default_factory=dict[str, str])
    ended: threading.Event = field(default_factory=threading.Event)

    def answer(self, path: str, body: Any) -> Any:
        """What is said to a path."""
        match path:
            case "/pause":
                self.paused = True
            case "/resume":
                self.paused = False
                self.sampled_with.append(self.version)
            case "/init_weight_transfer_engine":
                if meeting := body["init_info"].get("meeting"):
                    self.group = joined(Meeting(**meeting), 1)
            case "/start_weight_update":
                self.received = {}
            case "/update_weights":
                self._receive(body["update_info"])
            case "/update_weight_version":
                self.version = body["new_version"]
            case "/weight_info":
                return {"weight_version": self.version}
            case "/collective_rpc":
                return {"results": [self._called(body["method"])] * self.ranks}
            case "/reset_prefix_cache":
                return {"success": self.resets}
            case "/v1/models":
                return {"data": [{"id": "policy"}]}
            case "/v1/completions":
                return {"choices": [self._scored(*each) for each in enumerate(body["prompt"])]}
        return {"message": "done"}

    def _receive(self, info: dict[str, Any]) -> None:
        items = [Item.of(each) for each in info["items"]]
        if file := info.get("file"):
            arrived = list(load_file(file).items())
        else:
            assert self.group is not None
            size = -(-(items[-1].start + items[-1].bytes) // 16) * 16
            buffer = torch.empty(size, dtype=torch.uint8)
            self.group.broadcast(buffer)
            arrived = unpacked(buffer, items)
        for name, tensor in arrived:
            self.received[name] = fingerprint(tensor)
            self.weights[name] = tensor

    def _called(self, method: str) -> Any:
        if method == "sync_hello":
            return {"rank": 0, "dtype": self.dtype, "model": "qwen3"}
        return {
            "received": self.received,
            "unknown": [],
            "missing": [],
            "wrong": [[self.spoil, "fused"]] if self.spoil else [],
            "transformed": [],
        }

    def _scored(self, index: int, ids: list[int]) -> dict[str, Any]:
        assert self.logprobs is not None
        rows = zip(ids[1:], self.logprobs(ids), strict=True)
        told = [None, *({str(each): {"logprob": logp}} for each, logp in rows)]
        return {"index": index, "prompt_logprobs": told}


class _Handler(BaseHTTPRequestHandler):
    engine: Engine

    def do_GET(self) -> None:
        self._serve()

    def do_POST(self) -> None:
        self._serve()

    def _serve(self) -> None:
        path, _, query = self.path.partition("?")
        self.engine.queries[path] = query
        size = int(self.headers.get("Content-Length", 0))
        body = json.loads(self.rfile.read(size)) if size else None
        called = body.get("method", "") if path == "/collective_rpc" else ""
        self.engine.asked.append(called or path)
        match self.engine.faults.get(called or path):
            case "hang":
                self.engine.ended.wait(60)
            case "close":
                self.close_connection = True
            case "fail":
                self._say(500, {"error": {"message": "it broke\ninside"}})
            case "garbage":
                self._say(200, "<html>")
            case _:
                self._say(200, self.engine.answer(path, body))

    def _say(self, status: int, told: Any) -> None:
        data = told.encode() if isinstance(told, str) else json.dumps(told).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@contextmanager
def serving(*engines: Engine) -> Iterator[None]:
    """Answer inside the block."""
    servers = []
    for engine in engines:
        handler = type("Handler", (_Handler,), {"engine": engine})
        server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        engine.url = f"http://127.0.0.1:{server.server_port}"
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        servers.append(server)
    try:
        yield
    finally:
        for engine, server in zip(engines, servers, strict=True):
            engine.ended.set()
            server.shutdown()
            server.server_close()
