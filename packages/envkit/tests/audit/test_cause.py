# SPDX-License-Identifier: Apache-2.0
import pytest

from envkit.audit.cause import cause, error_lines, exit_code


def output(stderr: str, code: int, stdout: str = "") -> str:
    return f"{stdout}\nError output:\n{stderr}\n\n\nCommand failed with exit code {code}"


TRACEBACK = """Traceback (most recent call last):
  File "/tmp/a.py", line 1, in <module>
    import numpy as np
ModuleNotFoundError: No module named 'numpy'"""


@pytest.mark.parametrize(
    ("text", "code", "expected"),
    [
        (output("sh: 1: python: not found", 127), 127, "python: not found"),
        (output("sh: 66: python: not found", 127), 127, "python: not found"),
        (output("bash: line 3: rg: command not found", 127), 127, "rg: command not found"),
        (output("/bin/sh: 1: jq: not found\nwarning: late", 127), 127, "jq: not found"),
        (output(TRACEBACK, 1), 1, "ModuleNotFoundError: No module named 'numpy'"),
        (
            output(TRACEBACK, 1, "Error output:\nquoted"),
            1,
            "ModuleNotFoundError: No module named 'numpy'",
        ),
        (output("/usr/bin/python3: No module named pip", 1), 1, "No module named pip"),
        (
            output("sh: 5: a: not found\nsh: 9: Syntax error: word unexpected", 2),
            2,
            "Syntax error: word unexpected",
        ),
        (
            output("ls: cannot access '/x': No such file", 2),
            2,
            "ls: cannot access '/x': No such file",
        ),
        ("no section at all", None, "no section at all"),
    ],
)
def test_the_line_that_names_the_cause(text: str, code: int | None, expected: str) -> None:
    assert cause(text, code) == expected


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("Command failed with exit code 127", 127),
        ("out\nexit code: 2", 2),
        ("[exit_code] 1", 1),
        ("Process exited with code 9", 9),
        ("Exit status: -11", -11),
        ("the exit code 3 is documented", None),
        ("exit code 3\nbut then it went on", None),
        ("", None),
    ],
)
def test_exit_code_is_the_last_line_or_none(text: str, code: int | None) -> None:
    assert exit_code(text) == code


def test_lines_of_the_last_error_section_without_its_exit_line() -> None:
    assert error_lines("a\nStderr output:\nb\n\nc\nexit code: 1") == ["b", "c"]
    assert error_lines("a\nb") == []


def test_without_a_section_an_exit_line_makes_all_output_evidence() -> None:
    text = "reading\nsh: 1: jq: not found\n\nCommand failed with exit code 127"
    assert error_lines(text) == ["reading", "sh: 1: jq: not found"]
    assert cause(text, 127) == "jq: not found"
