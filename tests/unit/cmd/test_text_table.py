"""The examples in the docstrings of text_table are right."""

from __future__ import annotations

import doctest

from placement.cmd import text_table


def test_the_examples_in_the_docstrings_are_right():
    result = doctest.testmod(text_table)
    assert (result.failed, result.attempted > 0) == (0, True)
