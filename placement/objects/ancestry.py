"""Roots of the nodes of a forest; parents written by another implementation may form cycles."""

from __future__ import annotations

from collections.abc import Callable


class CycleError(Exception):
    """A cycle of parents; the argument is the list of its nodes."""


def add_root(node: int, parent_of: Callable[[int], int | None], root_of: dict[int, int]) -> None:
    """Add the root of a node and of each of its ancestors to ``root_of``.

    Raises:
        CycleError: The node is in a cycle, or below one.
    """
    path: dict[int, None] = {}
    while node not in root_of:
        if node in path:
            ancestors = list(path)
            raise CycleError(ancestors[ancestors.index(node) :])
        path[node] = None
        parent = parent_of(node)
        if parent is None:
            root_of[node] = node
        else:
            node = parent
    root_of.update(dict.fromkeys(path, root_of[node]))
