# SPDX-License-Identifier: Apache-2.0
"""``command-missing``: the shell has no program of that name.

Evidence: a failed call of a command tool with exit code 127, or whose last error line is the
shell's ``NAME: not found``. Prose or code sent to a shell also gives such lines, so over the corpus
the environment owns it only for a known program that fails in three tasks or more; a name that is
no program is the model's slip; a known one in fewer tasks stays unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from envkit.audit.cause import NOT_FOUND, error_lines
from envkit.audit.detect.types import (
    WIDESPREAD,
    Corpus,
    Detector,
    by_subject,
    call_finding,
    has_results,
    last_successes,
    own,
    tasks_of,
)
from envkit.audit.types import Call, Failure, Finding, Owner, Run

NAME: Final = "command-missing"

PROGRAMS: Final = frozenset(
    "7z R Rscript apk apt apt-get awk aws bash bc bun bzip2 cargo cat cmake column comm conda "
    "convert csvtool curl cut date deno diff dig docker dpkg exiftool fd ffmpeg ffprobe file "
    "find flake8 g++ gawk gcc gh git go grep gs gunzip gzip htop iconv identify ip java javac "
    "jq just kubectl less libreoffice ls lsof lua make man mocha mvn mypy mysql nano nc "
    "netstat node npm npx openssl pandoc patch pdfinfo pdftoppm pdftotext perl php pip pip3 "
    "pkill pnpm poetry printf ps psql pytest python python2 python3 qpdf rg rsync ruby ruff "
    "rustc scp sed socat soffice sort sqlite3 ssh strace sudo systemctl tail tar tee telnet "
    "tesseract tmux top tree tsc unrar unzip uv uvx vi vim virtualenv wget which xmllint "
    "xsltproc xxd xz yarn yq yum zip zsh".split()
)
"""Programs an agent has good reason to expect; anything else may be a word of its own text."""


def find(run: Run) -> Iterable[Finding]:
    """One finding for each call that ended at a missing program."""
    worked = last_successes(run)
    for index, call in enumerate(run.calls):
        program = missing_program(call)
        if program:
            recovered = worked.get((call.tool, call.operation), -1) > index
            yield call_finding(NAME, run, call, subject=program, recovered=recovered)


def missing_program(call: Call) -> str:
    """The program whose absence ended the call; empty where something else did."""
    failure = call.failure
    if failure is None or failure.exit_code not in (None, 127):
        return ""
    named = [found[1] for line in _last_lines(failure) if (found := NOT_FOUND.match(line))]
    return named[-1] if named else ""


def _last_lines(failure: Failure) -> list[str]:
    """With exit code 127 any line of the error section may name it, else only the last."""
    lines = error_lines(failure.text) or [failure.cause]
    return [f"{line}" for line in lines] if failure.exit_code == 127 else lines[-1:]


def decide(findings: Sequence[Finding], corpus: Corpus) -> Iterable[Finding]:
    """By program: not installed, or never one."""
    del corpus
    for program, group in by_subject(findings).items():
        if program not in PROGRAMS:
            yield from own(group, Owner.MODEL, 0.7)
        elif len(tasks_of(group)) >= WIDESPREAD:
            yield from own(group, Owner.ENVIRONMENT, 0.95)
        else:
            yield from own(group, Owner.UNKNOWN, 0.5)


DETECTOR: Final = Detector(
    name=NAME,
    needs="tool results",
    judges=has_results,
    find=find,
    decide=decide,
)
