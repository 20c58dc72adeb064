"""Tests that a short run has on one database each: none is left out, and every database has its part."""

from __future__ import annotations

import collections
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests import conftest

KINDS = ("sqlite", "mariadb", "postgresql")
MARK = object()


class Item:
    """A test as pytest has collected it."""

    fixturenames = ("backend",)
    path = Path("tests/db/test_module.py")

    def __init__(self, name, kind, *, marked):
        self.name, self.nodeid, self.marked = name, f"tests/db/test_module.py::test_it[{kind}-{name}]", marked
        self.callspec = SimpleNamespace(params={"backend": kind})

    def get_closest_marker(self, name):
        return MARK if self.marked and name == "in_turn" else None


def collected(count, kinds=KINDS, *, marked=True):
    """Return tests in the order of collection: those of a parameter together, one for each kind of database."""
    return [Item(f"row{number}", kind, marked=marked) for number in range(count) for kind in kinds]


@pytest.fixture
def run(monkeypatch):
    """Return a function that returns what a run has of collected tests, and what it leaves out."""

    def modified(items, *, long=False):
        left_out = []
        config = SimpleNamespace(hook=SimpleNamespace(pytest_deselected=lambda items: left_out.extend(items)))
        monkeypatch.setattr(conftest, "is_long", lambda: long)
        items = [*items]
        conftest.pytest_collection_modifyitems(config, items)
        return items, left_out

    return modified


def test_each_test_runs_once_and_each_database_has_its_part(run):
    items, left_out = run(collected(7))
    assert sorted(item.name for item in items) == [f"row{number}" for number in range(7)]
    kinds = collections.Counter(item.callspec.params["backend"] for item in items)
    assert kinds == {"mariadb": 3, "postgresql": 2, "sqlite": 2}
    assert len(left_out) == 14


def test_with_one_database_each_test_runs_on_it(run):
    items = collected(4, ["postgresql"])
    assert run(items) == (items, [])


def test_a_long_run_and_a_test_without_the_mark_have_all(run):
    items = collected(4)
    assert run(items, long=True) == (items, [])
    items = collected(4, marked=False)
    assert run(items) == (items, [])
