"""Rows that the schema allows and that make no sense; the index leaves them out, and the log names them.

Lost commits, other programs and manual changes leave them behind: a membership in an aggregate that does not exist, a
provider without a generation, a provider that is its own ancestor.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from typing import Any

from placement.objects.ancestry import CycleError, find_root

LOG = logging.getLogger(__name__)

#: For each kind of inconsistency: how many rows a message names, and how many are remembered as logged.
_NAMED = 5
_REMEMBERED = 1000

_logged: dict[str, set[Hashable]] = {}

ProviderRows = Sequence[tuple[int, str, str | None, int | None, int | None, int | None]]


def _log_once(finding: str, rows: Collection[Hashable]) -> None:
    """Log the rows that have not been logged for this finding yet."""
    logged = _logged.setdefault(finding, set())
    fresh = [row for row in rows if row not in logged] if rows and len(logged) < _REMEMBERED else []
    if not fresh:
        return
    logged.update(fresh[:_REMEMBERED])
    more = f" and {len(fresh) - _NAMED} more" if len(fresh) > _NAMED else ""
    LOG.error("In the database, %s: %s%s.", finding, ", ".join(map(str, fresh[:_NAMED])), more)


def parents_and_roots(providers: ProviderRows) -> tuple[Mapping[int, int | None], Mapping[int, int]]:
    """Return the parent and the root of each provider, by id.

    The root follows from the parents; a different root in a row is ignored and logged, and so are missing parents and
    cycles, where a provider is taken for a root.
    """
    parent_of = {row[0]: row[4] for row in providers}
    root_of = {id_: id_ for id_, parent in parent_of.items() if parent is None}
    if len(root_of) < len(parent_of):
        orphans = [id_ for id_, parent in parent_of.items() if parent is not None and parent not in parent_of]
        parent_of.update(dict.fromkeys(orphans))
        circular = []
        for id_ in parent_of:
            try:
                find_root(id_, parent_of.__getitem__, root_of)
            except CycleError as error:
                (cycle,) = error.args
                circular.append(min(cycle))
                parent_of[min(cycle)] = None
                find_root(id_, parent_of.__getitem__, root_of)
        uuid_of = {row[0]: row[1] for row in providers} if orphans or circular else {}
        _log_once(
            "the parent of these providers is not there; they are taken for roots", [uuid_of[id_] for id_ in orphans]
        )
        _log_once("these providers are below themselves; they are taken for roots", [uuid_of[id_] for id_ in circular])
    _check_rows(providers, root_of)
    return parent_of, root_of


def _check_rows(providers: ProviderRows, root_of: Mapping[int, int]) -> None:
    # Roots of old databases have no root id.
    wrong = [row[1] for row in providers if row[5] != root_of[row[0]] and not (row[5] is None and row[4] is None)]
    _log_once("the root of these providers is not that of their parents, which is taken", wrong)
    _log_once("these providers have no generation; 0 is taken", [row[1] for row in providers if row[3] is None])


def with_names(pairs: Iterable[tuple[Any, Any]], name_of: Mapping[int, str | None], kind: str) -> list[tuple[int, str]]:
    """Replace the ids that are second in the pairs by names; pairs whose id has no name are left out and logged."""
    pairs = list(pairs)
    found = [(provider_id, name) for provider_id, id_ in pairs if (name := name_of.get(id_)) is not None]
    if len(found) != len(pairs):
        nameless = [f"{kind} {id_} of provider {owner}" for owner, id_ in pairs if name_of.get(id_) is None]
        _log_once(f"these {kind}s are not there or have no name; they are passed over", nameless)
    return found
