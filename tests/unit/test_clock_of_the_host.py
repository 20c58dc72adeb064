"""Times come from the database's clock, or from one function for the host's clock, which tests set (tests/clock.py)."""

from __future__ import annotations

import ast

import pytest

from tests.unit.test_writes_go_through_objects import modules

pytestmark = pytest.mark.xdist_group("sources")

#: Functions that read a clock, by module or class.
CLOCKS = {"datetime": {"now", "utcnow", "today"}, "date": {"today"}, "time": {"time", "time_ns", "localtime", "gmtime"}}
#: Modules that read the host's clock: that of the function; for the changes requested from Nova, with a margin; for the
#: time that a watch prints; for names of files; for the end of a span, whose collector has spans of other hosts.
READERS = {
    "db/schema/tables",
    "extensions/orphans/nova",
    "extensions/terminal/watching",
    "middleware/profiler",
    "tracing/inner_spans",
}


def read(module: ast.Module) -> set[str]:
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
    assert {path for path, module in modules().items() if read(module)} == READERS & {*modules()}


@pytest.mark.parametrize(
    "text", ["datetime.datetime.now(zone)", "datetime.utcnow()", "date.today", "time.time()", "from time import time"]
)
def test_a_use_of_the_clock_is_detected(text):
    assert read(ast.parse(text))


def test_intervals_and_the_clock_of_the_database_are_not_reported():
    assert read(ast.parse("time.monotonic(); req.now(); leases.now(db); utcnow()")) == set()
