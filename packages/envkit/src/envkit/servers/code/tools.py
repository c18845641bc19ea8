# SPDX-License-Identifier: Apache-2.0
"""code_exec: a shell command or a Python program, reported as it ended.

A command that ends by itself is a success with its exit code, whatever the code: `grep` without a
match is no error. Running out of time, hitting a limit of the box or losing the box is an error
that says so, is the model's own doing, and carries the output so far.
"""

import asyncio
from typing import Literal

from pydantic import Field

from envkit.servers.arguments import Arguments
from envkit.servers.code.language import is_python
from envkit.servers.code.spill import head_and_tail, spill
from envkit.servers.command import CommandResult, CommandRunner
from envkit.servers.config import GatewayConfig
from envkit.servers.contract import Done, ToolFault
from envkit.servers.tool import CommandTool, Effect

SERVER = "code_execution_server"
CODE_BYTES = 120_000
"""One argument of a command holds 128 KiB."""
GRACE_S = 15.0
"""What a runner may take beyond the command's own time before it counts as hung."""
SHELL = 'if command -v bash >/dev/null 2>&1; then exec bash -c "$1"; fi; exec sh -c "$1"'
ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin",
    "HOME": "/tmp",
    "LANG": "C.UTF-8",
    "TERM": "dumb",
    "PYTHONUNBUFFERED": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
    "MPLBACKEND": "Agg",
}


class CodeExec(Arguments):
    """Arguments of code_exec."""

    code: str = Field(description="shell command or Python program")
    language: Literal["auto", "shell", "python"] = Field(
        "auto", description="auto recognises Python by itself"
    )
    timeout_s: float | None = Field(
        None, gt=0, description="seconds before the command is killed (at most 60, the default)"
    )


async def code_exec(runner: CommandRunner, config: GatewayConfig, asked: CodeExec) -> Done:
    """Run the code in the agent's box and say how it ended."""
    limits = config.limits
    timeout_s = min(asked.timeout_s or limits.command_s, limits.command_s)
    ended = await _run(runner, config, _argv(asked), timeout_s)
    text, path = _output(ended), ""
    if len(text) > limits.text_chars:
        text, path = await _shortened(runner, config, text)
    if fault := _fault(ended, timeout_s, text):
        raise fault
    code = ended.exit_code or 0
    if code:
        text = f"{text}\n\nCommand failed with exit code {code}".lstrip()
    return Done(
        did=f"Ran the code in {ended.seconds:.1f} s; exit code {code}.",
        text=f"{text}{_note(ended)}" or "[no output; exit code 0]",
        code="exit_nonzero" if code else "ok",
        paths=[path] if path else [],
        counts={
            "exit_code": code,
            "seconds": round(ended.seconds, 3),
            "stdout_bytes": len(ended.stdout),
            "stderr_bytes": len(ended.stderr),
            "dropped_bytes": ended.dropped_bytes,
        },
    )


def _argv(asked: CodeExec) -> list[str]:
    if not asked.code.strip() or "\0" in asked.code:
        raise ToolFault(
            "invalid_argument",
            "`code` is empty or holds a NUL byte.",
            field="code",
            fix="Pass a shell command or a Python program.",
        )
    if len(asked.code.encode()) > CODE_BYTES:
        raise ToolFault(
            "code_too_long",
            f"`code` has more than {CODE_BYTES} bytes.",
            field="code",
            fix="Write it to a file with filesystem_server_write_file, then run that file.",
        )
    if asked.language == "python" or (asked.language == "auto" and is_python(asked.code)):
        return ["python3", "-c", asked.code]
    return ["/bin/sh", "-c", SHELL, "sh", asked.code]


async def _run(
    runner: CommandRunner, config: GatewayConfig, argv: list[str], timeout_s: float
) -> CommandResult:
    """The runner's answer; the boundary where its own failures get a name."""
    try:
        async with asyncio.timeout(timeout_s + GRACE_S):
            return await runner.run(
                argv,
                cwd=config.command_root,
                env={**ENVIRONMENT, **config.command_env},
                timeout_s=timeout_s,
                max_output=config.limits.command_output_bytes,
            )
    except TimeoutError:
        what = f"gave no answer {GRACE_S:g} s after the command's time was over"
    except Exception as error:
        what = f"failed ({type(error).__name__}: {error})"
    raise ToolFault(
        "runner_failed",
        f"The box that runs code {what}.",
        fix="The command may have run; look at its effects before trying again.",
        retryable=True,
        owner="sandbox",
        applied="unknown",
    )


def _output(ended: CommandResult) -> str:
    text = ended.stdout.decode("utf-8", "replace").rstrip("\n")
    errors = ended.stderr.decode("utf-8", "replace").rstrip("\n")
    return f"{text}\nError output:\n{errors}".lstrip("\n") if errors else text


async def _shortened(runner: CommandRunner, config: GatewayConfig, text: str) -> tuple[str, str]:
    """The head and tail of the text, and the file of the box that holds all of it."""
    env = {**ENVIRONMENT, **config.command_env}
    path = await spill(runner, text.encode(), config.command_root, env)
    where = f"all of it is in {path} (read it with code_exec)" if path else "redirect it to a file"
    return head_and_tail(text, config.limits.text_chars, where), path


def _note(ended: CommandResult) -> str:
    notes: list[str] = []
    if ended.limit:
        notes.append(f"[a process of this command hit the {ended.limit} limit]")
    if ended.box_restarted:
        notes.append(f"[{RESTARTED}]")
    return "".join(f"\n{note}" for note in notes)


RESTARTED = "the box was restarted: its processes and /tmp are gone, /filesystem is kept"
LIMITS = {
    "memory": ("out_of_memory", "used more memory than the box has", "Work in smaller pieces."),
    "processes": ("process_limit", "started more processes than allowed", "Start fewer."),
    "disk": ("disk_full", "filled the disk", "Remove files you no longer need."),
}


def _fault(ended: CommandResult, timeout_s: float, text: str) -> ToolFault | None:
    """What the command did to itself; None when it ended by itself."""
    tail = f" Also, {RESTARTED}." if ended.box_restarted else ""
    if ended.timed_out:
        code, message = "command_timed_out", f"The command was killed after {timeout_s:g} s."
        fix = "Run long work in the background (nohup ... > out.txt &) and look at it later."
    elif ended.limit and ended.exit_code != 0:
        code, what, fix = LIMITS[ended.limit]
        message = f"The command {what}."
    elif ended.exit_code is None and ended.box_restarted:
        code, message = "box_restarted", "The command ended its own box."
        fix = "Do not kill processes you did not start."
    elif ended.exit_code is None:
        code, message = "no_exit_code", "How the command ended is not known."
        fix = "It may have run; look at its effects before trying again."
    else:
        return None
    return ToolFault(
        code,
        message + tail,
        fix=fix,
        applied="unknown",
        owner="sandbox" if code == "no_exit_code" else "model",
        detail=f"Output so far:\n{text}" if text else "",
    )


TOOLS = (
    CommandTool(
        server=SERVER,
        name="code_exec",
        about=(
            "Run a shell command or a Python program in /filesystem. Python is recognised; "
            "standard input is empty; background processes survive the call."
        ),
        arguments=CodeExec,
        effect=Effect.CHANGE,
        run=code_exec,
    ),
)
