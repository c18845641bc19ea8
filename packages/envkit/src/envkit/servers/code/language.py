# SPDX-License-Identifier: Apache-2.0
"""Is this text shell or Python?

Agents send bare Python to a shell tool in every tenth call. Text is Python when it parses as
Python and holds something a shell command cannot look like (an import, a call, a definition, an
assignment with spaces), or when its first line could only be the start of a Python program, so
that a typing error in it is reported by Python and not by the shell.
"""

import ast
import re

_STARTS_LIKE_PYTHON = re.compile(
    r"""(?:import\s+\w[\w.]*(?:\s+as\s+\w+)?(?:\s*,\s*\w[\w.]*)*\s*(?:\#.*)?$
      | from\s+[\w.]+\s+import\s
      | (?:async\s+)?def\s+\w+\s*\(
      | class\s+\w+.*:\s*$
      | @\w[\w.]*
      | (?:for\s.+\sin\s.+|while\s.+|with\s.+|if\s.+|try)\s*:\s*(?:\#.*)?$
      | print\s*\(
      | [A-Za-z_]\w*\s+=\s
      )""",
    re.VERBOSE,
)
_SHELL_ONLY = (
    ast.Name,
    ast.BinOp,
    ast.UnaryOp,
    ast.Constant,
    ast.Tuple,
    ast.Compare,
    ast.Attribute,
)


def is_python(code: str) -> bool:
    """Whether `code` is meant for Python."""
    lines = code.splitlines()
    if lines and lines[0].startswith("#!"):
        return "python" in lines[0]
    first = next((line for line in lines if line.strip() and not line.lstrip().startswith("#")), "")
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return bool(_STARTS_LIKE_PYTHON.match(first))
    return _is_program(tree.body, code)


def _is_program(statements: list[ast.stmt], code: str) -> bool:
    """`ls -la`, `pwd`, `x=1` and `cat << E > f` parse as Python too; everything else is Python."""
    for statement in statements:
        if isinstance(statement, ast.Expr):
            if isinstance(statement.value, ast.Constant):
                continue
            return not isinstance(statement.value, _SHELL_ONLY)
        source = ast.get_source_segment(code, statement) or ""
        if not (isinstance(statement, ast.Assign) and re.fullmatch(r"\w+=\S*", source)):
            return True
    return False
