# SPDX-License-Identifier: Apache-2.0
"""Chat spaces and people, in the layout that Google Chat exports.

`Groups/Space NAME/{group_info,messages}.json` and `Users/User N/user_info.json`. Message ids are
`space/topic/message`, and a topic's first message bears the topic's id.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.headerregistry import Address


@dataclass(frozen=True, slots=True, kw_only=True)
class Post:
    """One message; `topic` numbers the thread of its space that it belongs to."""

    topic: int
    date: datetime
    author: Address
    text: str
    reactions: Mapping[str, tuple[Address, ...]] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """A room: its name, who is in it, and what was written there."""

    name: str
    members: tuple[Address, ...]
    posts: tuple[Post, ...]


def takeout(spaces: Sequence[Space], people: Sequence[Address]) -> dict[str, bytes]:
    """Every file of the export, by its relative path."""
    files: dict[str, bytes] = {}
    for space in spaces:
        folder = f"Groups/Space {space.name}"
        files[f"{folder}/group_info.json"] = _json(
            {"name": space.name, "members": [_person(member) for member in space.members]}
        )
        files[f"{folder}/messages.json"] = _json({"messages": messages(space)})
    for number, person in enumerate(people, 1):
        memberships = [_membership(space) for space in spaces if person in space.members]
        files[f"Users/User {number}/user_info.json"] = _json(
            {"user": _person(person), "membership_info": memberships}
        )
    return files


def _membership(space: Space) -> dict[str, str]:
    state = "MEMBER_JOINED"
    return {"group_name": space.name, "group_id": f"Space {space.name}", "membership_state": state}


def messages(space: Space) -> list[dict[str, object]]:
    """The space's messages in the order of their dates."""
    ordered = sorted(space.posts, key=lambda post: post.date)
    return [_message(space, post, number) for number, post in enumerate(ordered, 1)]


def _message(space: Space, post: Post, number: int) -> dict[str, object]:
    topic = f"topic-{post.topic}"
    reactions = [
        {"emoji": {"unicode": emoji}, "reactor_emails": [person.addr_spec for person in people]}
        for emoji, people in (post.reactions or {}).items()
    ]
    found: dict[str, object] = {
        "creator": _person(post.author),
        "created_date": _date(post.date),
        "text": post.text,
        "topic_id": topic,
        "message_id": f"Space {space.name}/{topic}/{number}",
    }
    return found | ({"reactions": reactions} if reactions else {})


def _person(person: Address) -> dict[str, str]:
    return {"name": person.display_name, "email": person.addr_spec, "user_type": "Human"}


def _date(date: datetime) -> str:
    utc = date.astimezone(UTC)
    return (
        f"{utc:%A, %B} {utc.day}, {utc.year} at {utc.hour % 12 or 12}:{utc:%M:%S} "
        f"{'PM' if utc.hour >= 12 else 'AM'} UTC"
    )


def _json(value: object) -> bytes:
    return (json.dumps(value, ensure_ascii=False, indent=2) + "\n").encode()
