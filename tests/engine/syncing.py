# SPDX-License-Identifier: Apache-2.0
"""A trainer that syncs with running engines: ``syncing.py ASKED``, JSON in and JSON out.

It runs in the trainer's environment. The policy is trained by `FsdpBackend` between syncs, on what
an engine sampled and rewards drawn at random: small steps, of every weight. Not a test by itself.
"""

from __future__ import annotations

import functools
import json
import math
import sys
import threading
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from spoiling import KINDS, Named
from transformers import AutoConfig, AutoModelForCausalLM

from envkit.trajectory.types import Stop
from rltrain.batch.cost import Cost
from rltrain.batch.micro import cut
from rltrain.batch.sample import Sample
from rltrain.batch.stamp import stamp
from rltrain.objective.config import ObjectiveConfig
from rltrain.objective.loss.dppo import Dppo
from rltrain.objective.terms import TermsConfig
from rltrain.policy.config import OptimizerConfig, PolicyConfig
from rltrain.policy.fsdp.backend import FsdpBackend
from rltrain.policy.ranks import joined
from rltrain.policy.types import Goal
from rltrain.sync.canary import Canary, Checked
from rltrain.sync.config import SyncConfig
from rltrain.sync.errors import CanaryAlarm, SyncError, WrongWeights
from rltrain.sync.sender import open_sender
from rltrain.sync.types import Replica, Synced
from rltrain.sync.version import WeightVersion

CONTEXT, VOCABULARY = 2048, 323
ANSWER_S, TRIES = 300, 6
PROMPT = [1, 7, 11]
CROWD = {"model": "policy", "prompt": [2, 7], "n": 15, "max_tokens": 1000, "ignore_eos": True}
"""Beside a long request, so that it takes seconds."""
MODEL: dict[str, Any] = {
    "vocab_size": VOCABULARY,
    "hidden_size": 128,
    "intermediate_size": 256,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "max_position_embeddings": CONTEXT,
    "initializer_range": 0.12,
}
EXPERTS = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32}
MORE: dict[str, dict[str, Any]] = {"qwen3": {"tie_word_embeddings": True}, "qwen3_moe": EXPERTS}


def make(family: str, place: Path) -> None:
    """A model with clear preferences."""
    torch.manual_seed(0)
    config = AutoConfig.for_model(family, **MODEL, **MORE.get(family, {}))
    AutoModelForCausalLM.from_config(config).save_pretrained(place)


class Trainer:
    """A policy, its engines, and what they last sampled."""

    def __init__(self, asked: dict[str, Any]) -> None:
        self.replicas = [Replica(**each) for each in asked["replicas"]]
        self.family: str = asked["family"]
        self.path = asked["model"]
        self.config = SyncConfig(**asked.get("config", {}))
        self.backend = FsdpBackend(
            PolicyConfig(path=self.path, dtype="float32"),
            OptimizerConfig(learning_rate=asked.get("rate", 1e-4)),
        )
        self.sender = open_sender(self.config, self.replicas, family=self.family)
        self.canary = Canary(
            self.config.canary,
            vocabulary=VOCABULARY,
            context_tokens=CONTEXT,
            dtype="float32",
            cap=4096,
        )
        self.steps = 0
        self.recent: list[Sample] = []

    @property
    def version(self) -> WeightVersion:
        return WeightVersion(lineage=1, step=self.steps)

    def sync(self, spoil: Callable[[Iterable[Named]], Iterator[Named]] | None = None) -> Synced:
        weights = self.backend.weights()
        synced = self.sender.sync(spoil(weights) if spoil else weights, self.version)
        assert synced is not None
        return synced

    def check(self) -> Checked:
        checked = self.canary.check(self.backend, self.replicas, self.version, self.recent)
        assert checked is not None
        return checked

    def train(self) -> None:
        """One step."""
        drawn = np.random.default_rng(self.steps)
        samples = [
            replace(each, reward=float(drawn.integers(0, 2)), valid=True, live=True)
            for each in self.recent
        ]
        stamped = stamp(ObjectiveConfig(), samples)
        (batches,) = cut(stamped, Cost(a=1.0, b=0.0), cap=4096, ranks=1)
        self.backend.step(batches, Goal(loss=Dppo(), terms=TermsConfig()))
        self.steps += 1

    def sample(self, count: int, tokens: int) -> None:
        """Of two prompts in turn, by the first engine."""
        body = {
            "model": "policy",
            "prompt": [[1 + number % 2, 7, 11] for number in range(count)],
            "max_tokens": tokens,
            "temperature": 1.0,
            "logprobs": 0,
            "ignore_eos": True,
            "return_token_ids": True,
        }
        told = post(self.replicas[0].url, "/v1/completions", body)
        self.recent = [
            sample(number, choice["prompt_token_ids"] + choice["token_ids"], 3)
            for number, choice in enumerate(told["choices"])
        ]


def sample(number: int, ids: list[int], prompt: int) -> Sample:
    mask = np.arange(len(ids)) >= prompt
    return Sample(
        trajectory_id=f"t{number}",
        group_id=f"g{number % 2}",
        token_ids=np.array(ids, np.int32),
        mask=mask,
        logprobs=np.where(mask, -1.0, np.nan).astype(np.float32),
        weight_version=np.where(mask, 0, -1).astype(np.int32),
        temperature=1.0,
        reward=0.0,
        valid=True,
        live=True,
        stop=Stop.LENGTH,
        environment_tokens=0,
    )


def asked_for(url: str, path: str, body: Any) -> urllib.request.Request:
    data = json.dumps(body).encode()
    return urllib.request.Request(url + path, data, {"Content-Type": "application/json"})


def post(url: str, path: str, body: Any = None) -> Any:
    with urllib.request.urlopen(asked_for(url, path, body), timeout=ANSWER_S) as answer:
        return json.loads(answer.read() or "null")


def figures(checked: Checked) -> dict[str, Any]:
    """The worst of all engines."""
    every = [each for of in checked.replicas for each in (of.fixed, of.recent) if each is not None]
    return {
        "mean": max(each.mean for each in every),
        "most": max(each.most for each in every),
        "tokens": min((of.recent.tokens for of in checked.replicas if of.recent), default=0),
        "trajectories": min(
            (of.recent.trajectories for of in checked.replicas if of.recent), default=0
        ),
    }


def good(trainer: Trainer, asked: dict[str, Any]) -> Any:
    """So many good syncs; what was said of each."""
    found: list[dict[str, Any]] = []
    false: list[str] = []
    for number in range(asked["syncs"]):
        if number % 50 == 0:
            trainer.sample(16, 160)
        trainer.train()
        try:
            synced = trainer.sync()
            checked = trainer.check()
            checked.expect_quiet()
        except SyncError as error:
            false.append(str(error))
            break
        found.append(
            {
                **figures(checked),
                "sync_s": synced.seconds,
                "canary_s": checked.seconds,
                "paused_s": max(each.paused_s for each in synced.replicas),
                "verified": synced.verified,
                "tensors": synced.tensors,
                "bytes": synced.bytes,
            }
        )
    return {"syncs": len(found), "false_alarms": false, "each": found}


def wrong(trainer: Trainer, asked: dict[str, Any]) -> Any:
    """Every kind in every place, each after a good sync: by what it was caught, in what words."""
    found = []
    for kind, where in asked["wrong"]:
        trainer.train()
        whole(trainer)
        spoil(trainer.replicas[-1], where, kind)
        if kind == "stale":  # it has to have been sent something
            trainer.sync()
        trainer.train()
        source = KINDS[kind] if where == "source" else None
        found.append({"kind": kind, "where": where, **caught(trainer, source)})
        for replica in trainer.replicas:
            spoil(replica, "wire", "as sent")
            post(replica.url, "/resume")
    whole(trainer)
    return found


def caught(trainer: Trainer, source: Any) -> dict[str, Any]:
    by, words = "nothing", ""
    try:
        trainer.sync(source)
        trainer.check().expect_quiet()
    except CanaryAlarm as error:
        by, words = "log-probs", str(error)
    except WrongWeights as error:
        by, words = "what it holds", str(error)
    except SyncError as error:
        by, words = "the engine's refusal", str(error)
    return {"by": by, "words": words, "difference": difference(trainer)}


def difference(trainer: Trainer) -> float | None:
    """What the log-probs of the last engine would have said, where it still answers."""
    for replica in trainer.replicas:
        post(replica.url, "/resume")
        post(replica.url, "/update_weight_version", {"new_version": str(trainer.version.number)})
    means = [each.fixed.mean for each in trainer.check().replicas]
    return max(means) if means and all(map(math.isfinite, means)) else None


def whole(trainer: Trainer) -> None:
    """A sync with which nothing is wrong."""
    trainer.sync()
    trainer.check().expect_quiet()


def spoil(replica: Replica, where: str, kind: str) -> None:
    if where == "source":
        return
    body = {"method": "spoil", "args": [where, kind]}
    post(replica.url, "/collective_rpc", body)


class Long:
    """A request that tells how far it is."""

    def __init__(self, url: str, tokens: int) -> None:
        self.ids: list[int] = []
        self.logprobs: list[float] = []
        self.spans: list[dict[str, Any]] = []
        self._more, self._over = threading.Condition(), False
        body = {
            "model": "policy",
            "token_ids": PROMPT,
            "stream": True,
            "stream_interval": 8,
            "sampling_params": {
                **{"max_tokens": tokens, "temperature": 1.0, "ignore_eos": True},
                **{"logprobs": 1, "detokenize": False},
            },
        }
        request = asked_for(url, "/inference/v1/generate", body)
        self._thread = threading.Thread(target=self._read, args=(request,))
        self._thread.start()

    @property
    def runs(self) -> bool:
        return self._thread.is_alive()

    def wait_for(self, tokens: int) -> None:
        """So many, or its end."""
        with self._more:
            assert self._more.wait_for(lambda: len(self.ids) >= tokens or self._over, ANSWER_S)

    def join(self) -> None:
        self._thread.join()

    def _read(self, request: urllib.request.Request) -> None:
        with urllib.request.urlopen(request, timeout=ANSWER_S) as answer:
            for line in answer:
                if line.startswith(b"data: {"):
                    self._add(json.loads(line[6:]))
        with self._more:
            self._over = True
            self._more.notify_all()

    def _add(self, event: dict[str, Any]) -> None:
        with self._more:
            for choice in event["choices"]:
                self.ids += choice.get("token_ids") or []
                self.spans = choice.get("weight_versions") or self.spans
                content = (choice.get("logprobs") or {}).get("content") or []
                self.logprobs += [each["logprob"] for each in content]
            self._more.notify_all()


def in_flight(trainer: Trainer, asked: dict[str, Any], *, reset: bool = False) -> Any:
    """Two syncs inside one long request: its spans, and its tokens scored again.

    An engine may be done before its first tokens are read here, where the machine is busy; then
    another request is made.
    """
    for _ in range(TRIES):
        if found := _tried(trainer, asked, reset=reset):
            return found
    raise SystemExit(f"{TRIES} requests were over before two syncs were")


def _tried(trainer: Trainer, asked: dict[str, Any], *, reset: bool) -> dict[str, Any] | None:
    kept: dict[str, dict[str, torch.Tensor]] = {}
    versions: list[WeightVersion] = []
    for _ in range(3):  # before the request, which does not wait for a trainer
        for _ in range(asked["steps"]):
            trainer.train()
        versions.append(trainer.version)
        kept[str(trainer.version.number)] = {
            name: each.clone() for name, each in trainer.backend.weights()
        }

    def sync(version: WeightVersion) -> Synced:
        weights = kept[str(version.number)].items()
        synced = trainer.sender.sync(weights, version, reset=reset)
        assert synced is not None
        return synced

    sync(versions[0])
    url = trainer.replicas[0].url
    request = Long(url, asked["long"])
    request.wait_for(1)
    crowd = threading.Thread(target=post, args=(url, "/v1/completions", CROWD))
    crowd.start()
    first = sync(versions[1])
    request.wait_for(len(request.ids) + 1)
    second = sync(versions[2])
    still = request.runs
    request.join()
    crowd.join()
    if len(request.spans) < 3:
        return None
    spans = [_scored_again(trainer, kept, request, span) for span in request.spans]
    return {
        "spans": spans,
        "running_after_last_sync": still,
        "paused_s": [each.replicas[0].paused_s for each in (first, second)],
    }


def _scored_again(
    trainer: Trainer, kept: dict[str, dict[str, torch.Tensor]], request: Long, span: dict[str, Any]
) -> dict[str, Any]:
    again = by_transformers(trainer.path, kept[span["version"]], PROMPT + request.ids)
    off = np.abs(request.logprobs - again[len(PROMPT) - 1 :])[span["start"] : span["end"]]
    return {
        **{"version": int(span["version"]), "tokens": len(off), "mean": float(off.mean())},
        **{"p99": float(np.quantile(off, 0.99)), "most": float(off.max())},
    }


def by_transformers(path: str, weights: dict[str, torch.Tensor], ids: list[int]) -> Any:
    """Log-prob of every id but the first; nothing of ours reckons here."""
    model = AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(weights[name])
        chances = model(torch.tensor([ids])).logits[0].log_softmax(-1)
    return chances[torch.arange(len(ids) - 1), torch.tensor(ids[1:])].double().numpy()


def unknown(trainer: Trainer, asked: dict[str, Any]) -> Any:
    """A tensor that no module of the engine has; it has to be replaced afterwards."""

    def with_another(weights: Iterable[Named]) -> Iterator[Named]:
        yield from weights
        yield "model.layers.9.mlp.up_proj.weight", torch.zeros(4, 4)

    trainer.train()
    try:
        trainer.sync(with_another)
    except SyncError as error:
        return {"words": str(error), "state": error.outcomes[0].state.value}
    return {"words": "nothing was said"}


def by_file(trainer: Trainer, asked: dict[str, Any]) -> Any:
    """One sync by files, by a trainer that takes the other's place."""
    config = SyncConfig(method="file", directory=asked["directory"])
    before = trainer.sender
    trainer.sender = open_sender(config, trainer.replicas, family=trainer.family)
    trainer.train()
    synced, checked = trainer.sync(), trainer.check()
    checked.expect_quiet()
    before.join(trainer.replicas)
    trainer.sender = before
    return {**figures(checked), "verified": synced.verified, "tensors": synced.tensors}


PARTS = {"good": good, "by_file": by_file, "wrong": wrong, "in_flight": in_flight}
PARTS["unknown"] = unknown
PARTS["in_flight_reset"] = functools.partial(in_flight, reset=True)


def main(asked: dict[str, Any]) -> dict[str, Any]:
    torch.set_num_threads(1)
    with joined():
        trainer = Trainer(asked)
        trainer.sync()
        first = trainer.check()
        trainer.sample(16, 160)
        found: dict[str, Any] = {"first": figures(first)}
        for part in asked["parts"]:
            found[part] = PARTS[part](trainer, asked)
        return found


if __name__ == "__main__":
    if sys.argv[1] == "make":
        make(sys.argv[2], Path(sys.argv[3]))
    else:
        print(json.dumps(main(json.loads(sys.argv[1]))))
