# SPDX-License-Identifier: Apache-2.0
"""The command: what it says, what it leaves, and what stops it from beginning."""

from __future__ import annotations

import signal
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from envkit.agent.hear import COPIES
from envkit.agent.tokens import load_template
from envkit.proxy.keep import STORE
from envkit.trajectory.store import Store
from envkit.trajectory.types import Stop

from ..agent.tokens.models import make_model
from .small import (
    ASK,
    ENVKIT,
    READ,
    TIMEOUT_S,
    TOOLS,
    Proxied,
    chat,
    engine_for,
    proxied,
    results,
    started,
    status_of,
)


def test_an_interrupt_stores_what_is_open(tmp_path: Path) -> None:
    with proxied(tmp_path, "qwen3", "--task", "demo", "--harness", "mine") as proxy:
        proxy.play("done")
        with proxy.client("final") as client:
            chat(client, [*ASK])
        proxy.play(READ)
        with proxy.client("calls") as client:
            chat(client, [*ASK], tools=TOOLS)
        told = proxy.stop()
        assert proxy.process.returncode == 0, told
    assert f"stored 2 trajectories in {tmp_path / 'out'}" in told
    rows = {each.identity.trajectory_id: each for each in Store(tmp_path / "out" / STORE)}
    final, calls = rows["final"], rows["calls"]
    assert (final.episode.stop, final.outcome.fault) == (Stop.FINAL, None)
    assert (final.identity.task, final.identity.harness) == ("demo", "envkit proxy mine")
    assert calls.episode.stop is Stop.FAULT
    assert calls.outcome.fault is not None
    assert calls.outcome.fault.code == "conversation_cut"
    (copy,) = (tmp_path / "out" / COPIES).iterdir()
    assert load_template(copy).tokenizer_digest == final.identity.tokenizer_digest == copy.name


def test_a_second_proxy_goes_on_with_the_store_and_ends_nothing_twice(tmp_path: Path) -> None:
    with proxied(tmp_path) as first:
        first.play("one")
        with first.client("one") as client:
            chat(client, [*ASK])
        first.end("one", reward=1.0)
        assert status_of(f"{first.url}/t/one/end", {})[0] == 409
        first.stop()
        with started(tmp_path, first.engine) as second:
            url = f"{second.url}/t/one/v1/chat/completions"
            assert status_of(url, {"messages": ASK})[0] == 409
            assert status_of(f"{second.url}/t/one/end", {})[0] == 409
            with second.client("two") as client:
                chat(client, [*ASK])
            second.end("two", reward=0.0)
            second.stop()
    store = Store(tmp_path / "out" / STORE)
    assert store.ids == ("one", "two")
    assert [each.outcome.reward for each in store] == [1.0, 0.0]


def test_a_conversation_that_is_idle_ends_by_itself(tmp_path: Path) -> None:
    with proxied(tmp_path, "qwen3", "--idle-s", "1") as proxy:
        proxy.play(READ)
        with proxy.client("idle") as client:
            message = chat(client, [*ASK], tools=TOOLS).choices[0].message
            _until(lambda: (proxy.out / STORE / "segment-00000001.arrow").exists())
            url = f"{proxy.url}/t/idle/v1/chat/completions"
            more = {"messages": [*ASK, *results(message, "late")], "tools": TOOLS}
            assert status_of(url, more)[0] == 409
        fault = proxy.row("idle").outcome.fault
        assert fault is not None
        assert "nothing was asked for 1 s" in fault.message


def _until(done: Callable[[], bool]) -> None:
    from time import monotonic, sleep

    end = monotonic() + TIMEOUT_S
    while not done():
        assert monotonic() < end
        sleep(0.05)


@pytest.mark.parametrize(
    "ending",
    [
        {"reward": "much"},
        {"reward_valid": "yes"},
        {"rewards": [1]},
        {"stop": "fault"},
        {"stop": "tired"},
        {"sample": -1},
        {"sample": 0.5},
        {"task": 3},
        {"more": 1},
        [],
    ],
    ids=str,
)
def test_an_ending_that_means_nothing_ends_nothing(proxy: Proxied, ending: Any) -> None:
    name = f"ending{abs(hash(str(ending)))}"
    proxy.play("one")
    with proxy.client(name) as client:
        chat(client, [*ASK])
    assert status_of(f"{proxy.url}/t/{name}/end", ending)[0] == 400
    assert proxy.end(name, reward=1.0, stop="turn_cap")[0]["stop"] == "turn_cap"


def test_an_engine_that_goes_away_leaves_what_was_said(tmp_path: Path) -> None:
    with proxied(tmp_path) as proxy:
        proxy.play("one")
        with proxy.client("one") as client:
            said = chat(client, [*ASK]).choices[0].message.model_dump()
            proxy.engine.process.kill()
            proxy.engine.process.wait()
            url = f"{proxy.url}/t/one/v1/chat/completions"
            body = {"messages": [*ASK, said, ASK[1]]}
            assert status_of(url, body)[0] == 503
        (told,) = proxy.end("one", reward=1.0)
        assert (told["stop"], told["turns"], told["reward_valid"]) == ("fault", 1, False)


def test_a_termination_while_an_answer_is_due_stores_the_rest(tmp_path: Path) -> None:
    from ..engines.scripted import Order

    with proxied(tmp_path) as proxy:
        proxy.play("one", orders=[Order(fault="stall", turn=0)])
        host, port = proxy.url.removeprefix("http://").split(":")
        body = b'{"messages": [{"role": "user", "content": "x"}]}'
        with socket.create_connection((host, int(port))) as line:
            head = f"POST /t/due/v1/chat/completions HTTP/1.1\r\nHost: {host}\r\n"
            line.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
            _until(lambda: len(proxy.asked()) == 1)
            proxy.process.send_signal(signal.SIGTERM)
            _, told = proxy.process.communicate(timeout=TIMEOUT_S)
        assert (proxy.process.returncode, "stored 1 " in told) == (0, True), told
    row = Store(tmp_path / "out" / STORE).read("due")
    assert row.episode.stop is Stop.FAULT
    assert row.outcome.fault is not None
    assert row.outcome.fault.code == "no_answer"


def run(*words: object) -> tuple[int, str]:
    command = [*ENVKIT, "proxy", *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    return done.returncode, done.stderr


def test_what_cannot_begin_is_one_line(tmp_path: Path) -> None:
    model = make_model(tmp_path / "model", "qwen3")
    taken = socket.create_server(("127.0.0.1", 0))
    file = tmp_path / "file"
    file.write_text("x")
    with taken, engine_for(model, "hello") as engine:
        good = {"engine": engine.url, "tokenizer": model, "out": tmp_path / "out", "port": 0}
        for name, value, says in (
            ("engine", "http://127.0.0.1:9", "--engine http://127.0.0.1:9: "),
            ("engine", "nowhere", "http://HOST:PORT"),
            ("tokenizer", tmp_path / "none", "none"),
            ("out", file, "file"),
            ("port", taken.getsockname()[1], "choose another"),
            ("model", "other", "tiny is"),
            ("family", "klingon", "klingon"),
            ("template-arg", "thinking", "write name=value"),
        ):
            words = [f"--{key}={each}" for key, each in {**good, name: value}.items()]
            code, told = run(*words)
            assert (code, told.count("\n")) == (2, 1), told
            assert told.startswith("envkit: "), told
            assert says in told
    assert not (tmp_path / "out").exists()


def test_a_store_that_another_process_writes_is_refused(tmp_path: Path) -> None:
    with proxied(tmp_path) as proxy:
        options = ("--engine", proxy.engine.url, "--tokenizer", tmp_path / "model")
        code, told = run(*options, "--out", proxy.out, "--port", 0)
        assert (code, told.count("\n")) == (2, 1), told
        assert str(proxy.process.pid) in told
