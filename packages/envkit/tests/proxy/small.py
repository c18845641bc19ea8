# SPDX-License-Identifier: Apache-2.0
"""A proxy in a process of its own before a scripted engine, and clients of it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from openai import OpenAI

from envkit.agent.loaded import Voice, voice
from envkit.agent.parse.format import say
from envkit.agent.types import CallRequest
from envkit.proxy.keep import STORE
from envkit.trajectory.store import Store
from envkit.trajectory.types import Kind, Trajectory

from ..agent.tokens.models import make_model
from ..engines.scripted import Script, Scripted, Turn, start_scripted

ENVKIT = (sys.executable, "-c", "from envkit.cli import main; main()")
SYSTEM = {"role": "system", "content": "You are <|im_end|> careful."}
USER = {"role": "user", "content": "Grüße: what does /a/b.txt say?"}
ASK = [SYSTEM, USER]
MODEL = "tiny"
TIMEOUT_S = 60


def tool(name: str, **properties: str) -> dict[str, Any]:
    """A tool whose arguments have these types."""
    kinds = {key: {"type": kind} for key, kind in properties.items()}
    parameters = {"type": "object", "properties": kinds, "required": list(kinds)}
    function = {"name": name, "description": f"Does {name}.", "parameters": parameters}
    return {"type": "function", "function": function}


TOOLS = [tool("read_file", path="string"), tool("add", a="integer", b="integer")]
READ = CallRequest(name="read_file", arguments={"path": '/a/Grüße "b".txt'})
ADD = CallRequest(name="add", arguments={"a": 1, "b": -2})


type Line = str | CallRequest | Sequence[CallRequest] | Turn


def turns_of(speaks: Voice, lines: Sequence[Line]) -> list[Turn]:
    """What a model says: texts, calls, or turns as they are."""
    return [each if isinstance(each, Turn) else _turn(speaks, each) for each in lines]


def _turn(speaks: Voice, line: str | CallRequest | Sequence[CallRequest]) -> Turn:
    template, calls = speaks.template, list[CallRequest]()
    if not isinstance(line, str):
        calls = [line] if isinstance(line, CallRequest) else list(line)
    content = line if isinstance(line, str) else ""
    opened = template.opens_thinking
    text = content
    if calls or opened:
        text = say(template.parser_name, calls, content=content, opened=opened)
    (stop,) = template.end_of_turn(-1) or template.stop_ids[-1:]
    return Turn(ids=[*template.speak(text), stop])


@dataclass(frozen=True, kw_only=True)
class Proxied:
    """A running proxy."""

    url: str
    engine: Scripted
    speaks: Voice
    out: Path
    process: subprocess.Popen[str]

    def play(self, *lines: Line, **more: Any) -> None:
        """What the engine says from now on."""
        size = self.speaks.template.vocabulary_size
        turns = turns_of(self.speaks, lines)
        self.engine.play(Script(turns=turns, vocabulary=size, **more))

    def client(self, name: str = "", **more: Any) -> OpenAI:
        """The real client, of a conversation with a name or of one without."""
        base = f"{self.url}/t/{name}/v1" if name else f"{self.url}/v1"
        return OpenAI(base_url=base, api_key="none", max_retries=0, timeout=TIMEOUT_S, **more)

    def end(self, name: str, **ending: Any) -> list[dict[str, Any]]:
        """End a conversation; its rows as the proxy tells them."""
        return post(f"{self.url}/t/{name}/end", ending)["rows"]

    def row(self, name: str) -> Trajectory:
        """As it is stored; reading checks every invariant."""
        return Store(self.out / STORE).read(name)

    def asked(self) -> list[dict[str, Any]]:
        """Bodies of the requests that the engine saw."""
        return [each["body"] for each in self.engine.seen() if "body" in each]

    def stop(self) -> str:
        """Interrupt it; what it said."""
        self.process.send_signal(signal.SIGINT)
        _, told = self.process.communicate(timeout=TIMEOUT_S)
        return told


def chat(client: Any, messages: list[Any], **more: Any) -> Any:
    """One answer."""
    return client.chat.completions.create(model=MODEL, messages=messages, **more)


def post(url: str, body: Any) -> Any:
    """The answer to a POST; raises urllib's HTTPError."""
    head = {"Content-Type": "application/json"}
    request = urllib.request.Request(url, json.dumps(body).encode(), head)
    with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:
        return json.loads(answer.read())


def status_of(url: str, body: Any) -> tuple[int, dict[str, Any]]:
    """Status and error of a POST that is refused."""
    try:
        post(url, body)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.loads(error.read())["error"]
    raise AssertionError(f"{url} took {body}")


@contextmanager
def engine_for(model: Path, *lines: Line, **more: Any) -> Generator[Scripted]:
    """An engine that says this."""
    speaks = voice(model)
    size = speaks.template.vocabulary_size
    with start_scripted(Script(turns=turns_of(speaks, lines), vocabulary=size, **more)) as engine:
        yield engine


@contextmanager
def proxied(root: Path, family: str = "qwen3", *words: object) -> Generator[Proxied]:
    """A proxy of a model of this family, killed at the end."""
    model = root / "model"
    if not model.exists():
        make_model(model, family)
    with engine_for(model, "hello") as engine, started(root, engine, *words) as proxy:
        yield proxy


@contextmanager
def started(root: Path, engine: Scripted, *words: object) -> Generator[Proxied]:
    """A proxy before an engine that is there."""
    model, out = root / "model", root / "out"
    options = ("--engine", engine.url, "--tokenizer", model, "--out", out, "--port", 0, *words)
    command = [*ENVKIT, "proxy", *map(str, options)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        line = process.stderr.readline().strip()
        assert line.endswith("/t/NAME/v1"), line
        try:
            yield Proxied(
                url=line.removesuffix("/t/NAME/v1"),
                engine=engine,
                speaks=voice(model),
                out=out,
                process=process,
            )
        finally:
            process.kill()


def texts(speaks: Voice, row: Trajectory, kind: Kind) -> list[str]:
    """Of the segments of a kind, special tokens spelt out."""
    stream = row.episode.stream
    ids = stream.token_ids.tolist()
    found = [each for each in stream.segments if each.kind is kind]
    return [speaks.template.decode(ids[each.start : each.stop]) for each in found]


def results(message: Any, *said: str) -> list[dict[str, Any]]:
    """What a harness sends after an answer with calls: that answer, and a result for each."""
    pairs = zip(message.tool_calls, said, strict=True)
    told = [{"role": "tool", "tool_call_id": call.id, "content": text} for call, text in pairs]
    return [message.model_dump(exclude_none=True), *told]
