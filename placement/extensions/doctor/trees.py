"""Checks of the trees: missing and wrong roots, missing parents, loops.

Parents and roots of all providers are read by one statement, so they are of one state; three numbers for each.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

import sqlalchemy as sa

from placement.checks.check import Subject
from placement.checks.finding import Finding, counted, error
from placement.db import batches
from placement.db.schema.tables import resource_providers
from placement.extensions.doctor.examination import FIX
from placement.extensions.doctor.lineage import Lineage

_MOVE = (
    'PUT /resource_providers/<provider> {"name": "<its name>", "parent_provider_uuid": null} at version 1.37, or with '
    "the uuid of its real parent in the place of null."
)


def roots(subject: Subject) -> Iterator[Finding]:
    """Find providers that have no root, and providers whose root is not that of their parents."""
    found = _read(subject)
    if found.rootless:
        sentence = (
            counted(len(found.rootless), "provider has", "providers have")
            + " no root: queries about trees do not look there."
        )
        yield error(sentence, _named(subject, found.rootless), FIX, fixable=True)
    if found.wrong:
        sentence = (
            counted(len(found.wrong), "provider has", "providers have")
            + " a root other than that of the parent: moves lock the wrong tree."
        )
        yield error(sentence, _named(subject, found.wrong), FIX, fixable=True)


def parents(subject: Subject) -> Iterator[Finding]:
    """Find providers whose parent does not exist, and providers that are below themselves."""
    found = _read(subject)
    if found.orphans:
        sentence = (
            counted(len(found.orphans), "provider has", "providers have")
            + " a parent that does not exist: no request can change that; searches take such a provider for a root."
        )
        yield error(sentence, _named(subject, found.orphans), FIX, fixable=True)
    if found.loops:
        names = tuple(" below ".join(_named(subject, [*loop, loop[0]])) for loop in found.loops)
        sentence = (
            counted(len(names), "loop", "loops")
            + " of providers that are below themselves; searches take one of each for a root."
        )
        yield error(sentence, names, _MOVE)


def _read(subject: Subject) -> Lineage:
    found = subject.database.read(Lineage.read)
    subject.on_rows(len(found.parents))
    return found


def _named(subject: Subject, ids: Collection[int]) -> tuple[str, ...]:
    """Return the uuids and names of providers, in the order of the ids that are given."""
    rows = subject.database.read(lambda db: [*batches.rows(db, _NAMES, "ids", dict.fromkeys(ids))])
    names = {row.id: row.uuid if row.name is None else f"{row.uuid} ({row.name})" for row in rows}
    return tuple(names.get(id_, f"id {id_}") for id_ in ids)


_P = resource_providers.c
_NAMES = sa.select(_P.id, _P.uuid, _P.name).where(_P.id.in_(sa.bindparam("ids", expanding=True)))
