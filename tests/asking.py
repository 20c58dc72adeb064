"""placement-ask as a process, and the service that it asks."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

from tests import running

ASK = [sys.executable, "-m", "placement.ask.main"]


def environment() -> dict[str, str]:
    """Return an environment without settings of a client."""
    return {name: value for name, value in os.environ.items() if not name.startswith("OS_")}


@contextlib.contextmanager
def loaded(backend: Any, providers: str) -> Iterator[running.Service]:
    """Run a service whose database has the providers of a file (docs: load)."""
    url = backend.create_database()
    with running.embedded(url) as service:
        done = subprocess.run(
            [sys.executable, "-m", "placement.cmd.manage", "load", "-"],
            env={**os.environ, "OS_PLACEMENT_DATABASE__CONNECTION": url},
            input=providers,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        yield service
    backend.drop_database(url)
