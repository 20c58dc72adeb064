"""What tests of runs require of a result."""

from __future__ import annotations

import pytest

from jepsen.run import Result


def assert_sound(result: Result) -> None:
    """Fail the test if something is violated.

    Where a search found no verdict, nothing is known to be wrong, and nothing to be right: the test then ends as an
    expected failure, which says what is not known.
    """
    assert list(result.violations) == [], result.path
    if result.undecided:
        pytest.xfail(f"{'; '.join(one.sentence for one in result.undecided)}; history: {result.path}")
