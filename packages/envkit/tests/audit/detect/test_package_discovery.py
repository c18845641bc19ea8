# SPDX-License-Identifier: Apache-2.0
import pytest

from envkit.audit.types import Owner

NAME = "package-discovery"


def missing(module: str) -> str:
    head = 'Traceback (most recent call last):\n  File "a"\n'
    return f"{head}ModuleNotFoundError: No module named '{module}'"


def run(code: str) -> dict[str, str]:
    return {"code": code}


def test_the_chain_from_the_import_to_the_first_work_is_counted(traces, fail, say) -> None:
    traces.run(
        "task_a",
        [
            ("exec", run("python3 sum.py"), fail(missing("pandas"), 1)),
            ("exec", run("pip install pandas"), fail("sh: 1: pip: not found", 127)),
            ("exec", run("which pip3"), say({"success": True, "output": ""})),
            ("exec", run("python3 -c 'print(1+1)'"), say({"success": True, "output": "2"})),
        ],
    )
    (found,) = traces.findings(NAME)
    assert (found.subject, found.count, found.recovered, found.step) == ("pandas", 3, True, 2)


def test_each_module_is_one_finding_a_run(traces, fail) -> None:
    steps = [("exec", run(f"python3 {n}.py"), fail(missing("pandas"), 1)) for n in range(3)]
    traces.run("task_a", [*steps, ("exec", run("python3 b.py"), fail(missing("numpy.linalg"), 1))])
    assert [found.subject for found in traces.findings(NAME)] == ["pandas", "numpy"]


def test_never_worked_is_not_recovered(traces, fail) -> None:
    traces.run("task_a", [("exec", run("python3 a.py"), fail(missing("pandas"), 1))])
    (found,) = traces.findings(NAME)
    assert found.recovered is False


def test_near_miss_the_agents_own_probe(traces, say) -> None:
    output = missing("pandas") + "\nno pandas"
    probe = run("python3 -c 'import pandas' 2>&1 || echo no pandas")
    traces.run("task_a", [("exec", probe, say({"success": True, "output": output}))])
    assert traces.findings(NAME) == []


def test_near_miss_a_module_the_agent_wrote_itself(traces, fail, say) -> None:
    wrote = ("exec", run("cat > helper.py <<'E'\nx=1\nE"), say({"success": True, "output": ""}))
    traces.run("task_a", [wrote, ("exec", run("python3 -m main"), fail(missing("helper"), 1))])
    assert traces.findings(NAME) == []


def test_near_miss_an_error_after_an_import_that_worked(traces, fail) -> None:
    stderr = 'Traceback (most recent call last):\n  File "a"\n    import pandas\nKeyError: "x"'
    traces.run("task_a", [("exec", run("python3 a.py"), fail(stderr, 1))])
    assert traces.findings(NAME) == []


def test_near_miss_a_document_that_quotes_the_error(traces, say) -> None:
    traces.run("task_a", [("pdf", {}, say({"error": None, "text": missing("pandas")}))])
    assert traces.findings(NAME) == []


@pytest.mark.parametrize(("tasks", "owner"), [(3, Owner.ENVIRONMENT), (2, Owner.UNKNOWN)])
def test_missing_in_three_tasks_was_to_be_installed(traces, fail, tasks, owner) -> None:
    for number in range(tasks):
        traces.run(f"task_{number}", [("exec", run("python3 a.py"), fail(missing("pandas"), 1))])
    assert {found.owner for found in traces.findings(NAME)} == {owner}
