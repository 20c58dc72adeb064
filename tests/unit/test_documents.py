"""Documents name what exists."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_known_failure_names_a_test_that_exists():
    table = (ROOT / "docs" / "failure-modes.rst").read_text().partition("Not by a test")[0]
    named = re.findall(r"``((?:gabbits|tests)/[^`]+)``", table)
    assert len(named) >= 30
    for name in named:
        path, _, test = name.partition("::")
        assert (ROOT / path).is_file(), name
        assert not test or f"def {test}(" in (ROOT / path).read_text(), name
