"""Named arrays: the form in which an index is built, shared between snapshots, and stored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy.typing as npt

#: Arrays by name; the names in a part begin with the name of the part and a slash.
Arrays = Mapping[str, npt.NDArray[Any]]


def part(arrays: Arrays, name: str) -> Arrays:
    """Return the arrays of a part, by their names without the prefix."""
    prefix = f"{name}/"
    return {key.removeprefix(prefix): array for key, array in arrays.items() if key.startswith(prefix)}


def join(parts: Mapping[str, Arrays]) -> Arrays:
    """Return the arrays of all parts, their names prefixed with that of the part."""
    return {f"{name}/{key}": array for name, arrays in parts.items() for key, array in arrays.items()}
