"""The tests of a short run: each on one database, which its id selects, or on every database if marked so."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from tests import conftest

KINDS = ("sqlite", "mariadb", "postgresql")
MARK = object()


class Item:
    """A collected test of pytest."""

    fixturenames = ("backend",)
    path = Path("tests/db/test_module.py")

    def __init__(self, name, kind, mark):
        self.name, self.nodeid, self.mark = name, f"tests/db/test_module.py::test_it[{kind}-{name}]", mark
        self.callspec = SimpleNamespace(params={"backend": kind})

    def get_closest_marker(self, name):
        return MARK if self.mark == name else None


def collected(count, kinds=KINDS, mark=None):
    """Return tests in the order of collection: grouped by parameter, one for each kind of database."""
    return [Item(f"row{number}", kind, mark) for number in range(count) for kind in kinds]


@pytest.fixture
def run(monkeypatch):
    """Return a function that returns the selected and the deselected tests of a run."""

    def modified(items, *, long=False):
        left_out = []
        config = SimpleNamespace(hook=SimpleNamespace(pytest_deselected=lambda items: left_out.extend(items)))
        monkeypatch.setattr(conftest, "is_long", lambda: long)
        items = [*items]
        conftest.pytest_collection_modifyitems(config, items)
        return items, left_out

    return modified


def test_each_test_runs_once_and_each_database_has_its_part(run):
    items, left_out = run(collected(100))
    assert sorted(item.name for item in items) == sorted(f"row{number}" for number in range(100))
    kinds = [item.callspec.params["backend"] for item in items]
    assert min(kinds.count(kind) for kind in KINDS) >= 5
    assert kinds.count("sqlite") > 50
    assert len(left_out) == 200


def test_the_database_of_a_test_does_not_depend_on_other_tests(run):
    items, _ = run(collected(30))
    for item in items:
        alone, _ = run([each for each in collected(30) if each.name == item.name])
        assert [each.nodeid for each in alone] == [item.nodeid]


def test_with_one_database_each_test_runs_on_it(run):
    items = collected(4, ["postgresql"])
    assert run(items) == (items, [])


def test_a_long_run_and_tests_of_every_database_are_complete(run):
    items = collected(4)
    assert run(items, long=True) == (items, [])
    items = collected(4, mark="every_database")
    assert run(items) == (items, [])


def test_a_test_marked_as_long_is_in_a_long_run_only(run):
    items = collected(4, mark="long")
    assert run(items) == ([], items)
    assert run(items, long=True) == (items, [])
