# SPDX-License-Identifier: Apache-2.0
"""What people wrote to each other: mails, chat spaces, a calendar.

talk        how a thread is set down, and who writes
operations, digital, clients, finance, firm  the threads, a module for each mailbox
spaces      the chat
diary       the calendar

`apps_data` holds them as the programs keep them. The same lies as exports in
`filesystem/Correspondence`, a mailbox file for each module and the messages of the chat.
"""

from pathlib import Path

from facts.firm import FIRM
from forms.ics import calendar
from forms.mbox import mbox
from forms.takeout import takeout

from post import clients, diary, digital, finance, firm, operations, spaces
from post.talk import mails

MAILBOXES = {
    "operations": operations.THREADS,
    "digital": digital.THREADS,
    "strategy_and_organisation": clients.THREADS,
    "finance": finance.THREADS,
    "firm": firm.THREADS,
}


def write(drive: Path, state: Path) -> None:
    """Write the mail, the chat and the calendar; attachments are read from the drive."""
    boxes = {name: mails(threads, drive) for name, threads in MAILBOXES.items()}
    everything = [mail for found in boxes.values() for mail in found]
    files = {f"Correspondence/{name}.mbox": mbox(found) for name, found in boxes.items()}
    chat = takeout(spaces.SPACES, spaces.PEOPLE)
    events = calendar(diary.EVENTS, FIRM)
    files |= {
        f"Correspondence/chat/{name}": rest
        for name, rest in chat.items()
        if name.startswith("Groups")
    }
    _put(drive, files | {"Correspondence/calendar.ics": events})
    _put(state, {"mail/mailbox.mbox": mbox(everything), "calendar/calendar.ics": events})
    _put(state / "chat", chat)


def _put(root: Path, files: dict[str, bytes]) -> None:
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content)
