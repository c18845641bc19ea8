# SPDX-License-Identifier: Apache-2.0
"""Limits read from kernel files, from trees like those of real hosts."""

import os
import resource
from pathlib import Path
from typing import Any

import pytest

from envkit.preflight.host import MIB, Supply, cores, measure
from envkit.preflight.kernel_files import Roots


def tree(root: Path, files: dict[str, str]) -> Roots:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return Roots(proc=root / "proc", cgroup=root / "cgroup")


def found(roots: Roots, kind: str) -> dict[str, int]:
    supplies = measure(roots.proc.parent, roots)
    return {Path(s.limit).name: s.free for s in supplies if s.resource == kind}


def test_memory_is_what_the_kernel_calls_available(tmp_path: Path) -> None:
    roots = tree(tmp_path, {"proc/meminfo": "MemTotal: 9 kB\nMemAvailable:  2097152 kB\n"})
    assert found(roots, "memory") == {"meminfo": 2048}


def test_every_ancestor_of_a_v2_cgroup_can_bind_and_cache_counts_as_free(tmp_path: Path) -> None:
    roots = tree(
        tmp_path,
        {
            "proc/self/cgroup": "0::/slice/job\n",
            "cgroup/slice/job/memory.max": "max",
            "cgroup/slice/job/memory.current": "1",
            "cgroup/slice/memory.max": str(1000 * MIB),
            "cgroup/slice/memory.current": str(600 * MIB),
            "cgroup/slice/memory.stat": f"anon 5\ninactive_file {100 * MIB}\n",
        },
    )
    assert found(roots, "memory") == {"memory.max": 500}


def test_a_v1_cgroup_binds_and_its_largest_number_means_no_limit(tmp_path: Path) -> None:
    roots = tree(
        tmp_path,
        {
            "proc/self/cgroup": "8:pids:/\n4:memory:/a/b\n",
            "cgroup/memory/a/b/memory.limit_in_bytes": "9223372036854771712",
            "cgroup/memory/a/b/memory.usage_in_bytes": "0",
            "cgroup/memory/a/memory.limit_in_bytes": str(64 * MIB),
            "cgroup/memory/a/memory.usage_in_bytes": str(80 * MIB),
        },
    )
    assert found(roots, "memory") == {"memory.limit_in_bytes": 0}


def test_the_cgroup_of_a_container_is_found_where_its_path_is_the_hosts(tmp_path: Path) -> None:
    roots = tree(
        tmp_path,
        {
            "proc/self/cgroup": "0::/../docker-4711.scope\n",
            "cgroup/pids.max": "100",
            "cgroup/pids.current": "30",
        },
    )
    assert found(roots, "processes")["pids.max"] == 70


def test_processes_are_limited_by_the_kernel_less_every_thread_that_lives(tmp_path: Path) -> None:
    roots = tree(
        tmp_path,
        {
            "proc/sys/kernel/pid_max": "32768\n",
            "proc/1/status": "Name: init\nUid:\t0\t0\t0\t0\nThreads:\t3\n",
            "proc/22/status": "Name: x\nUid:\t5\t5\t5\t5\nThreads:\t4\n",
            "proc/23/other": "",
        },
    )
    assert found(roots, "processes")["kernel.pid_max"] == 32761


def test_namespaces_and_file_table_are_read(tmp_path: Path) -> None:
    roots = tree(
        tmp_path,
        {
            "proc/sys/user/max_user_namespaces": "96365\n",
            "proc/sys/user/max_net_namespaces": "7\n",
            "proc/sys/fs/file-nr": "579\t0\t2466170\n",
        },
    )
    assert found(roots, "namespaces") == {
        "user.max_user_namespaces": 96365,
        "user.max_net_namespaces": 7,
    }
    assert found(roots, "open files")["fs.file-max"] == 2466170 - 579


def test_the_soft_limit_of_this_process_binds_its_open_files(
    tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _kind: (512, 4096))
    roots = tree(tmp_path, {"proc/self/fd/0": "", "proc/self/fd/1": ""})
    (supply,) = (s for s in measure(tmp_path, roots) if s.resource == "open files")
    assert (supply.free, supply.limit) == (510, "ulimit -n 512")
    assert "up to 4096" in supply.fix


def test_disk_is_measured_where_the_run_will_be_although_it_does_not_exist(tmp_path: Path) -> None:
    supplies = measure(tmp_path / "a" / "b" / "c", tree(tmp_path, {}))
    disk = next(s for s in supplies if s.resource == "disk")
    assert disk.limit == f"free space at {tmp_path}"
    assert disk.free > 0


def test_a_host_without_any_of_these_files_still_has_disk(tmp_path: Path) -> None:
    supplies = measure(tmp_path, tree(tmp_path, {}))
    assert {"disk"} <= {s.resource for s in supplies}


def test_this_machine_is_measured() -> None:
    supplies: tuple[Supply, ...] = measure(Path.cwd())
    assert {"memory", "open files", "processes", "disk"} <= {s.resource for s in supplies}
    assert all(s.free >= 0 for s in supplies)


def test_cores_are_those_this_process_may_use(tmp_path: Path) -> None:
    assert cores(tree(tmp_path, {})) == len(os.sched_getaffinity(0))


@pytest.mark.parametrize(
    "files",
    [
        {"proc/self/cgroup": "0::/a/b\n", "cgroup/a/cpu.max": "25000 100000\n",
         "cgroup/a/b/cpu.max": "max 100000\n"},
        {"proc/self/cgroup": "3:cpu,cpuacct:/a\n", "cgroup/cpu/a/cpu.cfs_quota_us": "25000\n",
         "cgroup/cpu/a/cpu.cfs_period_us": "100000\n", "cgroup/cpu/cpu.cfs_quota_us": "-1\n"},
    ],
    ids=["v2", "v1"],
)  # fmt: skip
def test_a_quota_of_cpu_time_binds(tmp_path: Path, files: dict[str, str]) -> None:
    assert cores(tree(tmp_path, files)) == 0.25
