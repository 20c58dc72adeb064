"""Inconsistent rows, which the schema allows; the index corrects them or leaves them out, and the log names them.

Lost commits, other implementations and manual changes cause them: a membership in an aggregate that does not exist, a
provider without a generation, a provider that is its own ancestor.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from typing import Any

from placement.objects.ancestry import CycleError, add_root

LOG = logging.getLogger(__name__)

#: Maximum number of rows named in one message.
_MAX_NAMED = 5
#: Maximum number of rows per finding remembered as logged.
_MAX_REMEMBERED = 1000

_logged: dict[str, set[Hashable]] = {}

ProviderRows = Sequence[tuple[int, str, str | None, int | None, int | None, int | None]]


def _log_once(finding: str, rows: Collection[Hashable]) -> None:
    """Log the rows that were not yet logged for this finding."""
    logged = _logged.setdefault(finding, set())
    new = [row for row in rows if row not in logged] if rows and len(logged) < _MAX_REMEMBERED else []
    if not new:
        return
    logged.update(new[:_MAX_REMEMBERED])
    more = f" and {len(new) - _MAX_NAMED} more" if len(new) > _MAX_NAMED else ""
    LOG.error("In the database, %s: %s%s.", finding, ", ".join(map(str, new[:_MAX_NAMED])), more)


def parents_and_roots(providers: ProviderRows) -> tuple[Mapping[int, int | None], Mapping[int, int]]:
    """Return the parent and the root of each provider, by id.

    The root follows from the parents; a different root in a row is ignored and logged.  A provider with a
    missing parent, and the provider with the lowest id in a cycle, are logged and treated as roots.
    """
    parent_of = {row[0]: row[4] for row in providers}
    root_of = {id_: id_ for id_, parent in parent_of.items() if parent is None}
    if len(root_of) < len(parent_of):
        orphans = [id_ for id_, parent in parent_of.items() if parent is not None and parent not in parent_of]
        parent_of.update(dict.fromkeys(orphans))
        circular = []
        for id_ in parent_of:
            try:
                add_root(id_, parent_of.__getitem__, root_of)
            except CycleError as error:
                (cycle,) = error.args
                circular.append(min(cycle))
                parent_of[min(cycle)] = None
                add_root(id_, parent_of.__getitem__, root_of)
        uuid_of = {row[0]: row[1] for row in providers} if orphans or circular else {}
        _log_once(
            "these providers have a parent that does not exist; they are treated as roots",
            [uuid_of[id_] for id_ in orphans],
        )
        _log_once(
            "these providers are their own ancestors; they are treated as roots", [uuid_of[id_] for id_ in circular]
        )
    _check_rows(providers, root_of)
    return parent_of, root_of


def _check_rows(providers: ProviderRows, root_of: Mapping[int, int]) -> None:
    # In old databases, roots have no root id.
    wrong = [row[1] for row in providers if row[5] != root_of[row[0]] and not (row[5] is None and row[4] is None)]
    _log_once("the root of these providers differs from the root of their parents, which is used", wrong)
    _log_once("these providers have no generation; 0 is used", [row[1] for row in providers if row[3] is None])


def with_names(pairs: Iterable[tuple[Any, Any]], name_of: Mapping[int, str | None], kind: str) -> list[tuple[int, str]]:
    """Return the pairs with names instead of second ids; pairs whose id has no name are left out and logged."""
    pairs = list(pairs)
    named = [(provider_id, name) for provider_id, id_ in pairs if (name := name_of.get(id_)) is not None]
    if len(named) != len(pairs):
        nameless = [f"{kind} {id_} of provider {owner}" for owner, id_ in pairs if name_of.get(id_) is None]
        _log_once(f"these {kind}s do not exist or have no name; they are ignored", nameless)
    return named
