# SPDX-License-Identifier: Apache-2.0
"""The root file system of boxes: whole, declared, built once."""

import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from envkit.fault import TaskError
from envkit.image.closure import closure, import_names, owned_files
from envkit.image.rootfs import (
    INTERPRETER,
    REQUIRED_TOOLS,
    RootSpec,
    ensure_rootfs,
    promised_modules,
    root_digest,
)

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="not run: needs root")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return ensure_rootfs(RootSpec(packages=("openpyxl",)), tmp_path_factory.mktemp("cache"))


@pytest.mark.integration
def test_it_holds_every_required_tool_and_one_python_under_both_names(root: Path):
    for tool in REQUIRED_TOOLS:
        assert os.access(root / "usr/bin" / tool, os.X_OK), tool
    for name in ("python", "python3"):
        shim = (root / "usr/local/bin" / name).read_text()
        assert shim.startswith(f"#!{INTERPRETER} ")
    assert os.access(root / INTERPRETER.lstrip("/"), os.X_OK)
    assert promised_modules(root) == ["openpyxl"]


@pytest.mark.integration
@needs_root
def test_a_promised_package_and_what_it_needs_import_inside(root: Path):
    program = "import openpyxl, et_xmlfile, ssl, sqlite3; print(openpyxl.__version__)"
    done = subprocess.run(
        ["/usr/sbin/chroot", root, "/usr/local/bin/python3", "-c", program],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stderr == ""
    assert done.stdout.strip() == closure(["openpyxl"])["openpyxl"].version


@pytest.mark.integration
def test_nothing_that_was_not_promised_is_in_it(root: Path):
    site = next((root / "usr/local/lib").glob("python3*")) / "site-packages"
    packages = {path.name for path in site.iterdir() if path.is_dir()}
    assert {name for name in packages if not name.endswith(".dist-info")} == {
        "openpyxl",
        "et_xmlfile",
    }
    assert list((root / "root").iterdir()) == []
    assert list((root / "home").iterdir()) == []


@pytest.mark.integration
def test_the_same_spec_is_found_and_not_built_again(root: Path):
    before = root.stat()
    again = ensure_rootfs(RootSpec(packages=("openpyxl",)), root.parents[1])
    assert again == root
    assert again.stat().st_ino == before.st_ino


@pytest.mark.integration
def test_two_builders_at_once_end_with_one_whole_root(tmp_path: Path):
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(lambda _: ensure_rootfs(RootSpec(), tmp_path), range(2))
    assert first == second
    assert [path.name for path in first.parent.iterdir()] == [first.name]
    assert (first / "usr/bin/bash").exists()


def test_the_digest_tells_packages_and_owners_apart():
    digests = {
        root_digest(RootSpec()),
        root_digest(RootSpec(packages=("openpyxl",))),
        root_digest(RootSpec(owner_uid=60_600)),
    }
    assert len(digests) == 3
    assert root_digest(RootSpec()) == root_digest(RootSpec())


def test_a_promised_package_that_is_not_installed_is_the_tasks_fault():
    with pytest.raises(TaskError, match=r"no-such-package.*pip install no-such-package"):
        closure(["no-such-package"])


def test_extras_and_markers_decide_what_a_package_needs():
    assert "et-xmlfile" in closure(["openpyxl"])
    assert "xlsxwriter" not in closure(["openpyxl"])


def test_a_package_is_imported_by_its_own_name():
    names = import_names(["python-docx", "python-pptx", "numpy", "pdfplumber"])
    assert names == ["docx", "numpy", "pdfplumber", "pptx"]


def test_files_outside_site_packages_are_not_copied():
    scripts = [relative for _, relative in owned_files(closure(["pdfplumber"])["pdfplumber"])]
    assert scripts
    assert not any(".." in relative.parts for relative in scripts)
