#!/usr/bin/env python3
"""Show the files and functions of the package that a request enters, and its deepest stack.

    .tox/py3/bin/python tools/trace_request.py [--stack | --functions | --calls] [REQUEST ...]

Each request is traced in this process, in one thread, on a new SQLite database, after a few warm-up requests that fill
caches and refresh the index.  REQUEST is a part of the name of a request, such as "claims"; by default all requests are
traced.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import uuid
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import placement
from placement import extension, wsgi
from tests import caller

PACKAGE = os.path.join(os.path.dirname(placement.__file__), "")
CONFIGURATION = """\
[DEFAULT]
log_file = {directory}/log
[api]
auth_strategy = noauth2
[placement_database]
connection = sqlite:///{directory}/database
sync_on_startup = true
"""
#: Warm-up requests before the traced one.
WARM_UP = 3
CANDIDATES = "/allocation_candidates?resources=VCPU:1&resources1=MEMORY_MB:1&group_policy=none&limit=3"

#: The path of a file in the package, and the name of a function in it.
Function = tuple[str, str]
#: Method, path and body.
Sent = tuple[str, str, Any]


class Trace:
    """The functions of the package that were entered, and the deepest stack of them."""

    def __init__(self) -> None:
        #: The functions in the order in which they were first entered.
        self.functions: dict[Function, None] = {}
        self.deepest: list[Function] = []
        #: Each call, in order, with its depth.
        self.calls: list[tuple[int, Function]] = []
        self._stack: list[Function] = []

    def run(self, call: Callable[[], Any]) -> Any:
        """Trace ``call()`` and return its result."""
        sys.setprofile(self._profile)
        try:
            return call()
        finally:
            sys.setprofile(None)

    def _profile(self, frame: FrameType, event: str, _argument: object) -> None:
        code = frame.f_code
        if not code.co_filename.startswith(PACKAGE):
            return
        if event == "call":
            function = code.co_filename.removeprefix(PACKAGE), code.co_qualname
            self.functions[function] = None
            self.calls.append((len(self._stack), function))
            self._stack.append(function)
            if len(self._stack) > len(self.deepest):
                self.deepest = self._stack[:]
        elif event == "return":
            self._stack.pop()

    def by_file(self) -> dict[str, list[str]]:
        """Return the names of the functions by file, both in the order in which they were first entered."""
        names: dict[str, list[str]] = {}
        for file, name in self.functions:
            names.setdefault(file, []).append(name)
        return names


def requests(provider: str) -> dict[str, Callable[[], Sent]]:
    """Return factories of the requests that can be traced, by name; each claim is for a new consumer."""
    owner = {"project_id": "project", "user_id": "user"}
    allocations = {"allocations": {provider: {"resources": {"VCPU": 1, "MEMORY_MB": 1}}}, **caller.NEW_CONSUMER}

    def claim() -> dict[str, Any]:
        return {"consumer": str(uuid.uuid4()), "consumer_type": "JOB", "query": "resources=VCPU:1", **owner}

    core: dict[str, Callable[[], Sent]] = {
        "GET /resource_providers/{u}": lambda: ("GET", f"/resource_providers/{provider}", None),
        "PUT /allocations": lambda: ("PUT", f"/allocations/{uuid.uuid4()}", allocations),
        "GET /allocation_candidates": lambda: ("GET", CANDIDATES, None),
    }
    if "v1" not in extension.installed_extensions():
        return core
    return core | {
        "POST /v1/claims, optimistic": lambda: ("POST", "/v1/claims", {"requests": [claim()]}),
        "POST /v1/claims, in rounds": lambda: ("POST", "/v1/claims", {"requests": [claim()], "strategy": "pack"}),
        "GET /v1/events": lambda: ("GET", "/v1/events?limit=10", None),
    }


def service(directory: str) -> caller.Caller:
    """Return a client of a new service whose database is in the directory."""
    Path(directory, "placement.conf").write_text(CONFIGURATION.format(directory=directory))
    os.environ["OS_PLACEMENT_CONFIG_DIR"] = directory
    return caller.inside(wsgi.init_application())


def add_provider(call: caller.Caller) -> str:
    """Create a provider with free capacity and return its uuid."""
    provider = str(uuid.uuid4())
    inventories = {"VCPU": {"total": 64}, "MEMORY_MB": {"total": 4096}}
    call("POST", "/resource_providers", body={"name": provider, "uuid": provider})
    document = {"resource_provider_generation": 0, "inventories": inventories}
    call("PUT", f"/resource_providers/{provider}/inventories", body=document)
    return provider


def show(name: str, status: int, trace: Trace, arguments: argparse.Namespace) -> None:
    """Print the figures of a request, and the lists selected by the options."""
    files = trace.by_file()
    counts = f"files {len(files):3} functions {len(trace.functions):4} deepest {len(trace.deepest):3}"
    print(f"{name:28} {status} {counts}")
    if arguments.stack:
        for depth, (file, name) in enumerate(trace.deepest, 1):
            print(f"  {depth:3} {file} {name}")
    if arguments.calls:
        for depth, (file, name) in trace.calls:
            print(f"  {depth * '  '}{file} {name}")
    if arguments.functions:
        for file, functions in files.items():
            print(f"  {file}", *functions, sep="\n    ")


def main() -> None:
    """Trace the requests that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("request", nargs="*", help="a part of the name of a request")
    output = parser.add_mutually_exclusive_group()
    output.add_argument("--stack", action="store_true", help="list the stack down to the deepest function")
    output.add_argument("--functions", action="store_true", help="list the functions by file")
    output.add_argument("--calls", action="store_true", help="list every call in order, indented by its depth")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        call = service(directory)
        provider = add_provider(call)
        factories = requests(provider)
        chosen = {
            n: s for n, s in factories.items() if not arguments.request or any(part in n for part in arguments.request)
        }
        if not chosen:
            parser.error(f"no request has a matching name; the names are: {'; '.join(factories)}")
        for name, sent in chosen.items():
            for _ in range(WARM_UP + 1):
                # Refresh the index: an optimistic claim on a stale one fails, and the next claim would not be
                # optimistic.
                _answer(call, "GET", CANDIDATES, None)
                trace, request = Trace(), sent()
                answer = trace.run(lambda: _answer(call, *request))  # noqa: B023
            show(name, answer.status, trace, arguments)


def _answer(call: caller.Caller, method: str, path: str, body: Any) -> caller.Answer:
    return call(method, path, body=body)


if __name__ == "__main__":
    main()
