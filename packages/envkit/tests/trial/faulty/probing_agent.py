# SPDX-License-Identifier: Apache-2.0
"""An agent that tries from inside its box, and from its own seat, what it must not be able to do.

It knows more than a real one could: the gateway's port, token, host pid and data socket. What it
found lies in ``probe.json`` of its log directory, for the test to judge.
"""

import asyncio
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, override

import faulty_hands
from harbor.environments.base import BaseEnvironment
from harbor.models.agent.context import AgentContext

from envkit.agent.mcp_client import Endpoint, ToolClient
from envkit.agent.replay import ReplayAgent

NEIGHBOUR = "neighbour__000"
PROBE_TIMEOUT_S = 50

_INSIDE = r"""
import errno, json, os, socket, sys
known = json.loads(sys.argv[1])
found = {}

def outcome(act):
    try:
        return act()
    except OSError as error:
        return errno.errorcode.get(error.errno, str(error.errno))

def read(path):
    with open(path, "rb") as file:
        return file.read(1000).decode(errors="replace")

def connect(family, address):
    with socket.socket(family) as sock:
        sock.settimeout(5)
        said = outcome(lambda: sock.connect(address) or "connected")
        itself = said == "connected" and sock.getsockname() == sock.getpeername()
        return "itself" if itself else said

visible = [int(name) for name in os.listdir("/proc") if name.isdigit()]
found["commands"] = [outcome(lambda: read(f"/proc/{pid}/cmdline")) for pid in visible]
found["environments"] = [outcome(lambda: read(f"/proc/{pid}/environ")) for pid in visible]
found["visible"] = visible
found["signalable"] = [
    pid for pid in range(1, 70_000) if outcome(lambda: os.kill(pid, 0) or "yes") == "yes"
]
found["gateway"] = outcome(lambda: os.kill(known["gateway"], 0) or "yes")
found["process 1"] = [outcome(lambda: read(f"/proc/1/{name}")) for name in ("maps", "environ")]
found["listed"] = {
    path: outcome(lambda: sorted(os.listdir(path)))
    for path in ("/.apps_data", "/logs/verifier", "/tests", "/solution", known["task"])
}
found["stage"] = outcome(lambda: os.listdir(os.path.dirname(known["data"])))
found["port"] = connect(socket.AF_INET, ("127.0.0.1", known["port"]))
found["data"] = connect(socket.AF_UNIX, known["data"])
found["open ports"] = [
    port for port in range(1, 65536)
    if connect(socket.AF_INET, ("127.0.0.1", port)) == "connected"
]
found["unix sockets"] = [line.split()[7:] for line in read("/proc/net/unix").splitlines()[1:]]
found["interfaces"] = [name for _, name in socket.if_nameindex()]
found["descriptors"] = sorted(os.listdir("/proc/self/fd"))[:3]
found["secrets"] = [
    os.path.join(folder, name)
    for top in ("/filesystem", "/tmp", "/home", "/root", "/run", "/var", "/logs", "/opt")
    for folder, _, names in os.walk(top) for name in names if "secret" in name
]
found["new namespaces"] = outcome(lambda: os.unshare(os.CLONE_NEWUSER | os.CLONE_NEWNS) or "made")
found["after unshare"] = [
    outcome(lambda: os.listdir("/.apps_data")), outcome(lambda: os.kill(known["gateway"], 9)),
    connect(socket.AF_UNIX, known["data"]),
]
print(json.dumps(found))
"""
_LINKS = "ln -s /.apps_data apps; ln -s /proc/self/environ environ; ln -s / top"
_FILES = (
    "/../.apps_data/mail/secret.txt",
    "/.apps_data/mail/secret.txt",
    "/apps/mail/secret.txt",
    "/environ",
    "/top/proc/self/environ",
    "/top/.apps_data/mail/secret.txt",
)
_REQUESTS = (
    "GET /data/snapshot",
    "POST /data/snapshot",
    "POST /data/populate",
    "GET //data/snapshot",
    "GET /mcp/../data/snapshot",
    "GET /mcp/%2e%2e/data/snapshot",
    "GET /data/snapshot?token=x",
)


_OF_THE_HOST = (
    "/.apps_data/mail/secret.txt",
    __file__,
    "/etc/shadow",
    "/etc/machine-id",
    "/sys/kernel",
    "/boot",
    "/tests/test.sh",
    "/logs/verifier/reward.json",
)
"""The first is of its world, as it should be."""


class ProbingAgent(ReplayAgent):
    """Probes, then works as recorded: what it tried must not have hurt its gateway."""

    @override
    async def run(
        self, instruction: str, environment: BaseEnvironment, context: AgentContext
    ) -> None:
        found = await self._probe(environment)
        (self.logs_dir / "probe.json").write_text(json.dumps(found))
        await super().run(instruction, environment, context)

    async def _probe(self, environment: Any) -> dict[str, Any]:
        endpoint = await environment.tool_endpoint()
        port = int(endpoint.url.split(":")[2].partition("/")[0])
        pid = await faulty_hands.gateway_with(_inode(port))
        known = {
            "port": port,
            "gateway": pid,
            "data": str(environment.data_socket),
            "task": str(environment.environment_dir.parent),
            "token": endpoint.token,
        }
        neighbour = await self._neighbour()
        found: dict[str, Any] = {"known": known, "status": _status(pid), "host": _host(pid)}
        found["secrets in memory"] = _in_memory(pid, [*_secrets(str(known["task"])), neighbour])
        found["own token in memory"] = _in_memory(pid, [str(endpoint.token)])
        async with ToolClient.open(endpoint, self._budgets) as client:
            found["inside"] = await self._inside(client, known)
            await _code(client, f"cd /filesystem && {_LINKS}")
            found["files"] = [await _read(client, path) for path in _FILES]
            killed = "kill -9 -1; for p in $(seq 2 40000); do kill -9 $p; done 2>/dev/null"
            await _code(client, f"python3 -c 'import os; os.setsid()'; {killed}")
        host_side = await asyncio.open_unix_connection(environment.data_socket)
        found["from the host"] = await _ask(host_side, "GET /data/snapshot", "")
        found["requests"] = {
            f"{request} {who}": await _ask(await _dial(port), request, token)
            for request in _REQUESTS
            for who, token in (("with token", endpoint.token), ("without", ""))
        }
        return found

    async def _inside(self, client: ToolClient, known: dict[str, Any]) -> dict[str, Any]:
        argument = json.dumps({**known, "token": None}).replace("'", "")
        await _code(client, f"cat > /tmp/probe.py <<'PROBE'\n{_INSIDE}\nPROBE")
        said = await _code(client, f"python3 /tmp/probe.py '{argument}'")
        return json.loads(said)

    async def _neighbour(self) -> str:
        """The token of the trial beside this one, as soon as it is up."""
        path = self.logs_dir.parent.parent / NEIGHBOUR / "agent" / "token"
        await faulty_hands.until(path.is_file)
        return path.read_text()


class NeighbourAgent(ReplayAgent):
    """Leaves a secret file and a process in its box, and stays until the other has probed."""

    @override
    async def run(self, instruction: str, environment: Any, context: AgentContext) -> None:
        endpoint: Endpoint = await environment.tool_endpoint()
        async with ToolClient.open(endpoint, self._budgets) as client:
            await _code(
                client,
                "echo neighbour > /filesystem/neighbour-secret.txt;"
                " cp /filesystem/neighbour-secret.txt /tmp;"
                " setsid sleep 1234567 >/dev/null 2>&1 &",
            )
            part = self.logs_dir / "token.part"
            part.write_text(str(endpoint.token))
            part.rename(self.logs_dir / "token")
            probed = self.logs_dir.parent.parent / "prober__000" / "agent" / "probe.json"
            await faulty_hands.until(probed.is_file)
        await super().run(instruction, environment, context)


async def _code(client: ToolClient, code: str) -> str:
    name = "code_execution_server_code_exec"
    arguments = {"code": code, "language": "shell", "timeout_s": PROBE_TIMEOUT_S}
    return (await client.call(name, arguments)).text


async def _read(client: ToolClient, path: str) -> list[Any]:
    result = await client.call("filesystem_server_read_text_file", {"file_path": path})
    return [path, result.ok, result.text[:200]]


async def _dial(port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection("127.0.0.1", port)


async def _ask(
    line: tuple[asyncio.StreamReader, asyncio.StreamWriter], request: str, token: str
) -> int:
    """Status of one bare HTTP request."""
    reader, writer = line
    bearer = f"Authorization: Bearer {token}\r\n" if token else ""
    head = f"{request} HTTP/1.1\r\nHost: 127.0.0.1\r\n{bearer}Content-Length: 0\r\n"
    writer.write(f"{head}Connection: close\r\n\r\n".encode())
    status = await reader.readline()
    writer.close()
    return int(status.split()[1])


def _inode(port: int) -> int:
    """Inode of the listening socket on a loopback port."""
    wanted = f"0100007F:{port:04X}"
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return next(int(row[9]) for row in rows if row[1] == wanted and row[3] == "0A")


def _status(pid: int) -> dict[str, str]:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def _host(pid: int) -> dict[str, Any]:
    """What the host sees of the gateway."""
    proc = Path(f"/proc/{pid}")
    return {
        "cgroup": (proc / "cgroup").read_text(),
        "memory limit": _memory_limit((proc / "cgroup").read_text()),
        "interfaces": [
            line.split(":")[0].strip() for line in (proc / "net/dev").read_text().splitlines()[2:]
        ],
        "environ": (proc / "environ").read_bytes().decode(errors="replace").split("\0"),
        "owner": (proc / "environ").stat().st_uid,
        "descriptors": sorted(os.readlink(fd.path) for fd in os.scandir(proc / "fd")),
        "same namespaces": [
            name
            for name in ("mnt", "net", "pid", "ipc", "uts", "user")
            if os.readlink(proc / "ns" / name) == os.readlink(f"/proc/self/ns/{name}")
        ],
        "sees": [path for path in _OF_THE_HOST if (proc / "root" / path[1:]).exists()],
    }


def _memory_limit(groups: str) -> int:
    """Bytes; 0 where no control group holds."""
    for line in groups.splitlines():
        _, controllers, path = line.split(":", 2)
        top = Path("/sys/fs/cgroup") / ("memory" if controllers else "")
        name = "memory.limit_in_bytes" if controllers else "memory.max"
        if controllers in ("memory", "") and "envkit-" in path:
            return int((top / path.lstrip("/") / name).read_text())
    return 0


def _secrets(task: str) -> list[str]:
    """The marks that the test put into the task's tests and solution and into its environment."""
    marks = (Path(task) / "solution/marks.json").read_text()
    return json.loads(marks)


def _in_memory(pid: int, texts: list[str]) -> list[str]:
    """Which of these texts the process has anywhere in memory that root can read."""
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        return sorted(
            {text for part in _parts(pid, memory) for text in texts if text.encode() in part}
        )


def _parts(pid: int, memory: Any) -> Iterator[bytes]:
    for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
        start, end = (int(edge, 16) for edge in line.split()[0].split("-"))
        if "r" not in line.split()[1] or line.endswith(("[vvar]", "[vsyscall]")):
            continue
        memory.seek(start)
        try:
            yield memory.read(end - start)
        except OSError:
            continue  # mapped beyond the end of its file
