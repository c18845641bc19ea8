# SPDX-License-Identifier: Apache-2.0
"""Ids to text, by the copies of tokenizers that lie with the trajectories.

Contract: a tokenizer of another digest than the trajectory's is never used: its text would be
another one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from envkit.agent.hear import COPIES, Ear, ear
from envkit.fault import HarnessError, TemplateRefused
from envkit.trajectory.types import Identity


@dataclass(slots=True, kw_only=True)
class Texts:
    """The tokenizers that can be had."""

    places: Sequence[Path] = ()
    """Directories that may have a directory of copies."""
    given: Path | None = None
    """A model directory that somebody named."""
    missing: dict[str, str] = field(default_factory=dict[str, str])
    """By digest: why there is no text."""

    def ear(self, identity: Identity) -> Ear | None:
        """For one trajectory; None where only its ids can be shown.

        Raises:
            HarnessError: the directory that was named is of another tokenizer, or of none.
        """
        if self.given is not None:
            return self._given(self.given, identity)
        digest = identity.tokenizer_digest
        found = [place / COPIES / digest for place in self.places if digest]
        copy = next((each for each in found if (each / "tokenizer.json").exists()), None)
        if copy is None:
            self.missing[digest] = f"no copy of tokenizer {digest[:12]} in {COPIES}/"
            return None
        try:
            heard = ear(copy, family=identity.template_family)
        except TemplateRefused as error:
            self.missing[digest] = str(error)
            return None
        if heard.digest != digest:
            self.missing[digest] = f"{copy} is not the tokenizer it is named after"
            return None
        return heard

    def _given(self, directory: Path, identity: Identity) -> Ear:
        heard = ear(directory, family=identity.template_family)
        if heard.digest != identity.tokenizer_digest:
            raise HarnessError(
                f"--tokenizer {directory}: has digest {heard.digest[:12]}, the trajectory was made "
                f"with {identity.tokenizer_digest[:12]}; name the model it was sampled from"
            )
        return heard
