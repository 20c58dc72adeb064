"""Rows that the schema allows and that make no sense: the index does without them, and the log says which they are.

Lost commits, other programs and hands leave them behind: a membership of an aggregate that is not there, a provider
without a generation, a provider below itself.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from typing import Any

LOG = logging.getLogger(__name__)

#: How many are named of those that are odd in the same way, and how many are remembered as named.
_NAMED = 5
_REMEMBERED = 1000

_said: dict[str, set[Hashable]] = {}

ProviderRows = Sequence[tuple[int, str, str | None, int | None, int | None, int | None]]


class CircleError(Exception):
    """Some are above themselves; which is the argument."""


def say(oddity: str, found: Collection[Hashable]) -> None:
    """Log what was found in the database to be odd, unless that was done before."""
    said = _said.setdefault(oddity, set())
    fresh = [one for one in found if one not in said] if found and len(said) < _REMEMBERED else []
    if not fresh:
        return
    said.update(fresh[:_REMEMBERED])
    more = f" and {len(fresh) - _NAMED} more" if len(fresh) > _NAMED else ""
    LOG.error("In the database, %s: %s%s.", oddity, ", ".join(map(str, fresh[:_NAMED])), more)


def climb(at: int, parent_of: Callable[[int], int | None], root_of: dict[int, int]) -> None:
    """Note the root of one and of all above it; raises CircleError."""
    line: dict[int, None] = {}
    while at not in root_of:
        if at in line:
            above = list(line)
            raise CircleError(above[above.index(at) :])
        line[at] = None
        parent = parent_of(at)
        if parent is None:
            root_of[at] = at
        else:
            at = parent
    root_of.update(dict.fromkeys(line, root_of[at]))


def families(providers: ProviderRows) -> tuple[Mapping[int, int | None], Mapping[int, int]]:
    """The parent and the root of each provider, by id; the line of parents counts, not the root that a row names."""
    parent_of = {row[0]: row[4] for row in providers}
    root_of = {id_: id_ for id_, parent in parent_of.items() if parent is None}
    if len(root_of) < len(parent_of):
        orphans = [id_ for id_, parent in parent_of.items() if parent is not None and parent not in parent_of]
        parent_of.update(dict.fromkeys(orphans))
        circular = []
        for id_ in parent_of:
            try:
                climb(id_, parent_of.__getitem__, root_of)
            except CircleError as error:
                (circle,) = error.args
                circular.append(min(circle))
                parent_of[min(circle)] = None
                climb(id_, parent_of.__getitem__, root_of)
        uuid_of = {row[0]: row[1] for row in providers} if orphans or circular else {}
        say("the parent of these providers is not there; they are taken for roots", [uuid_of[id_] for id_ in orphans])
        say("these providers are below themselves; they are taken for roots", [uuid_of[id_] for id_ in circular])
    _compare(providers, root_of)
    return parent_of, root_of


def _compare(providers: ProviderRows, root_of: Mapping[int, int]) -> None:
    # Older databases have roots whose root is not written down.
    wrong = [row[1] for row in providers if row[5] != root_of[row[0]] and not (row[5] is None and row[4] is None)]
    say("the root of these providers is not that of their parents, which is taken", wrong)
    say("these providers have no generation; 0 is taken", [row[1] for row in providers if row[3] is None])


def named(pairs: Iterable[tuple[Any, Any]], name_of: Mapping[int, str | None], kind: str) -> list[tuple[int, str]]:
    """Names in place of the ids that are second in the pairs, where there is one."""
    pairs = list(pairs)
    found = [(provider_id, name) for provider_id, id_ in pairs if (name := name_of.get(id_)) is not None]
    if len(found) != len(pairs):
        nameless = [f"{kind} {id_} of provider {owner}" for owner, id_ in pairs if name_of.get(id_) is None]
        say(f"these {kind}s are not there or have no name; they are passed over", nameless)
    return found
