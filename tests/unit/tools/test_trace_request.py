"""tools/trace_request.py: what each request enters."""

import subprocess
import sys
from pathlib import Path

from placement import extension

ROOT = Path(__file__).parents[3]

STATUS = {"GET /resource_providers/{u}": "200", "PUT /allocations": "204", "GET /allocation_candidates": "200"}
STATUS_OF_V1 = {"POST /v1/claims": "200", "GET /v1/events": "200"}


def traced(*arguments):
    """Return what the tool prints, in lines."""
    command = [sys.executable, "tools/trace_request.py", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_every_request_is_answered_and_counted():
    expected = STATUS | (STATUS_OF_V1 if "v1" in extension.installed() else {})
    found = {}
    for line in traced():
        *name, status, files, files_, functions, functions_, deepest, deepest_ = line.split()
        assert (files, functions, deepest) == ("files", "functions", "deepest")
        assert 0 < int(files_) < int(functions_)
        assert int(deepest_) > 0
        found[" ".join(name)] = status
    assert found == expected


def test_the_stack_goes_down_to_the_database():
    head, *stack = traced("--stack", "resource_providers")
    assert len(stack) == int(head.split()[-1])
    assert "handlers/provider.py show" in " ".join(stack)


def test_the_functions_are_listed_by_file():
    head, *listed = traced("--functions", "resource_providers")
    _, files, _, functions, _, _ = head.split()[-6:]
    by_indent = [sum(line.startswith(indent) for line in listed) for indent in ("  ", "    ")]
    assert by_indent == [int(files) + int(functions), int(functions)]
    assert "  handlers/provider.py" in listed
