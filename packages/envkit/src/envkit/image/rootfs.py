# SPDX-License-Identifier: Apache-2.0
"""Build the root file system of local boxes: once, cached by digest, from this machine's parts.

Contract: a root holds the interpreter with the promised packages, a declared set of tools, the
shared libraries those need, and nothing else of the host: no home, no keys, no package caches.
It is built under a temporary name and renamed when complete, so a root that exists is whole; two
builders at once end with one root. Boxes mount it read-only under a throw-away overlay.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from envkit.fault import SandboxUnavailable
from envkit.image.closure import closure, import_names, owned_files

BUILDER_VERSION: Final = 5
"""Part of the digest: raise it when the layout of a root changes."""

INIT_PROGRAM: Final = "/usr/lib/envkit/init"
"""What runs as process 1 of a box."""

MODULES: Final = "usr/lib/envkit/modules"
"""Names under which the promised packages are imported, one a line."""

REQUIRED_TOOLS: Final = tuple(
    "bash cat chmod cp date env find grep gzip head ls mkdir mv rm sed sh sleep sort tail tar"
    " tee touch tr wc".split()
)
OPTIONAL_TOOLS: Final = tuple(
    "awk base64 basename bzip2 chown cmp column comm cut cksum diff dirname du df echo egrep"
    " expand expr false fgrep file fold free gunzip hostname id install join jq kill less ln"
    " md5sum mktemp nl nohup nproc od paste patch printenv printf ps pwd readlink realpath rmdir"
    " seq setsid sha256sum shuf split stat strings tac test timeout true truncate uname uniq unzip"
    " watch which whoami xargs xxd xz yes zcat zip".split()
)

_UID_MAP: Final = Path("/proc/self/uid_map")
_LDD_TIMEOUT_S: Final = 60.0
_COMPILE_TIMEOUT_S: Final = 300.0
_PYTHON_HOME: Final = Path("usr/local")
_LIB: Final = Path("/usr/lib")
_SYSTEM_PLACES: Final = {"lib", "lib64", "usr"}
_STDLIB_LEFT_OUT: Final = {"test", "idlelib", "tkinter", "turtledemo", "ensurepip", "lib2to3"}


@dataclass(frozen=True, slots=True, kw_only=True)
class RootSpec:
    """What a root must hold."""

    packages: tuple[str, ...] = ()
    """Python distributions the prompt promises; dependencies follow."""
    owner_uid: int = 0
    """Host uid that owns the files, so that it reads as root inside a box mapped from it."""


def ensure_rootfs(spec: RootSpec, cache: Path) -> Path:
    """The root for ``spec`` under ``cache/roots/<digest>``, built when it is not there.

    Raises:
        SandboxUnavailable: a required tool or the interpreter cannot be copied.
        TaskError: a promised package is not installed here.
    """
    target = cache / "roots" / root_digest(spec)
    if target.is_dir():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix=".building-", dir=target.parent))
    try:
        _build(spec, work)
        work.chmod(0o755)
        _publish(work, target)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return target


def uid_outside() -> int:
    """Host uid of what this process makes: root of a user namespace of one user is that user."""
    mapped = [line.split() for line in _UID_MAP.read_text().splitlines()]
    alone = len(mapped) == 1 and mapped[0][2] == "1"
    return int(mapped[0][1]) if alone else os.geteuid()


def root_digest(spec: RootSpec) -> str:
    """Digest over everything that decides the content of the root."""
    parts = [str(BUILDER_VERSION), sys.version, platform.machine(), str(spec.owner_uid)]
    parts += [hashlib.sha256(SHIM.read_bytes()).hexdigest(), *sorted(spec.packages)]
    parts += [f"{name}=={dist.version}" for name, dist in closure(spec.packages).items()]
    for name, path in _tools():
        info = path.stat()
        parts.append(f"{name}:{path}:{info.st_size}:{info.st_mtime_ns}")
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:20]


def promised_modules(root: Path) -> list[str]:
    """Names under which the promised packages of a built root are imported."""
    file = root / MODULES
    return file.read_text().split() if file.exists() else []


def _build(spec: RootSpec, root: Path) -> None:
    _lay_skeleton(root)
    binaries = [_copy(path, root / "usr/bin" / name) for name, path in _tools()]
    binaries += _copy_interpreter(root)
    site = root / _PYTHON_HOME / "lib" / _python_name() / "site-packages"
    for dist in closure(spec.packages).values():
        for source, relative in owned_files(dist):
            if "tests" not in relative.parts[1:2] and source.is_file():
                binaries.append(_copy(source, site / relative))
    _copy_libraries(binaries, root)
    _compile(root)
    _lay_init(root)
    _lay_shim(root)
    _name_modules(root, spec.packages)
    if os.geteuid() == 0 and spec.owner_uid != uid_outside():
        _own(root, spec.owner_uid)


def _lay_init(root: Path) -> None:
    """A shell that may be executed and not read: the kernel lets nobody trace or dump it."""
    init = root / INIT_PROGRAM.lstrip("/")
    _copy(root / "usr/bin/bash", init)
    init.chmod(0o111)


def _lay_shim(root: Path) -> None:
    """``python`` and ``python3`` ask for a warmed interpreter first."""
    text = SHIM.read_text().replace("#!/usr/bin/python3", f"#!{INTERPRETER}")
    for name in ("python", "python3"):
        shim = root / _PYTHON_HOME / "bin" / name
        shim.write_text(text)
        shim.chmod(0o755)


def _name_modules(root: Path, packages: Sequence[str]) -> None:
    (root / MODULES).write_text("".join(f"{name}\n" for name in import_names(packages)))


def _publish(work: Path, target: Path) -> None:
    try:
        work.rename(target)
    except OSError:
        if not target.is_dir():  # another builder won: its root is as good as ours
            raise


def _lay_skeleton(root: Path) -> None:
    for name in ("bin", "lib", "lib64", "sbin"):
        (root / "usr" / name).mkdir(parents=True)
        (root / name).symlink_to(f"usr/{name}")
    for name in (
        "etc",
        "filesystem",
        "home",
        "logs",
        "opt",
        "proc",
        "dev",
        "run",
        "tmp",
        "var/tmp",
    ):
        (root / name).mkdir(parents=True)
    (root / "root").mkdir(mode=0o755)
    for name in ("tmp", "var/tmp"):
        (root / name).chmod(0o1777)
    (root / "etc/passwd").write_text(
        "root:x:0:0:root:/root:/bin/bash\nnobody:x:65534:65534:nobody:/:/bin/false\n"
    )
    (root / "etc/group").write_text("root:x:0:\nnogroup:x:65534:\n")
    (root / "etc/hosts").write_text("127.0.0.1 localhost\n::1 localhost\n")
    (root / "etc/nsswitch.conf").write_text("passwd: files\ngroup: files\nhosts: files dns\n")


def _tools() -> list[tuple[str, Path]]:
    """(name, real file) of every declared tool found on this machine."""
    found: list[tuple[str, Path]] = []
    for name in sorted({*REQUIRED_TOOLS, *OPTIONAL_TOOLS}):
        where = shutil.which(name, path="/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin")
        if where:
            found.append((name, Path(where).resolve()))
        elif name in REQUIRED_TOOLS:
            raise SandboxUnavailable(
                f"{name} is not on this machine and every box needs it;"
                " install coreutils, bash, grep, sed, findutils, tar and gzip"
            )
    return found


def _python_name() -> str:
    return f"python{sys.version_info.major}.{sys.version_info.minor}"


INTERPRETER: Final = f"/{_PYTHON_HOME}/bin/{_python_name()}"
"""The real interpreter of a box, under the name that no shim has."""

SHIM: Final = Path(__file__).with_name("shim.py")
"""What a box has as ``python3``."""


def _copy_interpreter(root: Path) -> list[Path]:
    home = root / _PYTHON_HOME
    interpreter = Path(getattr(sys, "_base_executable", sys.executable)).resolve()
    binary = _copy(interpreter, home / "bin" / _python_name())
    stdlib = Path(sysconfig.get_path("stdlib", vars={"base": sys.base_prefix}))
    target = home / "lib" / _python_name()
    shutil.copytree(stdlib, target, ignore=_left_out_of_stdlib, symlinks=False)
    (target / "site-packages").mkdir(exist_ok=True)
    return [binary, *target.rglob("*.so")]


def _left_out_of_stdlib(directory: str, names: list[str]) -> set[str]:
    out = {"__pycache__", "site-packages", "dist-packages"} & set(names)
    out |= {name for name in names if name.endswith((".a", ".pyc")) or name.startswith("config-3")}
    if Path(directory).name == _python_name():
        out |= _STDLIB_LEFT_OUT & set(names)
    return out


def _copy(source: Path, target: Path) -> Path:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)
    target.chmod(0o755 if os.access(source, os.X_OK) else 0o644)
    return target


def _copy_libraries(binaries: Iterable[Path], root: Path) -> None:
    """Copy every shared library the ELF files need to where the loader of a box looks.

    One that lies in somebody's home here (an interpreter's own library) goes beside the libc.
    """
    files = [path for path in binaries if _is_elf(path)]
    needed = sorted(_needed_libraries(files))
    system = next((path.parent for path in needed if path.name.startswith("libc.so")), _LIB)
    for library in needed:
        place = library if library.parts[1] in _SYSTEM_PLACES else system / library.name
        target = root / place.relative_to("/")
        if root not in library.parents and not target.exists():
            _copy(library.resolve(), target)
    locale = Path("/usr/lib/locale/C.utf8")
    if locale.is_dir():
        shutil.copytree(locale, root / locale.relative_to("/"), dirs_exist_ok=True)


def _is_elf(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"


def _needed_libraries(files: Sequence[Path]) -> set[Path]:
    needed: set[Path] = set()
    for start in range(0, len(files), 200):
        done = subprocess.run(
            ["ldd", *files[start : start + 200]],
            capture_output=True,
            text=True,
            timeout=_LDD_TIMEOUT_S,
            check=False,
            env={"PATH": "/usr/bin:/bin", "LC_ALL": "C"},
        )
        needed |= {Path(p) for p in re.findall(r"(?:=>\s*|^\s+)(/\S+)\s+\(0x", done.stdout, re.M)}
    return needed


def _compile(root: Path) -> None:
    """Compile bytecode that is never checked against time stamps: boxes start cold."""
    command = [sys.executable, "-m", "compileall", "-q", "-j0", "-s", str(root), "-p", "/"]
    subprocess.run(
        [*command, "--invalidation-mode", "unchecked-hash", str(root / _PYTHON_HOME / "lib")],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        timeout=_COMPILE_TIMEOUT_S,
        check=False,  # files that are not for this interpreter do not compile, and need not
    )


def _own(root: Path, uid: int) -> None:
    for directory, names, files in os.walk(root):
        for name in (".", *names, *files):
            os.chown(os.path.join(directory, name), uid, uid, follow_symlinks=False)
