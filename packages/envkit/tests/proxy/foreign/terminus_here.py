# SPDX-License-Identifier: Apache-2.0
"""Harbor's Terminus-2 as it is, told of its model by keyword arguments alone.

It brings its tmux along, where it would install one: boxes have the tools of their world.
"""

import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any, override

from harbor.agents.terminus_2.terminus_2 import Terminus2
from harbor.environments.base import BaseEnvironment

PLACE = "/opt/tmux"


class Terminus(Terminus2):
    """Asks ``base``, which calls its model ``tiny``."""

    def __init__(self, logs_dir: Path, model_name: str | None = None, **more: Any) -> None:
        base = more.pop("base")
        super().__init__(  # pyright: ignore[reportUnknownMemberType]
            logs_dir,
            "openai/tiny",
            api_base=base,
            llm_kwargs={"api_key": "none"},
            record_terminal_session=False,
            model_info={
                "max_input_tokens": 32_000,
                "max_output_tokens": 4_000,
                "input_cost_per_token": 0.0,
                "output_cost_per_token": 0.0,
            },
            **more,
        )

    @override
    async def setup(self, environment: BaseEnvironment) -> None:
        with tempfile.TemporaryDirectory() as folder:
            loader = gather(Path(folder))
            await environment.upload_dir(Path(folder), PLACE)
        run = f'#!/bin/bash\nexec {PLACE}/{loader} --library-path {PLACE} {PLACE}/tmux "$@"\n'
        line = f"printf '%s' '{run}' > /usr/local/bin/tmux; chmod 755 /usr/local/bin/tmux {PLACE}/*"
        await environment.exec(line, user="root")
        await super().setup(environment)


def gather(folder: Path) -> str:
    """The program and its libraries; the name of their loader."""
    program = shutil.which("tmux")
    assert program is not None
    listed = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    libraries = [Path(word) for word in listed.split() if word.startswith("/")]
    for file in (Path(program), *libraries):
        shutil.copy(file, folder / file.name)
    return next(each.name for each in libraries if each.name.startswith("ld-"))
