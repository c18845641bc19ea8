# SPDX-License-Identifier: Apache-2.0
"""Small models, made from a configuration, and ranks that work on them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import torch

RANKS = Path(__file__).with_name("ranks.py")
DEADLINE_S = 400


def qwen3(directory: Path, vocabulary: int = 97) -> Path:
    """Two layers of Qwen3; the same every time."""
    from transformers import Qwen3Config, Qwen3ForCausalLM

    torch.manual_seed(0)
    config = Qwen3Config(
        vocab_size=vocabulary,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=8,
        max_position_embeddings=512,
        tie_word_embeddings=False,
    )
    Qwen3ForCausalLM(config).save_pretrained(directory)
    return directory


def gradients(place: Path, model: Path, world: int, cases: list[dict[str, Any]]) -> list[Any]:
    """What so many ranks make of each case."""
    place.mkdir()
    told = place / "cases.json"
    told.write_text(json.dumps(cases), "utf-8")
    words = [sys.executable, str(RANKS), str(world), str(model), str(told), str(place)]
    settings = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    subprocess.run(words, env=settings, check=True, timeout=DEADLINE_S)
    return torch.load(place / "found.pt")
