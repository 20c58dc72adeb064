"""Python programs that start quickly: forks of a process that has already imported the modules they need.

A program is a separate process, and ends as usual.  Its command line has the form of a shell's: `python -m module`,
`python -c code`, or the path of a script.  Python's own options and PYTHON... variables are the same for all.
"""

from __future__ import annotations

import atexit
import functools
import gc
import importlib
import itertools
import json
import os
import runpy
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import IO, Any

#: Modules of extensions that a service or a command imports at its start, and that import the others.
_EXTENSION_MODULES = ("v1.api", "baremetal.api", "console.api", "doctor.command", "loading.command")
#: Maximum seconds of a program; one that hangs is killed before faulthandler ends the run.
TIMEOUT = 540.0


class Preloaded:
    """A process that has imported modules, and waits to be forked."""

    def __init__(self, *modules: str) -> None:
        # A process with threads of libraries cannot be forked safely.
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.preloaded", *modules],
            cwd=Path(__file__).parents[1],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        atexit.register(self._end)

    def popen(self, argv: Sequence[str], **request: Any) -> Program:
        """Start a program, like subprocess.Popen."""
        return Program(self, argv, **request)

    def run(
        self, argv: Sequence[str], env: Mapping[str, str] | None = None, cwd: Path | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run a program, like subprocess.run; kill it if it takes too long."""
        with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
            program = self.popen(argv, stdout=out, stderr=err, env=env, cwd=cwd)
            watchdog = threading.Timer(TIMEOUT, program.kill)
            watchdog.start()
            code = program.wait()
            watchdog.cancel()
            watchdog.join()
            return subprocess.CompletedProcess(argv, code, out.read(), err.read())

    def ask(self, **request: Any) -> int:
        """Send a request to the process, and return the number in its response."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(request), file=self._process.stdin, flush=True)
        return int(self._process.stdout.readline())

    def _end(self) -> None:
        self._process.communicate()


class Program:
    """A running program, with the part of the interface of subprocess.Popen that children.Child uses."""

    def __init__(
        self,
        parent: Preloaded,
        argv: Sequence[str],
        *,
        stdout: IO[Any],
        stderr: IO[Any],
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        stdin: int = subprocess.DEVNULL,
        start_new_session: bool = False,
    ) -> None:
        self.args = argv
        self.returncode: int | None = None
        self._parent = parent
        self.pid = parent.ask(
            words=argv[1:] if argv[0] == sys.executable else argv,
            outputs=[f"/proc/{os.getpid()}/fd/{file.fileno()}" for file in (stdout, stderr)],
            environment=dict(os.environ if env is None else env),
            directory=str(cwd or Path.cwd()),
            leads=start_new_session,
        )

    def kill(self) -> None:
        """Kill the program with SIGKILL."""
        os.kill(self.pid, signal.SIGKILL)

    def wait(self) -> int:
        """Wait for the end, and return the exit code."""
        if self.returncode is None:
            self.returncode = self._parent.ask(wait=self.pid)
        return self.returncode


@functools.cache
def service() -> Preloaded:
    """Return the process for programs that use the service."""
    from placement import extension  # not in the processes that are forked

    installed = extension.installed_extensions()
    modules = [module for module in _EXTENSION_MODULES if module.partition(".")[0] in installed]
    return Preloaded("placement.wsgi", "waitress", *(f"placement.extensions.{module}" for module in modules))


@functools.cache
def client() -> Preloaded:
    """Return the process for the `openstack` command, which otherwise imports all its plugins each time."""
    entries = itertools.chain.from_iterable(installed.entry_points for installed in metadata.distributions())
    plugins = {entry.module for entry in entries if entry.group.startswith("openstack.")}
    return Preloaded("tests.cached_distributions", "openstackclient.shell", *sorted(plugins))


def _fork_on_request() -> list[str] | None:
    """Fork on each request; return the command line in the child, and None in the parent at the end."""
    gc.freeze()  # a collection in a child would copy the pages of all objects
    while line := sys.stdin.readline():
        request = json.loads(line)
        if "wait" in request:
            _answer(os.waitstatus_to_exitcode(os.waitpid(request["wait"], 0)[1]))
        elif os.fork() == 0:
            return _become(**request)
    return None


def _become(
    words: list[str], outputs: list[str], environment: dict[str, str], directory: str, *, leads: bool
) -> list[str]:
    """Set up this process like subprocess.Popen, and report that."""
    files = [os.open("/dev/null", os.O_RDONLY), *(os.open(path, os.O_WRONLY | os.O_APPEND) for path in outputs)]
    os.chdir(directory)
    os.environ.clear()
    os.environ.update(environment)
    if leads:
        os.setsid()
    _answer(os.getpid())
    for place, file in enumerate(files):
        os.dup2(file, place)
        os.close(file)
    return words


def _answer(number: int) -> None:
    os.write(1, b"%d\n" % number)


def _begin(words: list[str]) -> None:
    """Run the program of a command line."""
    if words[0] == "-m":
        sys.argv[:] = words[1:]
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
    elif words[0] == "-c":
        sys.argv[:] = [words[0], *words[2:]]
        exec(words[1], {"__name__": "__main__"})
    else:
        sys.argv[:] = words
        runpy.run_path(words[0], run_name="__main__")


def _run(words: list[str]) -> None:
    """Run the program, and exit like Python, but without freeing objects, which would copy their pages."""
    code: Any = 0
    try:
        _begin(words)
    except SystemExit as ended:
        code = ended.code or 0
    if threading.active_count() > 1 or not isinstance(code, int):
        sys.exit(code)
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    for module in sys.argv[1:]:
        importlib.import_module(module)
    if (program := _fork_on_request()) is not None:
        _run(program)
