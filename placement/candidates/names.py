"""Whether what a query names exists."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from placement.index.snapshot import Snapshot
from placement.objects.resource_class import ResourceClass
from placement.objects.trait import Trait


def check_classes(names: Collection[str], snapshot: Snapshot) -> None:
    """Nothing; raises UnknownResourceClass for the first that does not exist."""
    ResourceClass.all_known(names, snapshot.class_ids)


def check_traits(names: Collection[str], snapshot: Snapshot, read: Callable[[Callable[[Any], None]], None]) -> None:
    """Nothing; raises UnknownTraits for those that do not exist.

    :param read: ``Database.read``, asked about traits that nobody has: the index knows those in use.
    """
    unused = [name for name in names if name not in snapshot.traits]
    if unused:
        read(lambda db: Trait.check(db, unused))
