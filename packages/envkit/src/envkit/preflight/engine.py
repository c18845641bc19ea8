# SPDX-License-Identifier: Apache-2.0
"""The engine of the agent ``model``: found or started, asked for one token, told to every trial.

Contract: what is wrong with the engine, the tokenizer or a setting is one line before a box is
started. An engine that was started here ends with the run, however that ends.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from envkit.agent.engine import open_engine
from envkit.agent.engine.asked import is_plain
from envkit.agent.engine.serve import ServeOptions, serving
from envkit.agent.prompt import opening
from envkit.agent.settings import ModelSettings
from envkit.agent.types import EncodedPrompt
from envkit.agent.warm import voice_of
from envkit.fault import EngineError, HarnessError
from envkit.preflight.amended import Amend
from envkit.preflight.types import Plan
from envkit.retry import Backoff
from envkit.trial import policy
from envkit.trial.policy import VLLM

ONCE_MORE: Final = Backoff(tries=2, first_s=1.0)
"""An engine that does not answer when a run begins is down, not restarting."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Serve:
    """How an engine is started, where one is to be."""

    log: Path
    python: Path | None = None
    """Interpreter that has vLLM; None for this one."""
    arguments: tuple[str, ...] = ()
    """More of vLLM's own."""


def model_args(
    *, engine: str, model: str, tokenizer: Path | None, more: Mapping[str, Any]
) -> dict[str, Any]:
    """Keyword arguments of the agent ``model``, as a command line names them.

    Raises:
        HarnessError: it names no engine or no tokenizer.
    """
    told = {"engine": {"url": engine, "model": model}} if engine else {}
    args: dict[str, Any] = {**told, **more}
    if "engine" not in args:
        raise HarnessError("the agent model needs an engine: --engine URL, or --engine vllm:DIR")
    url = _engine(args)["url"]
    if tokenizer is None and url.startswith(VLLM):
        tokenizer = Path(url.removeprefix(VLLM))
    if tokenizer is not None:
        args.setdefault("tokenizer", str(tokenizer.resolve()))
    if "tokenizer" not in args:
        raise HarnessError(
            f"--engine {url}: its tokenizer and chat template are needed; name the directory of "
            "the model with --tokenizer DIR"
        )
    return args


def check_args(args: Mapping[str, Any]) -> None:
    """Raises EnvkitError where they make no agent; the tokenizer is loaded and proven."""
    url = str(_engine(args).get("url", ""))
    if not url.startswith(("http://", "https://", VLLM)):
        raise HarnessError(f"--engine {url}: write http://HOST:PORT, or vllm: and a directory")
    if url.startswith(VLLM) and not (Path(url.removeprefix(VLLM)) / "config.json").is_file():
        raise HarnessError(f"--engine {url}: holds no config.json; name a model's directory")
    voice_of(ModelSettings.read(**args))


@contextmanager
def engine_for(plan: Plan, serve: Serve) -> Generator[Amend]:
    """What tells a plan's trials of their engine, which answers meanwhile.

    Raises:
        EngineError: it cannot be started or reached, or does not give what a trajectory needs.
    """
    if plan.agent != policy.NAME:
        yield lambda spec: spec
        return
    args = plan.specs[0].agent_args
    with _served(_engine(args), serve) as engine:
        settings: dict[str, Any] = {**args, "engine": engine}
        try:
            met = asyncio.run(_meet(ModelSettings.read(**settings)))
        except EngineError as error:
            raise EngineError(f"--engine {engine['url']}: {error}") from error
        told = {**engine, **met}
        yield lambda spec: replace(spec, agent_args={**spec.agent_args, "engine": told})


@contextmanager
def _served(engine: dict[str, Any], serve: Serve) -> Generator[dict[str, Any]]:
    url = str(engine["url"])
    if not url.startswith(VLLM):
        yield engine
        return
    options = ServeOptions(
        model=Path(url.removeprefix(VLLM)).resolve(),
        python=_interpreter(url, serve),
        name=engine.get("model") or "policy",
        eager="--enforce-eager" in serve.arguments,
        arguments=tuple(each for each in serve.arguments if each != "--enforce-eager"),
    )
    print(f"starting vLLM for {options.model}; what it says: {serve.log}", file=sys.stderr)
    with asyncio.Runner() as runner:
        server = serving(options, serve.log)
        it = runner.run(server.__aenter__())
        try:
            yield {**engine, "url": it.url, "model": it.model}
        finally:
            runner.run(server.__aexit__(None, None, None))


def _interpreter(url: str, serve: Serve) -> Path:
    if serve.python is None and find_spec("vllm") is None:
        raise HarnessError(
            f"--engine {url}: this environment has no vllm; name the interpreter of one that has "
            "with --engine-python"
        )
    return serve.python or Path(sys.executable)


async def _meet(settings: ModelSettings) -> dict[str, Any]:
    """What is the same for all trials, out of one token sampled as they sample."""
    template = voice_of(settings).template
    prompt = EncodedPrompt()
    prompt.extend(template.prompt(opening("Are you there?"), ()))
    size = settings.engine.vocabulary or template.vocabulary_size
    options = replace(settings.engine, backoff=ONCE_MORE, vocabulary=size)
    async with open_engine(options) as engine:
        await engine.sample(
            prompt,
            max_tokens=1,
            stop_ids=template.stop_ids,
            sampling=settings.sampling,
            request_id="envkit-meets",
        )
        plain = is_plain(settings.sampling)
        return {
            "model": engine.identity.model,
            "protocol": engine.identity.protocol,
            "vocabulary": size,
            "logprobs_mode": None if plain else await engine.logprobs_mode(prompt, "envkit-meets"),
        }


def _engine(args: Mapping[str, Any]) -> dict[str, Any]:
    """`EngineOptions` by name, however they were written."""
    engine: str | Mapping[str, Any] = args["engine"]
    return {"url": engine} if isinstance(engine, str) else dict(engine)
