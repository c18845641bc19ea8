# SPDX-License-Identifier: Apache-2.0
"""Shell or Python, by what agents really send."""

import pytest

from envkit.servers.code.language import is_python

PYTHON = [
    "print(1)",
    "import os",
    "# note\nimport os",
    "from math import sqrt\nprint(sqrt(2))",
    "x = 1\ny = x + 2",
    "avg = (10.47 + 13.15) / 2\nprint(avg)",
    "for i in range(3):\n    print(i)",
    "def f():\n    return 1",
    "with open('a') as f:\n    pass",
    "[print(i) for i in range(3)]",
    "#!/usr/bin/env python3\nls",
    "import pandas as pd\ndf = pd.read_excel('x.xlsx'",
    '"""doc"""\nimport sys',
    "if True:\n    print(1)",
    "df.head()",
]
SHELL = [
    "ls",
    "ls -la",
    "pwd",
    "cat file.txt | head",
    "X=1",
    "X=1 python3 run.py",
    "cd /tmp && ls",
    "python -c 'print(1)'",
    "grep -r foo .",
    "for f in *; do echo $f; done",
    "#!/bin/sh\nprint(1)",
    "# just a comment",
    "which python python3",
    "true",
    "export A=b",
    "import-data --all",
    "find . -name '*.pdf'",
    "if [ -f x ]; then echo y; fi",
    "cat <<'E' > a.py\nimport os\nprint(1)\nE",
    "",
]


@pytest.mark.parametrize("code", PYTHON)
def test_python(code: str) -> None:
    assert is_python(code)


@pytest.mark.parametrize("code", SHELL)
def test_shell(code: str) -> None:
    assert not is_python(code)
