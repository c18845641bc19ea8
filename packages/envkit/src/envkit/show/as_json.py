# SPDX-License-Identifier: Apache-2.0
"""A listing and a story for other programs: texts as they are, nothing left out of them."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Final

from envkit.show.parts import Story, Turn
from envkit.show.rows import Listing, summary
from envkit.trajectory.plain import to_plain

SCHEMA: Final = "envkit.show/1"


def listing_json(listing: Listing) -> dict[str, Any]:
    """All lines."""
    return {
        "schema": SCHEMA,
        "trajectories": [{**asdict(each), "stop": each.stop.value} for each in listing.lines],
        "damaged": list(listing.damaged),
        "summary": dict(summary(listing.lines)) if listing.lines else {},
    }


def story_json(story: Story) -> dict[str, Any]:
    """A story, without its ids and logprobs: the store has those."""
    row, episode = story.trajectory, story.trajectory.episode
    return {
        "schema": SCHEMA,
        "identity": to_plain(row.identity),
        "outcome": to_plain(row.outcome),
        "stop": episode.stop.value,
        "limits": to_plain(episode.limits),
        "used": to_plain(episode.used),
        "final_answer": episode.final_answer,
        "has_text": story.has_text,
        "notes": list(story.notes),
        "prompt": {"text": story.prompt, "tokens": story.prompt_tokens},
        "tokens": {each.name: each.amount for each in story.tokens},
        "seconds": {each.name: each.amount for each in story.seconds},
        "turns": [_turn(each) for each in story.turns],
        "unlikely": [to_plain(each) for each in story.unlikely],
    }


def _turn(turn: Turn) -> dict[str, Any]:
    return {
        "turn": turn.number,
        "request": to_plain(turn.request),
        "text": turn.text,
        "content": turn.content,
        "thinking": turn.thinking,
        "calls": [
            {
                **to_plain(each.record),
                "arguments": None if each.arguments is None else dict(each.arguments),
                "result": each.result,
            }
            for each in turn.calls
        ],
        "parse_faults": [to_plain(each) for each in turn.faults],
        "observed": turn.observed,
        "observed_tokens": turn.observed_tokens,
        "harness": [to_plain(each) for each in turn.told],
        "waited_s": turn.waited_s,
        "mean_logprob": turn.mean_logprob,
        "weights": [list(each) for each in turn.weights],
    }
