# SPDX-License-Identifier: Apache-2.0
"""Forks cells of its own and says what they found: ``cell_probe.py STAGE ROOT WHAT``.

A process apart, because it moves into a mount namespace and forks without the C library.
"""

import errno
import json
import os
import random
import signal
import socket
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from envkit.fault import SandboxStartFailed
from envkit.sandbox import cell, kernel, mounts
from envkit.sandbox.cell import CellSpec
from envkit.sandbox.limits import Limits
from envkit.sandbox.scene import Scene, Scenes
from envkit.sandbox.stage import Stage

LIMITS = Limits(memory_mib=4096, processes=64, open_files=100)
"""Without a control group the memory is address space, of which an interpreter maps much."""
CAPACITY = 1 << 16
CANNOT = ("/", "/usr", "/etc", "/dev", "/.parsed", "/dev/shm", "/proc")
MAY = ("/tmp", "/filesystem", "/.apps_data")


def outcome(act: Callable[[], Any]) -> Any:
    try:
        return act()
    except OSError as error:
        return errno.errorcode.get(error.errno or 0, str(error))


def written(folder: str) -> Any:
    return outcome(lambda: Path(folder, "written").write_text("x"))


def found_inside() -> dict[str, Any]:
    status = dict(
        line.split(":\t", 1) for line in Path("/proc/self/status").read_text().split("\n") if line
    )
    return {
        "may": [written(folder) for folder in MAY],
        "cannot": {folder: written(folder) for folder in CANNOT},
        "processes": [int(name) for name in os.listdir("/proc") if name.isdigit()],
        "own id": os.getpid(),
        "interfaces": [name for _, name in socket.if_nameindex()],
        "host name": socket.gethostname(),
        "environment": dict(os.environ),
        "top": sorted(os.listdir("/")),
        "capabilities": [status[f"Cap{name}"] for name in ("Inh", "Prm", "Eff", "Bnd", "Amb")],
        "new privileges": status["NoNewPrivs"],
        "users": Path("/proc/self/uid_map").read_text().split(),
        "descriptors": sorted(int(name) for name in os.listdir("/proc/self/fd"))[:-1],
        "open files": os.sysconf("SC_OPEN_MAX"),
        "new user namespace": outcome(lambda: os.unshare(os.CLONE_NEWUSER)),
        "new mount namespace": outcome(lambda: os.unshare(os.CLONE_NEWNS)),
        "a mount": outcome(lambda: kernel.mount("none", Path("/tmp"), "tmpfs", 0)),
        "writable again": outcome(
            lambda: kernel.mount("none", Path("/"), "none", kernel.MS_REMOUNT | kernel.MS_BIND)
        ),
        "another name": outcome(lambda: socket.sethostname("other")),
    }


def spec_of(stage: Stage, root: Path) -> CellSpec:
    workspace = stage.open_workspace("probe", 64, None)
    scene = Scene(
        root=root,
        place=stage.scene(root),
        binds=[],
        in_user_namespace=stage.in_user_namespace,
    )
    return CellSpec(
        scene=scene,
        tmp=workspace.directory("cell-tmp"),
        filesystem=workspace.filesystem,
        apps_data=workspace.apps_data,
        uid=stage.owner,
        limits=LIMITS,
        group=None,
    )


def run(spec: CellSpec, body: Callable[[int], None]) -> tuple[int, str, str]:
    """Its exit status, what it was told of the confinement, and what the body wrote."""
    (told, tell), (answer, say) = os.pipe(), os.pipe()
    os.environ["A_SECRET"] = "of the host"
    pid = cell.fork(spec, Scenes().of(spec.scene), keep=(say,), told=tell, body=lambda: body(say))
    for fd in (tell, say):
        os.close(fd)
    said = [os.read(fd, CAPACITY).decode() for fd in (told, answer)]
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), said[0], said[1]


def look(spec: CellSpec) -> Any:
    def tell(say: int) -> None:
        os.write(say, json.dumps(found_inside()).encode())

    status, told, found = run(spec, tell)
    return {"status": status, "told": told, "found": json.loads(found)}


def fail(spec: CellSpec) -> Any:
    """By what the kernel refuses, and by what does not come so far."""
    wrong = replace(spec, filesystem=Path("/tmp/is-not-there")), replace(spec, uid=-5)
    return [run(each, lambda _: None)[:2] for each in wrong]


def hide(spec: CellSpec) -> Any:
    """A scene that is refused, asked for again, and asked for when nothing is in the way."""
    scenes, hidden = Scenes(), replace(spec.scene, root=Path("/is-not-there"))
    return [mounted(scenes, scene) for scene in (hidden, hidden, spec.scene)]


def mounted(scenes: Scenes, scene: Scene) -> str:
    try:
        scenes.of(scene)
    except SandboxStartFailed as error:
        return str(error)
    return "mounted"


def stay(spec: CellSpec) -> Any:
    """Say which process stays until it is killed, and wait for it."""
    told, tell = os.pipe()
    pid = cell.fork(spec, Scenes().of(spec.scene), keep=(), told=tell, body=lambda: exit_never())
    os.read(told, CAPACITY)
    print(pid, flush=True)
    os.waitpid(pid, 0)
    return "it ended"


def exit_never() -> None:
    if os.fork() == 0:
        signal.pause()
    signal.pause()


def fork(spec: CellSpec) -> Any:
    """What a fork into a process namespace finds of itself."""
    answer, say = os.pipe()
    seed = random.getstate()
    pid = mounts.fork_into(os.CLONE_NEWPID)
    if pid == 0:
        ran: list[int] = []
        thread = threading.Thread(target=lambda: ran.append(threading.get_native_id()))
        thread.start()
        thread.join()
        main = [threading.current_thread() is threading.main_thread(), threading.active_count()]
        os.write(say, json.dumps([os.getpid(), ran, main, random.getstate() != seed]).encode())
        os._exit(3)
    os.close(say)
    return [json.loads(os.read(answer, CAPACITY)), os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])]


if __name__ == "__main__":
    stage = Stage.enter(Path(sys.argv[1]))
    what = {"look": look, "fail": fail, "hide": hide, "stay": stay, "fork": fork}[sys.argv[3]]
    print(json.dumps(what(spec_of(stage, stage.expose(Path(sys.argv[2]))))))
