# SPDX-License-Identifier: Apache-2.0
"""``score_rows.py STORE POLICY``: the mean log-prob of what the model said, a row at a time.

By transformers alone, in float32, one trajectory after the other, with all logits at once: nothing
of rltrain computes anything here. Prints JSON: trajectory id to nats a token.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM

from envkit.trajectory.store import Store


def main(store: Path, policy: Path) -> dict[str, float]:
    model = AutoModelForCausalLM.from_pretrained(policy, dtype=torch.float32)
    found: dict[str, float] = {}
    for row in Store(store):
        ids = torch.tensor(row.episode.stream.token_ids, dtype=torch.int64)
        said = torch.tensor(row.episode.stream.loss_mask).nonzero().flatten()
        with torch.no_grad():
            chances = model(ids[None]).logits[0].log_softmax(-1)
        if len(said):
            found[row.identity.trajectory_id] = float(chances[said - 1, ids[said]].mean())
    return found


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), Path(sys.argv[2]))))
