# SPDX-License-Identifier: Apache-2.0
"""The client of an engine that speaks token ids: one request, one sample, or one named error.

What enters a sample is what the engine said in one answer, whole and checked (`judge`). A request
that failed is sent again with the same ids, which is safe because nothing of the failed one was
kept: the next answer is another draw from the same distribution. An answer that came whole is never
drawn again, however it looks: choosing among draws would change the distribution.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Coroutine, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

import orjson

from envkit.agent.engine.asked import TOP_LOGPROBS_MOST, Asked, is_plain
from envkit.agent.engine.connection import Connection, Reply
from envkit.agent.engine.judge import Course, judged, version_number
from envkit.agent.engine.options import EngineOptions
from envkit.agent.engine.probe import Table, probe
from envkit.agent.engine.wire import Completions, Generate, Wire
from envkit.agent.types import EncodedPrompt, Sampled
from envkit.deadline import DeadlineExceeded
from envkit.fault import (
    EngineBusy,
    EngineGarbage,
    EngineRefused,
    EngineUnreachable,
    EnvkitError,
    HarnessError,
    OtherDistribution,
    Phase,
    PromptTooLong,
    WeightsChanged,
)
from envkit.retry import Attempts, retry
from envkit.trajectory.types import EngineId, LogprobsMode, Sampling

ABORT_S: Final = 5.0
"""An abort is a courtesy: the engine also sees the connection go."""
RETRY_AFTER_MOST_S: Final = 60.0
"""How long an engine's own word for the next try is heeded; a longer one is an outage."""
PROBED_MOST: Final = 256
"""Ids of a prompt that a probe is asked with: enough for a distribution that is not flat."""

_UNREADABLE: Final = (AttributeError, KeyError, OverflowError, TypeError, ValueError)
"""What reading raises by what is not the protocol."""

_log = logging.getLogger("envkit.agent.engine")


class EngineClient:
    """Samples token ids after token ids; made by `open_engine`."""

    def __init__(
        self, options: EngineOptions, connection: Connection, wire: Wire, told: dict[str, Any]
    ) -> None:
        self._options = options
        self._connection = connection
        self._wire = wire
        self._identity = EngineId(model=told["id"], server=told["server"], protocol=wire.name)
        self._context = int(told["max_model_len"])
        self._weights = bool(told["weights"])
        self._mode: LogprobsMode | None = options.logprobs_mode
        self._plain: Sampling | None = None
        self._kept: int | None = None
        """Weights of the trajectory's salt, where it has one."""
        self._free_at = 0.0
        self._aborts: set[asyncio.Task[None]] = set()

    @property
    def identity(self) -> EngineId:
        """Which engine it is."""
        return self._identity

    @property
    def context_tokens(self) -> int:
        """The longest stream it takes."""
        return self._context

    async def sample(
        self,
        prompt: EncodedPrompt,
        *,
        max_tokens: int,
        stop_ids: Sequence[int],
        sampling: Sampling,
        request_id: str,
    ) -> Sampled:
        """Sample until a stop token or ``max_tokens``.

        Raises:
            EngineError: it failed as often as is tried, answered what is not the protocol, or what
                may not be trained on.
            PromptTooLong: no room is left for a token.
            DeadlineExceeded: nothing came in time (op ``generate``, or ``generate_idle`` between
                the tokens of a stream).
        """
        self._check(prompt, max_tokens, sampling)
        if sampling is not self._plain and not is_plain(sampling):
            await self._expect_processed(prompt, request_id)
        else:
            self._plain = sampling
        asked = Asked(
            prompt=prompt,
            max_tokens=max_tokens,
            stop_ids=stop_ids,
            sampling=sampling,
            request_id=request_id,
        )
        return await self._tried(asked)

    async def logprobs_mode(self, prompt: EncodedPrompt, request_id: str) -> LogprobsMode:
        """Which distribution its logprobs are of; asked once (`probe`)."""
        if self._mode is None:

            async def draw(sampling: Sampling) -> Table:
                return await self._best(prompt, sampling, f"{request_id}-probe")

            self._mode = await probe(draw)
            self._kept = None  # a probe is not the first request
        return self._mode

    async def close(self) -> None:
        """Wait for aborts that are still under way."""
        if self._aborts:
            await asyncio.wait(self._aborts, timeout=ABORT_S)

    def _check(self, prompt: EncodedPrompt, max_tokens: int, sampling: Sampling) -> None:
        if len(prompt.ids) >= self._context:
            raise PromptTooLong(f"{len(prompt.ids)} tokens, the engine takes {self._context}")
        if not prompt.ids or max_tokens < 1:
            raise HarnessError(f"{max_tokens} tokens after {len(prompt.ids)}: nothing to sample")
        if sampling.top_logprobs > TOP_LOGPROBS_MOST:
            raise HarnessError(f"top_logprobs is at most {TOP_LOGPROBS_MOST}")

    async def _expect_processed(self, prompt: EncodedPrompt, request_id: str) -> None:
        if await self.logprobs_mode(prompt, request_id) == "raw":
            raise OtherDistribution(
                "the engine gives logprobs before temperature and truncation, which is not what"
                " was sampled from: start it with --logprobs-mode processed_logprobs, or sample at"
                " temperature 1 without top_p, top_k, min_p and penalties"
            )

    async def _best(self, prompt: EncodedPrompt, sampling: Sampling, request_id: str) -> Table:
        """The best tokens after a prompt, and their logprobs."""
        head = EncodedPrompt()
        head.extend(prompt.ids[:PROBED_MOST])
        asked = Asked(
            prompt=head, max_tokens=1, stop_ids=(), sampling=sampling, request_id=request_id
        )
        sampled = await self._tried(asked)
        assert sampled.topk_ids is not None
        assert sampled.topk_logprobs is not None
        pairs = zip(sampled.topk_ids[0].tolist(), sampled.topk_logprobs[0].tolist(), strict=True)
        return {each: logprob for each, logprob in pairs if each >= 0}

    async def _tried(self, asked: Asked) -> Sampled:
        """One request, as often as it takes."""
        began = time.monotonic()
        attempts = Attempts()

        async def once() -> Sampled:
            await self._until_free()
            return await self._once(asked, len(attempts.failed) + 1, began)

        return await retry(
            once,
            phase=Phase.ACT,
            idempotent=True,
            backoff=self._options.backoff,
            attempts=attempts,
        )

    async def _once(self, asked: Asked, number: int, began: float) -> Sampled:
        """Try ``number`` of a request that began at ``began``."""
        kv_version = await self._kv()
        version = await self._version()
        sent, name = time.monotonic(), f"{asked.request_id}.{number}"
        reply = await self._posted(asked, name, self._salt(kv_version))
        ended = time.monotonic()
        try:
            answer = self._wire.read(reply.payloads, asked)
        except _UNREADABLE as error:
            raise self._garbage(reply, name, error) from error
        if await self._version() != version:
            raise WeightsChanged("the weights changed while the engine sampled")
        first = ended if reply.first_at is None else reply.first_at
        queue_s = 0.0 if reply.first_at is None else first - sent
        queue_s = queue_s if answer.queue_s is None else answer.queue_s
        course = Course(
            queued_s=min(sent - began + max(queue_s, 0.0), ended - began),
            first_token_s=first - began,
            seconds=ended - began,
            tries=number,
        )
        try:
            return judged(
                answer,
                asked,
                vocabulary=self._options.vocabulary,
                version=version,
                kv_version=-1 if kv_version is None else kv_version,
                context=self._context,
                course=course,
            )
        except _UNREADABLE as error:
            raise self._garbage(reply, name, error) from error

    async def _posted(self, asked: Asked, name: str, salt: str) -> Reply:
        """Send it; what we end early ends at the engine too, so that it burns no tokens."""
        body = self._wire.body(asked, self._identity.model, name, salt)
        try:
            return await self._connection.post(self._wire.path, *body)
        except EngineBusy as error:
            self._free_at = time.monotonic() + min(error.retry_after_s, RETRY_AFTER_MOST_S)
            raise
        except (asyncio.CancelledError, DeadlineExceeded, EngineGarbage, EngineUnreachable):
            self._background(self._abort(name))
            raise

    def _garbage(self, reply: Reply, name: str, error: Exception) -> EngineGarbage:
        """Whatever goes wrong in reading what is not the protocol, by its name."""
        shown = reply.payloads[0][:200].decode(errors="replace")
        return EngineGarbage(f"{name}: not the protocol {self._wire.name} ({error!r}): {shown!r}")

    async def _abort(self, request_id: str) -> None:
        body = orjson.dumps({"request_ids": [self._wire.aborted_as(request_id)]})
        try:
            await self._connection.tell("/inference/v1/abort_requests", body, ABORT_S)
        except EnvkitError as error:
            _log.debug("%s was not aborted: %s", request_id, error)

    def _background(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._aborts.add(task)
        task.add_done_callback(self._aborts.discard)

    async def _until_free(self) -> None:
        if (wait_s := self._free_at - time.monotonic()) > 0:
            await asyncio.sleep(wait_s)

    async def _version(self) -> int:
        """The weights' version by `EngineOptions`, or what the engine says where no answer does."""
        if self._wire.tells_versions:
            return self._options.weight_version
        return await self._current()

    async def _kv(self) -> int | None:
        """The oldest weights whose keys and values a request may attend to; None: not known.

        The engine may go on to others while the request waits: they are newer, and so are theirs.
        """
        if self._options.kv == "shared":
            return None
        if self._kept is None or self._options.kv == "reset":
            self._kept = await self._current()
        return self._kept

    def _salt(self, kv_version: int | None) -> str:
        salt = self._options.cache_salt
        return salt if kv_version is None else f"{salt}v{kv_version}"

    async def _current(self) -> int:
        """The version of the engine's weights, or what `EngineOptions` says where it tells none."""
        fixed = self._options.weight_version
        if not self._weights:
            return fixed
        told = await self._connection.ask("/weight_info")
        number = version_number(told.get("weight_version"))
        return fixed if number < 0 else number


@asynccontextmanager
async def open_engine(options: EngineOptions) -> AsyncGenerator[EngineClient]:
    """A client that knows its engine: which model, how long its context, which protocol.

    Raises what a request raises, and EngineRefused where the engine does not serve the model
    or not the protocol that was asked for.
    """
    async with Connection(options) as connection:

        async def describe() -> tuple[Wire, dict[str, Any]]:
            return await _wire(options, connection), await _described(options, connection)

        wire, told = await retry(
            describe, phase=Phase.ACT, idempotent=True, backoff=options.backoff
        )
        if options.kv != "shared" and not told["weights"] and options.weight_version < 0:
            raise EngineRefused(
                f"kv {options.kv!r} needs an engine that tells the version of its weights at "
                "/weight_info: start vLLM with VLLM_SERVER_DEV_MODE=1, or name the version"
            )
        client = EngineClient(options, connection, wire, told)
        try:
            yield client
        finally:
            await client.close()


async def _described(options: EngineOptions, connection: Connection) -> dict[str, Any]:
    try:
        models = (await connection.ask("/v1/models"))["data"]
        wanted = options.model or models[0]["id"]
        found = next((each for each in models if each["id"] == wanted), None)
        if found is None:
            served = ", ".join(each["id"] for each in models)
            raise EngineRefused(f"model {wanted!r} is not served: {served} is")
        length = int(found["max_model_len"])
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise EngineGarbage(
            f"/v1/models does not list models with max_model_len: {error!r}"
        ) from error
    version = await _optional(connection, "/version")
    return {
        "id": wanted,
        "max_model_len": length,
        "server": f"vllm {version['version']}" if "version" in version else "",
        "weights": "weight_version" in await _optional(connection, "/weight_info"),
    }


async def _optional(connection: Connection, path: str) -> dict[str, Any]:
    """What not every engine tells."""
    try:
        return await connection.ask(path)
    except (EngineRefused, EngineGarbage):
        return {}


async def _wire(options: EngineOptions, connection: Connection) -> Wire:
    """The protocol asked for, or the better one that the engine has."""
    if options.protocol == "completions":
        return Completions(options)
    status = await connection.status_of(Generate.path, b"{}")
    if status not in (403, 404, 405):
        return Generate(options)
    if options.protocol == "generate":
        raise EngineRefused(
            f"the engine does not offer {Generate.path} (HTTP {status}): start vLLM with"
            " --enable-scale-out"
        )
    return Completions(options)
