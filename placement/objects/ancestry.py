"""The root of a node in any forest, whose parents may form loops where another program has written them."""

from __future__ import annotations

from collections.abc import Callable


class CycleError(Exception):
    """Some nodes are their own ancestors; the argument is the list of them."""


def find_root(node: int, parent_of: Callable[[int], int | None], root_of: dict[int, int]) -> None:
    """Add the root of a node, and of all its ancestors, to ``root_of``; raises CycleError."""
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
