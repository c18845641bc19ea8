# SPDX-License-Identifier: Apache-2.0
"""Programs run by a warmed and by a cold interpreter: the same output, errors and status."""

import re

import pytest

from .conftest import ENV, Both, argv, shell

pytestmark = pytest.mark.integration

SHOW = "import sys; print(sys.argv, sys.path, sys.executable, sys.orig_argv, sys.flags)"

WARM = {
    "a command": "python3 -c 'print(1)'",
    "its arguments": f"python3 -c '{SHOW}' a -b ''",
    "by its other name": f"python -c '{SHOW}'",
    "flags": f"python3 -B -u -c '{SHOW}'",
    "joined flags": f"python3 -Buc '{SHOW}' x",
    "isolated": f"PYTHONPATH=/opt python3 -I -c '{SHOW}'",
    "no user site": f"python3 -s -c '{SHOW}'; python3 -E -c '{SHOW}'",
    "a script": f"echo '{SHOW}' > s.py; python3 s.py a b",
    "a script elsewhere": f"mkdir -p d/e; echo '{SHOW}' > d/e/s.py; python3 d/e/s.py; cd d; python3 ../d/e/s.py",
    "a linked script": f"mkdir -p f; echo '{SHOW}' > f/s.py; ln -sf f/s.py l.py; python3 l.py",
    "a shebang": "printf '#!/usr/bin/env python3\\nprint(__file__)\\n' > x; chmod +x x; ./x",
    "a shebang of the full path": "printf '#!/usr/local/bin/python3\\nprint(1)\\n' > y; chmod +x y; ./y",
    "a module": "python3 -m json.tool <<< '{\"a\": 1}'",
    "a module of its own": f"echo '{SHOW}; print(__name__, __file__, __spec__.name)' > own.py; python3 -m own a",
    "a package": "mkdir -p pk; echo 'print(__name__, __package__)' > pk/__main__.py; python3 -m pk",
    "a missing module": "python3 -m no_such_module_at_all",
    "a heredoc": f"python3 <<'P'\n{SHOW}\nprint(__file__)\nP",
    "a dash": f"python3 - a b <<'P'\n{SHOW}\nP",
    "a pipe": "echo 'print(input.__name__)' | python3",
    "names of main": "python3 -c 'print(sorted(globals()), __name__, __loader__, __builtins__)'",
    "names of a script": "echo 'print(sorted(globals()), __name__, __file__, __cached__)' > n.py; python3 n.py",
    "input": "printf 'one\\ntwo\\n' | python3 -c 'print(input(\"? \"), input())'",
    "input at its end": "python3 -c 'input()' < /dev/null",
    "all of the input": "seq 100000 | python3 -c 'import sys; print(sum(map(int, sys.stdin)))'",
    "exit codes": "for n in 0 1 3 255 256 -1 None True '\"said\"' '[1]'; do"
    ' python3 -c "import sys; sys.exit($n)"; echo $?; done',
    "raised exit": "python3 -c 'raise SystemExit(7)'",
    "exit of the site": "python3 -c 'exit(4)'",
    "hard exit": "python3 -c 'import os; print(1, flush=True); os._exit(9)'",
    "an error": "python3 -c 'def f(): 1/0\nf()'",
    "an error in a script": "printf 'def f():\\n    return 1/0\\nf()\\n' > e.py; python3 e.py",
    "an error in a module": "printf 'def f():\\n    return 1/0\\nf()\\n' > e2.py; python3 -m e2",
    "an error of stdin": "printf 'def f():\\n    return 1/0\\nf()\\n' | python3",
    "a chain of errors": "python3 -c '\ntry: 1/0\nexcept Exception as e: raise ValueError(\"é\") from e'",
    "a group of errors": "python3 -c 'raise ExceptionGroup(\"g\", [ValueError(1), TypeError(2)])'",
    "an error with a note": "python3 -c '\ne = ValueError(1); e.add_note(\"n\"); raise e'",
    "an error between outputs": "python3 -c 'print(1); 1/0' 2>&1; echo 'print(1); 1/0' > b.py;"
    " python3 b.py 2>&1; python3 -c 'print(1); raise SystemExit(\"x\")' 2>&1",
    "a broken hook": "python3 -c '\nimport sys\nsys.excepthook = lambda *a: 1/0\nraise ValueError(3)'",
    "a hook": "python3 -c '\nimport sys\nsys.excepthook = lambda t, v, tb: print(t, v, tb.tb_lineno)\n1/0'",
    "interrupted": "python3 -c 'raise KeyboardInterrupt'; echo $?",
    "interrupts itself": "python3 -c 'import os, signal; os.kill(os.getpid(), signal.SIGINT)'; echo $?",
    "terminates itself": "python3 -c 'import os; os.kill(os.getpid(), 15)'; echo $?",
    "aborts": "python3 -c 'import os; os.abort()'; echo $?",
    "kills itself": "python3 -c 'import os; os.kill(os.getpid(), 9)'; echo $?",
    "a handler": "python3 -c '\nimport os, signal\nsignal.signal(15, lambda *a: print(\"got\"))\nos.kill(os.getpid(), 15)'",
    "dispositions": "python3 -c 'import signal; print({n: signal.getsignal(n) for n in range(1, 32)})'",
    "ignored signals": "trap '' TERM HUP; python3 -c 'import signal; print(signal.getsignal(15), signal.getsignal(1))'",
    "in the background": "python3 -c 'import signal; print(signal.getsignal(2), signal.getsignal(3))' & wait $!; echo $?",
    "ended by its caller": "python3 -c 'open(\"up\", \"w\"); import time; time.sleep(99)' & p=$!;"
    " while ! [ -e up ]; do :; done; kill $p; wait $p; echo $?",
    "a time limit": "timeout 1 python3 -c 'while 1: pass'; echo $?",
    "a closed pipe": "python3 -c 'for i in range(10**5): print(i)' | head -1; echo ${PIPESTATUS[0]}",
    "a full device": "python3 -c 'print(1)' > /dev/full; echo $?",
    "at exit": "python3 -c 'import atexit; atexit.register(print, \"bye\"); print(1); 1/0'",
    "at exit it fails": "python3 -c 'import atexit; atexit.register(lambda: 1/0)'",
    "an open file": "python3 -c 'f = open(\"o\", \"w\"); f.write(\"kept\")'; cat o",
    "an open file of a function": "python3 -c '\ndef g(): return f\nf = open(\"o2\", \"w\"); f.write(\"kept\")'; cat o2",
    "an open file of a module": "echo 'f = open(\"o3\", \"w\"); f.write(\"kept\")' > keeper.py; python3 -c 'import keeper'; cat o3",
    "finalizers": "python3 -c '\nclass A:\n    def __init__(s, n): s.n = n\n    def __del__(s): print(\"del\", s.n)\na = A(1); b = A(2); _c = A(3); d = [A(4)]; d.append(d)'",
    "finalizers of functions": "python3 -c '\nclass A:\n    def __del__(s): print(\"del\")\ndef f(): return a\na = A()'",
    "threads": "python3 -c '\nimport threading, time\ndef w(): time.sleep(.1); print(\"late\")\nthreading.Thread(target=w).start(); print(\"main\")'",
    "daemon threads": "python3 -c '\nimport threading, time\nthreading.Thread(target=time.sleep, args=(99,), daemon=True).start(); print(1)'",
    "an error in a thread": "python3 -c '\nimport threading\nt = threading.Thread(target=lambda: 1/0, name=\"T\"); t.start(); t.join()'",
    "a pool of threads": "python3 -c '\nfrom concurrent.futures import ThreadPoolExecutor as P\nwith P(4) as p: print(list(p.map(abs, range(-9, 0))))'",
    "a pool of processes": "cat > mp.py <<'P'\nimport multiprocessing as m\ndef f(x): return x * x\n"
    "if __name__ == '__main__':\n    with m.Pool(2) as p: print(p.map(f, range(9)))\nP\npython3 mp.py",
    "spawned processes": "cat > ms.py <<'P'\nimport multiprocessing as m\ndef f(x): return x * x\n"
    "if __name__ == '__main__':\n    with m.get_context('spawn').Pool(2) as p: print(p.map(f, range(9)))\nP\npython3 ms.py",
    "a fork": "python3 -c '\nimport os\np = os.fork()\nif p == 0: print(\"child\")\nelse:\n    os.waitpid(p, 0); print(\"parent\")'",
    "its own interpreter": "python3 -c '\nimport subprocess, sys\nprint(subprocess.run([sys.executable, \"-c\", \"print(6)\"], capture_output=True, text=True))'",
    "a subprocess": "python3 -c 'import subprocess; print(subprocess.check_output([\"echo\", \"x\"]))'",
    "a shell": "python3 -c 'import os; print(os.system(\"exit 3\"), os.popen(\"echo $0\").read())'",
    "an exec": "python3 -c 'import os; os.execvp(\"echo\", [\"echo\", \"became\"])'",
    "pickled main": "cat > pi.py <<'P'\nimport pickle\nclass A:\n    pass\n"
    "print(pickle.loads(pickle.dumps(A())).__class__, pickle.dumps(A()))\nP\npython3 pi.py",
    "dataclasses of main": "python3 -c '\nfrom dataclasses import dataclass\n@dataclass\nclass A:\n    x: int\nprint(A(1))'",
    "annotations": "python3 -c 'x: int = 1; print(__annotations__)'",
    "unicode": "python3 -c 'print(\"é漢😀\", ascii(\"é\"))' ü; echo 'print(\"ß\")' > ß.py; python3 ß.py",
    "a coding cookie": "printf '# -*- coding: latin-1 -*-\\nprint(ascii(\"\\xe9\"))\\n' > c.py; python3 c.py",
    "undecodable output": "python3 -c 'import sys; sys.stdout.write(\"\\udcff\"); print(ascii(sys.argv))' \"$(printf '\\xff')\"",
    "bytes": "head -c 300000 /dev/zero | python3 -c 'import sys; d = sys.stdin.buffer.read(); sys.stdout.buffer.write(d[:3]); print(len(d))'",
    "large output": "python3 -c 'print(\"x\" * 3000000)' | md5sum",
    "streams": "python3 -c 'import sys\nfor s in (sys.stdin, sys.stdout, sys.stderr, sys.__stdout__): print(s, s.errors, s.newlines, s.line_buffering, s.write_through, s.isatty(), s.fileno())'",
    "unbuffered streams": "python3 -u -c 'import sys\nfor s in (sys.stdin, sys.stdout, sys.stderr): print(s, s.buffer, s.line_buffering, s.write_through)'",
    "order of streams": "python3 -c 'import sys; print(1); print(2, file=sys.stderr); print(3)' 2>&1",
    "the directory": "mkdir -p cwd; cd cwd; python3 -c 'import os; print(os.getcwd(), os.path.abspath(\".\"), sorted(os.environ))'",
    "the environment": "A=1 B= python3 -c 'import os; print(dict(os.environ), os.environb[b\"A\"])'; A=x python3 -c 'import os; os.system(\"echo $A\")'",
    "a locale": "python3 -c 'import sys, locale; print(locale.getlocale(), locale.getpreferredencoding(), open(\"/dev/null\").encoding)'; LC_ALL=C.UTF-8 LANG=C python3 -c 'print(1)'",
    "a time zone": "TZ=Asia/Tokyo python3 -c 'import time; print(time.tzname, time.localtime(0))'; TZ=XYZ-3 python3 -c 'import time; print(time.tzname, time.timezone)'",
    "a mask": "umask 027; python3 -c 'open(\"m\", \"w\")'; stat -c %a m",
    "limits": "ulimit -n 50; ulimit -f 100; python3 -c 'import resource as r; print(r.getrlimit(r.RLIMIT_NOFILE), r.getrlimit(r.RLIMIT_FSIZE), r.getrlimit(r.RLIMIT_CORE), r.getrlimit(r.RLIMIT_AS))'",
    "no bytecode": "mkdir -p nb; echo 1 > nb/mod.py; cd nb; python3 -B -c 'import mod, sys; print(sys.dont_write_bytecode)'; ls; PYTHONDONTWRITEBYTECODE=1 python3 -c 'import mod'; ls; python3 -c 'import mod'; ls",
    "a path of its own": f"mkdir -p pp; echo 'x = 5' > pp/pmod.py; PYTHONPATH=pp:/opt:/opt python3 -c '{SHOW}; import pmod; print(pmod.x)'",
    "warnings": "python3 -c 'import warnings; warnings.warn(\"w\")'; python3 -c 'x = \"\\d\"'; echo 'x = \"\\d\"' > w.py; python3 w.py",
    "warning filters": "python3 -c 'import warnings, numpy; print([f[:1] + f[2:3] for f in warnings.filters])'",
    "a library": "python3 -c 'import numpy, openpyxl; print(numpy.arange(3).sum(), openpyxl.__version__, numpy.__file__)'",
    "recursion": "python3 -c '\nimport sys\nprint(sys.getrecursionlimit())\ndef f(): f()\ntry: f()\nexcept RecursionError as e: print(e)'",
    "the collector": "python3 -c 'import gc; print(gc.isenabled(), gc.get_threshold())'",
    "descriptors": "python3 -c 'import os; print(sorted(os.listdir(\"/proc/self/fd\")))'",
    "its command line": "python3 -c 'print(open(\"/proc/self/cmdline\").read().split(chr(0))[1:], open(\"/proc/self/environ\").read().count(\"=\"))' a b",
    "capabilities": "python3 -c 'print([l for l in open(\"/proc/self/status\") if l.startswith((\"Cap\", \"NoNew\", \"Uid\", \"Gid\", \"Groups\", \"Name\", \"Seccomp\", \"Umask\", \"Sig\"))])'",
    "open to its user": "python3 -c 'import os; print(os.stat(\"/proc/self/environ\").st_uid, os.access(\"/proc/self/environ\", os.R_OK))'",
    "temporary files": "python3 -c 'import tempfile; f = tempfile.NamedTemporaryFile(); print(tempfile.gettempdir(), f.name.startswith(\"/tmp/tmp\"))'",
    "asyncio": "python3 -c '\nimport asyncio\nasync def m():\n    p = await asyncio.create_subprocess_exec(\"echo\", \"hi\", stdout=-1); print(await p.communicate())\nasyncio.run(m())'",
    "inspection": "printf 'import inspect\\ndef f(): return 1\\nprint(inspect.getsource(f))\\n' > i.py; python3 i.py",
    "a relative import": "echo 'from . import x' > r.py; python3 r.py",
    "a missing import": "python3 -c 'import no_such_module_at_all'",
    "sqlite": "python3 -c 'import sqlite3; c = sqlite3.connect(\":memory:\"); print(c.execute(\"select 1\").fetchall())'",
    "a module run by a script": "echo 'import runpy; print(sorted(runpy.run_path(\"n2.py\")))' > n3.py; echo 'a=1' > n2.py; python3 n3.py",
    "logging": "python3 -c 'import logging; logging.warning(\"x\"); logging.basicConfig(level=10); logging.info(\"y\")'",
    "a test": "printf 'import unittest\\nclass T(unittest.TestCase):\\n    def test_a(self): self.assertEqual(1, 1)\\n' > test_it.py; python3 -m unittest test_it 2>&1 | sed 's/in .*s//'",
}  # fmt: skip
"""Programs that a warmed interpreter runs, and that cannot tell."""

COLD = {
    "a plain locale": "unset LANG; python3 -c 'import os, sys, locale; print(sorted(os.environ), sys.flags.utf8_mode, sys.stdout.encoding, locale.getlocale(), locale.getpreferredencoding())'",
    "the locale C": "LANG=C python3 -c 'import os, sys; print(sorted(os.environ), os.environ.get(\"LC_CTYPE\"), sys.flags.utf8_mode, open(\"/dev/null\").encoding)'",
    "no such script": "python3 no/such.py; echo $?",
    "a directory": "mkdir -p dd; echo 'print(__name__)' > dd/__main__.py; python3 dd",
    "an archive": "mkdir -p za; echo 'print(__name__)' > za/__main__.py; python3 -m zipapp za; python3 za.pyz",
    "its version": "python3 -V; python3 --version",
    "help": "python3 -h | head -1",
    "no such option": "python3 --no-such; echo $?",
    "optimised": "python3 -O -B -c 'print(__debug__)'; python3 -W error -c 'import warnings; warnings.warn(\"x\")'",
    "development": "python3 -X dev -c 'import sys; print(sys.flags.dev_mode)'",
    "a hash seed": "PYTHONHASHSEED=0 python3 -c 'print(hash(\"a\"))'",
    "a syntax error": "python3 -c 'x ='; printf 'a = 1\\nif:\\n' > sy.py; python3 sy.py; echo $?",
    "a module beside it": "mkdir -p sh; echo 'print(\"mine\")' > sh/json.py; echo 'import json' > sh/s.py; python3 sh/s.py",
    "a package in the directory": "mkdir -p sp/numpy; echo 'print(\"mine\")' > sp/numpy/__init__.py; cd sp; python3 -c 'import numpy'",
    "a module on the path": "mkdir -p so; echo 'print(\"mine\")' > so/openpyxl.py; PYTHONPATH=so python3 -c 'import openpyxl'",
    "a descriptor more": "echo hi > h; python3 -c 'import os; print(os.read(7, 9))' 7< h; python3 <(echo 'print(8)')",
    "no input at all": "python3 -c 'import sys; print(sys.stdin)' <&-",
    "little address space": "ulimit -v 300000; python3 -c 'x = bytearray(1 << 30)' 2>&1 | tail -1",
    "packages of the user": "mkdir -p hm/.local/lib/python3.12/site-packages; echo 'q = 3' > hm/.local/lib/python3.12/site-packages/mine.py; HOME=$PWD/hm python3 -c 'import mine; print(mine.q)'",
    "another locale": "LC_ALL=C python3 -c 'import sys; print(sys.flags.utf8_mode)'; LANG=de_DE.UTF-8 python3 -c 'import sys; print(sys.stdout.encoding)'",
    "a virtual environment": "python3 -m venv --without-pip ve 2>&1 | tail -1; ve/bin/python -c 'import sys; print(sys.prefix, sys.executable)'",
}  # fmt: skip
"""Programs that only a cold one can run rightly; a warmed one lets them pass."""

_VARIES = re.compile(r"0x[0-9a-f]+|(?<=line \d: ) *\d+|'ENVKIT_RUN': '\w+'")
"""Addresses, process ids in a shell's complaints, the token of a run."""


def _text(output: bytes) -> str:
    return _VARIES.sub("", output.decode(errors="backslashreplace"))


def _compare(both: Both, name: str, script: str, env: dict[str, str] = ENV) -> int:
    """Run it both ways; returns how many programs ran warm."""

    async def run() -> int:
        place = f"mkdir -p '/tmp/{name}'; cd '/tmp/{name}'\n"
        before = await both.started()
        warm = await shell(both.warm, place + script, env)
        cold = await shell(both.cold, place + script, env)
        said = [(d.status, _text(d.stdout), _text(d.stderr)) for d in (warm, cold)]
        assert said[0] == said[1]
        assert not warm.timed_out
        return await both.started() - before

    return both.run(run())


@pytest.mark.parametrize("name", WARM)
def test_a_warmed_interpreter_does_what_a_cold_one_does(both: Both, name: str) -> None:
    assert _compare(both, name, WARM[name]) > 0


@pytest.mark.parametrize("name", COLD)
def test_what_it_cannot_do_is_left_to_a_cold_one(both: Both, name: str) -> None:
    assert _compare(both, name, COLD[name]) == (1 if "-m" in COLD[name] else 0)


@pytest.mark.parametrize("name", ["a command", "an error", "exit codes", "kills itself", "input"])
def test_without_a_shell_it_is_the_same(both: Both, name: str) -> None:
    programs = {
        "a command": "import sys, os; print(sys.argv, sys.orig_argv, sys.path, os.getcwd())",
        "an error": "print(1)\n1/0",
        "exit codes": "raise SystemExit(77)",
        "kills itself": "import os; os.kill(os.getpid(), 9)",
        "input": "print(repr(input()))",
    }

    async def run() -> None:
        before = await both.started()
        done = [await argv(room, ["python3", "-c", programs[name]]) for room in (both.warm, both.cold)]
        assert len({(d.status, d.stdout, d.stderr) for d in done}) == 1
        assert await both.started() == before + 1

    both.run(run())
