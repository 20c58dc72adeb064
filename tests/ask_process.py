"""placement-ask as a process, and its service."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
import threading
from collections.abc import Iterator, Mapping, Sequence
from importlib import metadata
from typing import IO, Any

from tests import children, running, servers

ASK = [sys.executable, "-m", "placement.extensions.terminal.main"]


def environment() -> dict[str, str]:
    """Return an environment without settings of a client."""
    return {name: value for name, value in os.environ.items() if not name.startswith("OS_")}


def require_command(command: str) -> None:
    """Raise Missing unless ``openstack`` finds a command of the package."""
    if command.replace(" ", "_") not in metadata.entry_points(group="openstack.placement.v1").names:
        raise servers.Missing("the entry points are not installed: pip install -e .")


@contextlib.contextmanager
def service_with_providers(backend: Any, providers: str) -> Iterator[running.Service]:
    """Run a service whose database contains the providers of a file (docs: load)."""
    url = backend.create_database()
    with running.embedded(url) as service:
        completed = subprocess.run(
            [sys.executable, "-m", "placement.cmd.manage", "load", "-"],
            env={**os.environ, "OS_PLACEMENT_DATABASE__CONNECTION": url},
            input=providers,
            capture_output=True,
            text=True,
            check=False,
        )
        assert completed.returncode == 0, completed.stderr
        yield service
    backend.drop_database(url)


@contextlib.contextmanager
def watching(environment: Mapping[str, str], *words: str, **streams: Any) -> Iterator[subprocess.Popen[str]]:
    """Run a command that does not end by itself, during a block."""
    with subprocess.Popen([*ASK, *words], env=environment, text=True, **streams) as process:
        watchdog = threading.Timer(
            children.PATIENCE, process.kill
        )  # it would run forever if the expected output did not come
        watchdog.start()
        try:
            yield process
        finally:
            watchdog.cancel()
            process.kill()


def until(stream: IO[str], text: str) -> list[str]:
    """Read lines until one contains a text; return it, and the lines before it."""
    lines = [stream.readline()]
    while text not in lines[-1]:
        assert lines[-1], lines
        lines.append(stream.readline())
    return lines


def in_terminal(words: Sequence[str], environment: Mapping[str, str], columns: int, typed: str = "") -> tuple[int, str]:
    """Return the exit code of a process, and its output to a terminal with a width and typed input."""
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    with subprocess.Popen(words, stdout=follower, stderr=follower, stdin=follower, env=environment) as process:
        os.close(follower)
        os.write(leader, typed.encode())
        output = b""
        with contextlib.suppress(OSError):  # the end of a terminal
            while chunk := os.read(leader, 65536):
                output += chunk
        os.close(leader)
    return process.returncode, output.decode().replace("\r\n", "\n")
