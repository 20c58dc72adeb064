"""Whole numbers in queries, where every value is a text."""

from __future__ import annotations

from placement.schemas.declarations import Scalar, string

#: A positive number of any size.
POSITIVE = string(pattern="^[1-9][0-9]*$", description="a whole number from 1")


def up_to(maximum: int) -> Scalar:
    """Return the type of numbers from 1 to ``maximum``, which must be a power of ten."""
    digits = len(str(maximum)) - 1
    pattern = f"^([1-9][0-9]{{0,{digits - 1}}}|{maximum})$"
    return string(pattern=pattern, description=f"a whole number from 1 to {maximum}")
