"""Timestamps come from the clock of the database, or from one function that reads the host's and that tests replace."""

from __future__ import annotations

import ast

import pytest

from tests.unit.test_writes_go_through_objects import modules

pytestmark = pytest.mark.xdist_group("sources")

#: Functions that read a clock, by module or class.
CLOCKS = {"datetime": {"now", "utcnow", "today"}, "date": {"today"}, "time": {"time", "time_ns", "localtime", "gmtime"}}
#: Modules that read the host's clock.
READERS = {
    "db/schema/tables",  # the function that tests replace (tests/clock.py)
    "extensions/orphans/nova",  # requests the changes since a time, with a margin for nova's clocks
    "extensions/terminal/watching",  # prints the time
    "index/store",  # compares the ages of files
    "middleware/profiler",  # names files
    "tracing/inner_spans",  # dates spans, which a collector compares with the spans of other hosts
}


def clock_functions(module: ast.Module) -> set[str]:
    """Return the clock functions that a module refers to, called or not."""
    functions = set()
    for node in ast.walk(module):
        if isinstance(node, ast.Attribute):
            owner = node.value.attr if isinstance(node.value, ast.Attribute) else getattr(node.value, "id", "")
            functions |= {f"{owner}.{node.attr}"} if node.attr in CLOCKS.get(owner, ()) else set()
        elif isinstance(node, ast.ImportFrom) and node.module == "time":
            functions |= {f"time.{alias.name}" for alias in node.names if alias.name in CLOCKS["time"]}
    return functions


def test_only_the_listed_modules_read_the_clock_of_the_host():
    assert {path for path, module in modules().items() if clock_functions(module)} == READERS & {*modules()}


@pytest.mark.parametrize(
    "text", ["datetime.datetime.now(zone)", "datetime.utcnow()", "date.today", "time.time()", "from time import time"]
)
def test_a_use_of_the_clock_is_detected(text):
    assert clock_functions(ast.parse(text))


def test_monotonic_clocks_and_the_clock_of_the_database_are_allowed():
    assert clock_functions(ast.parse("time.monotonic(); req.now(); leases.now(db); utcnow()")) == set()
