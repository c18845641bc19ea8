# SPDX-License-Identifier: Apache-2.0
"""What a token costs, by name; each loss is a frozen dataclass of its settings that is called.

ratio      how far the policy is from the rollout
dppo       `Dppo`, `DppoKl`, `DppoTopk`
clipped    `Ppo`, `PpoDualClip`, `Cispo`, `Gspo`, `Tis`
plain      `Glm5`, `Reinforce`
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from rltrain.objective.loss.clipped import Cispo, Gspo, Ppo, PpoDualClip, Tis
from rltrain.objective.loss.dppo import Dppo, DppoKl, DppoTopk
from rltrain.objective.loss.plain import Glm5, Reinforce

type Loss = Dppo | DppoKl | DppoTopk | Glm5 | Ppo | PpoDualClip | Cispo | Gspo | Tis | Reinforce

LOSSES: Final[Mapping[str, type[Loss]]] = MappingProxyType(
    {
        "dppo": Dppo,
        "dppo_kl": DppoKl,
        "dppo_topk": DppoTopk,
        "glm5": Glm5,
        "ppo": Ppo,
        "ppo_dual_clip": PpoDualClip,
        "cispo": Cispo,
        "gspo": Gspo,
        "tis": Tis,
        "reinforce": Reinforce,
    }
)
