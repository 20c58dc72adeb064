"""A short run runs each test on one database, which its id selects, and marked tests on every database."""

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


def collect(count, kinds=KINDS, mark=None):
    """Return tests in the order of collection: each row on every kind of database."""
    return [Item(f"row{number}", kind, mark) for number in range(count) for kind in kinds]


@pytest.fixture
def run(monkeypatch):
    """Return a function that returns the selected and the deselected tests of a run."""

    def select(items, *, long=False):
        left_out = []
        config = SimpleNamespace(hook=SimpleNamespace(pytest_deselected=lambda items: left_out.extend(items)))
        monkeypatch.setattr(conftest, "is_long", lambda: long)
        items = [*items]
        conftest.pytest_collection_modifyitems(config, items)
        return items, left_out

    return select


def test_each_test_runs_once_and_each_database_has_its_part(run):
    items, left_out = run(collect(100))
    assert sorted(item.name for item in items) == sorted(f"row{number}" for number in range(100))
    kinds = [item.callspec.params["backend"] for item in items]
    assert min(kinds.count(kind) for kind in KINDS) >= 5
    assert kinds.count("sqlite") > 50
    assert len(left_out) == 200


def test_the_database_of_a_test_does_not_depend_on_other_tests(run):
    items, _ = run(collect(30))
    for item in items:
        selection, _ = run([other for other in collect(30) if other.name == item.name])
        assert [chosen.nodeid for chosen in selection] == [item.nodeid]


def test_with_one_database_each_test_runs_on_it(run):
    items = collect(4, ["postgresql"])
    assert run(items) == (items, [])


def test_a_long_run_and_tests_of_every_database_are_complete(run):
    items = collect(4)
    assert run(items, long=True) == (items, [])
    items = collect(4, mark="every_database")
    assert run(items) == (items, [])


def test_a_test_marked_as_long_is_in_a_long_run_only(run):
    items = collect(4, mark="long")
    assert run(items) == ([], items)
    assert run(items, long=True) == (items, [])
