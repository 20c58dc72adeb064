"""Whether what a query names exists."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from placement import errors
from placement.index.snapshot import Snapshot
from placement.objects.resource_class import ResourceClass
from placement.objects.trait import Trait

Read = Callable[[Callable[[Any], frozenset[str]]], frozenset[str]]


def check_classes(names: Collection[str], snapshot: Snapshot) -> None:
    """Nothing; raises UnknownResourceClass for the first that does not exist."""
    ResourceClass.all_known(names, snapshot.class_ids)


def unknown_traits(names: Collection[str], snapshot: Snapshot, read: Read) -> frozenset[str]:
    """Those that do not exist.

    :param read: ``Database.read``, asked about traits that nobody has: the index knows those in use.
    """
    unused = [name for name in names if name not in snapshot.traits]
    return read(lambda db: Trait.unknown(db, unused)) if unused else frozenset()


def refuse_traits(unknown: Collection[str]) -> None:
    """Nothing, if there are none; raises UnknownTraits."""
    if unknown:
        raise errors.UnknownTraits(names=", ".join(sorted(unknown)))
