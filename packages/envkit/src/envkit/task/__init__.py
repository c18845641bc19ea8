# SPDX-License-Identifier: Apache-2.0
"""A Harbor task directory and the world it plays in, read and checked without Harbor.

types        Task, World, Problem
load         `find_tasks`, `load_task`
lint         every static problem of a task directory
materialize  a world's documents on disk, made once and cached by digest
"""

from envkit.task.lint import lint
from envkit.task.load import find_tasks, load_task, load_world_dir
from envkit.task.materialize import materialize
from envkit.task.types import Generator, Problem, Severity, Task, World

__all__ = [
    "Generator",
    "Problem",
    "Severity",
    "Task",
    "World",
    "find_tasks",
    "lint",
    "load_task",
    "load_world_dir",
    "materialize",
]
