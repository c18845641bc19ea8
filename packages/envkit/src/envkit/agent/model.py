# SPDX-License-Identifier: Apache-2.0
"""The agent that a model drives, token by token: ``envkit.agent.model:ModelAgent`` for Harbor.

Contract: whatever happens, ``episode.bin`` in the agent's log directory has the episode as far as
it came, durably, before anything is graded; ``calls.jsonl`` has a line a call, ``trajectory.json``
is ATIF. A fault of the infrastructure is raised after that, so that the trial is classified by it;
one of the teardown never takes an answer away.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, override

from harbor.agents.base import BaseAgent
from harbor.agents.capabilities import AgentCapabilities
from harbor.environments.base import BaseEnvironment
from harbor.models.agent.context import AgentContext

from envkit import __version__
from envkit.agent.engine import open_engine
from envkit.agent.engine.asked import is_plain
from envkit.agent.history import Acted, History
from envkit.agent.journal import JOURNAL_NAME, Journal, read_journal
from envkit.agent.limits import Account
from envkit.agent.loaded import Voice
from envkit.agent.loop import Hooks, Loop
from envkit.agent.mcp_client import Endpoint
from envkit.agent.prompt import SYSTEM_DIGEST, opening
from envkit.agent.replay import FINAL_ANSWER, ForgetsTools, HasToolEndpoint
from envkit.agent.resumed import Resumed
from envkit.agent.settings import ModelSettings
from envkit.agent.told import told
from envkit.agent.toolbelt.box import Box
from envkit.agent.toolbelt.code import CodeToolbelt
from envkit.agent.toolbelt.extras import Extended
from envkit.agent.toolbelt.mcp import Server, open_mcp
from envkit.agent.types import Engine, Toolbelt, ToolSpec
from envkit.agent.warm import voice_of
from envkit.deadline import within
from envkit.fault import HarnessError
from envkit.sandbox.ledger import ledger
from envkit.sandbox.session import rest, turn
from envkit.trajectory.episode_file import EPISODE_NAME, write_episode
from envkit.trajectory.types import EngineId, Episode, Identity, Stop

WORLD = "/filesystem"
_HEAD_CHARS = 500
"""Of a result's text on the call log; the trajectory has the whole."""


class ModelAgent(BaseAgent):
    """Takes the fields of `ModelSettings` as keyword arguments."""

    capabilities = AgentCapabilities(atif=True, mcp_servers=True, mcp_http_headers=True)

    def __init__(self, logs_dir: Path, *args: Any, **settings: Any) -> None:
        """Raises HarnessError where a setting means nothing."""
        known = {name: settings.pop(name) for name in ModelSettings.__slots__ if name in settings}
        super().__init__(logs_dir, *args, **settings)  # pyright: ignore[reportUnknownMemberType]
        self._settings = ModelSettings.read(**known)
        self._voice: Voice | None = None
        self._engine = EngineId(model="")
        self._tools: tuple[ToolSpec, ...] = ()
        self._belt_name = self._settings.toolbelt
        self._history = History()
        self._account = Account(limits=self._settings.limits)
        self._journal: Journal | None = None

    @staticmethod
    @override
    def name() -> str:
        """As it stands on records and reports."""
        return "model"

    @override
    def version(self) -> str:
        """The version of envkit."""
        return __version__

    @override
    async def setup(self, environment: BaseEnvironment) -> None:
        """Load tokenizer and template, so that what cannot be used fails before anything is asked.

        Raises:
            TemplateRefused: no trustworthy stream can be made with them.
        """
        self._voice = voice_of(self._settings)

    @override
    async def run(
        self, instruction: str, environment: BaseEnvironment, context: AgentContext
    ) -> None:
        """Play the episode; raises what the infrastructure failed at."""
        stop = Stop.FAULT
        self._account = Account(limits=self._settings.limits, evaluation=self._settings.evaluation)
        try:
            async with self._parts(environment) as (engine, belt):
                loop = self._going_on(self._loop(engine, belt))
                stop = await loop.run(opening(instruction))
                await self._answer(environment)
        except asyncio.CancelledError:
            stop = self._account.cut_short() if stop is Stop.FAULT else stop
            raise
        finally:
            if self._journal:
                self._journal.close()
            self._leave(stop, instruction)
            used = self._account.used
            context.metadata = {"stop": stop.value, "turns": used.turns}
            context.n_output_tokens = used.sampled_tokens

    def _loop(self, engine: Engine, belt: Toolbelt) -> Loop:
        assert self._voice is not None, "setup() comes first"
        limits = self._account.limits
        most = min(limits.context_tokens, engine.context_tokens)
        self._account.limits = replace(limits, context_tokens=most)
        return Loop(
            engine=engine,
            template=self._voice.template,
            parser=self._voice.parser,
            toolbelt=belt,
            account=self._account,
            sampling=self._settings.sampling,
            name=self._trial,
            hooks=Hooks(acted=self._log, waits=rest, turn=lambda calls: turn(calls + 1)),
            history=self._history,
        )

    def _going_on(self, loop: Loop) -> Loop:
        """The loop with its journal, and with the past of an attempt that was killed."""
        if self._settings.journal:
            loop.diary = self._journal = Journal.create(self.logs_dir / JOURNAL_NAME)
        if directory := self._settings.resume_from:
            past = read_journal(Path(directory, self.logs_dir.name, JOURNAL_NAME))
            resumed = Resumed(past, loop.engine, loop.diary, self._account.aged)
            loop.engine, loop.diary = resumed, resumed
        return loop

    @property
    def _trial(self) -> str:
        """Name of the trial's directory, where the agent's logs lie."""
        return self.logs_dir.parent.name

    @asynccontextmanager
    async def _parts(self, environment: BaseEnvironment) -> AsyncGenerator[tuple[Engine, Toolbelt]]:
        """Engine and toolbelt; closing them is on time, and what goes wrong then costs nothing."""
        stack = AsyncExitStack()
        try:
            assert self._voice is not None, "setup() comes first"
            size = self._voice.template.vocabulary_size
            options = self._settings.engine
            options = options if options.vocabulary else replace(options, vocabulary=size)
            engine = await stack.enter_async_context(open_engine(options))
            self._engine = engine.identity
            belt = await self._belt(environment, stack)
            self._belt_name, self._tools = belt.name, belt.tools
            yield engine, belt
            if isinstance(environment, ForgetsTools):
                environment.tools_done()
        finally:
            await self._closed(stack)

    async def _closed(self, stack: AsyncExitStack) -> None:
        with ledger().during("stop"):
            try:
                await within("stop", self._settings.budgets.stop_s, stack.aclose())
            except Exception as error:  # the boundary: closing is over, whatever it came to
                ledger().note(error)

    async def _belt(self, environment: BaseEnvironment, stack: AsyncExitStack) -> Toolbelt:
        budgets, extras = self._settings.budgets, self._settings.extras
        box = Box(environment, budgets)
        if self._settings.toolbelt == "code":
            if isinstance(environment, ForgetsTools):
                environment.tools_done()
            belt: Toolbelt = CodeToolbelt(box, environment.task_env_config.workdir or WORLD)
        else:
            servers = await self._servers(environment)
            expected = self._settings.expected_tools
            belt = await stack.enter_async_context(open_mcp(servers, box, budgets, expected))
        return Extended(belt, extras) if extras else belt

    async def _servers(self, environment: BaseEnvironment) -> list[Server]:
        """The gateway that envkit made for this trial, or whatever servers the task names."""
        if isinstance(environment, HasToolEndpoint):
            seconds = self._settings.budgets.gateway_start_s
            endpoint = await within("gateway_start", seconds, environment.tool_endpoint())
            return [Server(endpoint=endpoint, journals=True)]
        headers = self.mcp_header_env
        servers: list[Server] = []
        for each in self.mcp_servers:
            if each.url is None:
                raise HarnessError(f"server {each.name!r} has no URL: only HTTP is spoken here")
            refs = headers.refs.get(each.name, {})
            values = {name: headers.env[variable] for name, variable in refs.items()}
            endpoint = Endpoint(url=each.url, headers=values)
            servers.append(Server(endpoint=endpoint, journals=False))
        if not servers:
            raise HarnessError("the task names no MCP server; take the toolbelt code")
        return servers

    async def _answer(self, environment: BaseEnvironment) -> None:
        answer = self._history.final_answer
        if answer is None:
            return
        path = self.logs_dir / "final_answer.txt"
        await asyncio.to_thread(path.write_bytes, answer.encode("utf-8", "replace"))
        upload = environment.upload_file(path, FINAL_ANSWER)
        await within("transfer", self._settings.budgets.transfer_s, upload)

    def _log(self, acted: Acted) -> None:
        """A line as replay writes it; runs count calls by it."""
        seen = acted.observation
        line = {
            "at": time.time(),
            "call_id": seen.call.call_id,
            "tool": seen.call.name,
            "ok": seen.ok,
            "code": seen.code,
            "seconds": round(seen.seconds, 6),
            "waited_s": round(acted.waited_s, 6),
            "text": seen.text[:_HEAD_CHARS],
        }
        with (self.logs_dir / "calls.jsonl").open("a", encoding="utf-8", errors="replace") as file:
            file.write(json.dumps(line) + "\n")

    def _leave(self, stop: Stop, instruction: str) -> None:
        """What the writer of the store, people and the verdict need of the episode."""
        ledger().own_s = self._account.used.own_s
        episode, identity = self._history.episode(stop, self._account), self._identity()
        write_episode(self.logs_dir / EPISODE_NAME, identity, episode)
        with ledger().during("stop"):
            try:
                self._tell(identity, episode, instruction)
            except Exception as error:  # the boundary: it is for people, and costs no answer
                ledger().note(error)

    def _tell(self, identity: Identity, episode: Episode, instruction: str) -> None:
        assert self._voice is not None, "setup() comes first"
        document = told(
            self._history,
            self._voice,
            identity,
            episode,
            messages=opening(instruction),
            tools=self._tools,
        )
        text = json.dumps(document, indent=1)
        (self.logs_dir / "trajectory.json").write_text(text, encoding="utf-8")

    def _identity(self) -> Identity:
        """As much of it as is known here."""
        template = self._voice.template if self._voice else None
        sampling = self._settings.sampling
        mode = sampling.logprobs_mode if is_plain(sampling) else "processed"
        return Identity(
            trajectory_id=self._trial,
            group_id="",
            sample=0,
            task="",
            harness=f"envkit {self._belt_name}",
            harness_version=f"{__version__}+prompt.{SYSTEM_DIGEST[:12]}",
            tokenizer_digest=template.tokenizer_digest if template else "",
            template_digest=template.template_digest if template else "",
            template_family=template.family if template else "",
            engine=self._engine,
            sampling=replace(sampling, logprobs_mode=mode),
        )
