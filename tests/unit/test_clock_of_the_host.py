"""Times are of the database's clock, or of the one function for the host's, whose clock tests set (tests/clock.py)."""

from __future__ import annotations

import ast

import pytest

from tests.unit.test_writes_go_through_objects import modules

pytestmark = pytest.mark.xdist_group("sources")

#: What asks for the time: names of modules or classes, and of functions of these.
CLOCKS = {"datetime": {"now", "utcnow", "today"}, "date": {"today"}, "time": {"time", "time_ns", "localtime", "gmtime"}}
#: The modules that do: that of the function; what asks Nova for changes since then, with a margin; what
#: says when it has looked; names of files; when a span has ended, for a collector that has those of other hosts.
READERS = {
    "db/schema/tables",
    "extensions/orphans/nova",
    "extensions/terminal/watching",
    "middleware/profiler",
    "tracing/inner_spans",
}


def read(module: ast.Module) -> set[str]:
    """Return the functions that a module takes from these clocks, called or not."""
    functions = set()
    for node in ast.walk(module):
        if isinstance(node, ast.Attribute):
            owner = node.value.attr if isinstance(node.value, ast.Attribute) else getattr(node.value, "id", "")
            functions |= {f"{owner}.{node.attr}"} if node.attr in CLOCKS.get(owner, ()) else set()
        elif isinstance(node, ast.ImportFrom) and node.module == "time":
            functions |= {f"time.{alias.name}" for alias in node.names if alias.name in CLOCKS["time"]}
    return functions


def test_only_the_listed_modules_read_the_clock_of_the_host():
    assert {path for path, module in modules().items() if read(module)} == READERS & {*modules()}


@pytest.mark.parametrize(
    "text", ["datetime.datetime.now(zone)", "datetime.utcnow()", "date.today", "time.time()", "from time import time"]
)
def test_a_use_of_the_clock_is_detected(text):
    assert read(ast.parse(text))


def test_intervals_and_the_clock_of_the_database_are_not_reported():
    assert read(ast.parse("time.monotonic(); req.now(); leases.now(db); utcnow()")) == set()
