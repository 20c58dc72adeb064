"""How long a run of the tests still takes, by what its files took before."""

from __future__ import annotations

from tests.time_left import Rest

IDS = ["a.py::one", "a.py::two", "b.py::one", "b.py::two"]


def rest(known, *finished):
    found = Rest(known)
    found.collected(IDS)
    for name in finished:
        found.finished(name)
    return found


def test_without_a_run_before_all_tests_take_the_same():
    assert rest({}, "a.py::one").line(61) == "1 of 4 tests in 1:01, about 3:03 left"


def test_tests_take_what_those_of_their_file_took_before():
    assert (
        rest({"a.py": 1.0, "b.py": 5.0}, "a.py::one", "a.py::two").line(60) == "2 of 4 tests in 1:00, about 5:00 left"
    )


def test_a_file_that_is_new_takes_what_others_take():
    assert rest({"a.py": 2.0}, "a.py::one", "b.py::one").line(30) == "2 of 4 tests in 0:30, about 0:30 left"


def test_the_seconds_of_a_file_are_remembered_per_test():
    assert rest({}, "a.py::one", "a.py::two").per_test({"a.py": 3.0, "b.py": 9.0}) == {"a.py": 1.5}
