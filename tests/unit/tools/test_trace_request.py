"""tools/trace_request.py: the functions that each request calls."""

import functools
import itertools
import subprocess
import sys
from pathlib import Path

import pytest

from placement import extension

ROOT = Path(__file__).parents[3]

STATUS = {"GET /resource_providers/{u}": "200", "PUT /allocations": "204", "GET /allocation_candidates": "200"}
STATUS_OF_V1 = {"POST /v1/claims, optimistic": "200", "POST /v1/claims, in rounds": "200", "GET /v1/events": "200"}


@functools.cache
def trace_lines(*arguments):
    """Return the output of the tool."""
    command = [sys.executable, "tools/trace_request.py", *arguments]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return result.stdout.splitlines()


def functions_of(request):
    """Return the head line of a request, and the lines of its functions by file."""
    lines = trace_lines("--functions")
    first = next(number for number, line in enumerate(lines) if line.startswith(request))
    functions = itertools.takewhile(lambda line: line.startswith("  "), lines[first + 1 :])
    return lines[first], [*functions]


def test_every_request_is_answered_and_counted():
    expected = STATUS | (STATUS_OF_V1 if "v1" in extension.installed_extensions() else {})
    statuses = {}
    for line in trace_lines():
        *name, status, files, file_count, functions, function_count, deepest, depth = line.split()
        assert (files, functions, deepest) == ("files", "functions", "deepest")
        assert 0 < int(file_count) < int(function_count)
        assert int(depth) > 0
        statuses[" ".join(name)] = status
    assert statuses == expected


def test_the_stack_goes_down_to_the_database():
    head, *stack = trace_lines("--stack", "resource_providers")
    assert len(stack) == int(head.split()[-1])
    assert "handlers/provider.py show" in " ".join(stack)


def test_the_calls_are_listed_in_order_with_their_depth():
    head, *calls = trace_lines("--calls", "resource_providers")
    depths = [(len(line) - len(line.lstrip())) // 2 - 1 for line in calls]
    assert max(depths) + 1 == int(head.split()[-1])
    assert all(later <= earlier + 1 for earlier, later in itertools.pairwise(depths))
    names = [line.strip() for line in calls]
    assert names.index("handlers/provider.py show") < names.index("objects/provider.py ResourceProvider.get")


@pytest.mark.skipif("v1" not in extension.installed_extensions(), reason="the extension v1 is not installed")
def test_a_claim_is_traced_with_and_without_an_optimistic_claim():
    claims = "  extensions/v1/claims/engine.py"
    optimistic, in_rounds = (functions_of(f"POST /v1/claims, {name}")[1] for name in ("optimistic", "in rounds"))
    assert ("    Claiming.run_optimistically" in optimistic, "    Claiming.run" in optimistic) == (True, False)
    assert ("    Claiming.run_optimistically" in in_rounds, "    Claiming.run" in in_rounds) == (False, True)
    assert claims in optimistic


def test_an_unknown_name_of_a_request_is_an_error():
    command = [sys.executable, "tools/trace_request.py", "put"]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert (result.returncode, result.stdout) == (2, "")
    assert "PUT /allocations" in result.stderr


def test_the_functions_are_listed_by_file():
    head, lines = functions_of("GET /resource_providers")
    _, files, _, functions, _, _ = head.split()[-6:]
    by_indent = [sum(line.startswith(indent) for line in lines) for indent in ("  ", "    ")]
    assert by_indent == [int(files) + int(functions), int(functions)]
    assert "  handlers/provider.py" in lines
