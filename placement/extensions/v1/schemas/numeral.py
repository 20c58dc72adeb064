"""Whole numbers in queries, which are texts there."""

from __future__ import annotations

from placement.schemas.declarations import Scalar, string

#: One of any size.
POSITIVE = string(pattern="^[1-9][0-9]*$", description="a whole number from 1")


def up_to(most: int) -> Scalar:
    """Return the type of numbers from 1 to a power of ten."""
    digits = len(str(most)) - 1
    return string(pattern=f"^([1-9][0-9]{{0,{digits - 1}}}|{most})$", description=f"a whole number from 1 to {most}")
