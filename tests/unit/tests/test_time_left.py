"""The estimated remaining time of a test run, from the earlier times of its files."""

from __future__ import annotations

from tests.time_left import RemainingTests

A, B = "tests/load/test_a.py", "tests/gabbi/test_b.py"
IDS = [f"{A}::one", f"{A}::two", f"{B}::one", f"{B}::two"]


def estimate(times, *finished):
    """Return the estimate after some tests have finished, from the earlier times per file."""
    remaining_tests = RemainingTests(times)
    remaining_tests.add(IDS)
    for name in finished:
        remaining_tests.finish(name)
    return remaining_tests


def test_in_a_first_run_tests_take_the_usual_time_of_their_directory():
    assert estimate({}, f"{A}::one").line(61) == "1 of 4 tests in 1:01, about 1:22 left"


def test_tests_take_the_earlier_time_of_their_file():
    times = {A: 1.0, B: 5.0}
    assert estimate(times, f"{A}::one", f"{A}::two").line(60) == "2 of 4 tests in 1:00, about 5:00 left"


def test_a_new_file_takes_the_usual_time():
    assert estimate({A: 0.7}, f"{A}::one", f"{B}::one").line(30) == "2 of 4 tests in 0:30, about 0:30 left"


def test_the_seconds_of_a_file_are_remembered_per_test():
    assert estimate({}, f"{A}::one", f"{A}::two").per_test({A: 3.0, B: 9.0}) == {A: 1.5}
