"""Checks of provider trees: missing and wrong roots, missing parents, loops.

One statement reads the parents and roots of all providers, so that they belong to one committed state.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

import sqlalchemy as sa

from placement.checks.check import Subject
from placement.checks.finding import Finding, count_phrase, error
from placement.db import batches
from placement.db.schema.tables import resource_providers
from placement.extensions.doctor.examination import FIX
from placement.extensions.doctor.lineage import Lineage

_MOVE = (
    'PUT /resource_providers/<provider> {"name": "<its name>", "parent_provider_uuid": null} at version 1.37, or with '
    "the uuid of its real parent instead of null."
)


def roots(subject: Subject) -> Iterator[Finding]:
    """Find providers without a root, and providers whose root differs from their parent's."""
    lineage = _read_lineage(subject)
    if lineage.rootless:
        sentence = (
            count_phrase(len(lineage.rootless), "provider has", "providers have")
            + " no root: queries about trees leave such providers out."
        )
        yield error(sentence, _providers_by_id(subject, lineage.rootless), FIX, fixable=True)
    if lineage.misrooted:
        sentence = (
            count_phrase(len(lineage.misrooted), "provider has", "providers have")
            + " a root other than the parent's: moves lock the wrong tree."
        )
        yield error(sentence, _providers_by_id(subject, lineage.misrooted), FIX, fixable=True)


def parents(subject: Subject) -> Iterator[Finding]:
    """Find providers whose parent does not exist, and providers that are their own ancestors."""
    lineage = _read_lineage(subject)
    if lineage.orphans:
        sentence = (
            count_phrase(len(lineage.orphans), "provider has", "providers have")
            + " a parent that does not exist: no request can change that; searches treat such a provider as a root."
        )
        yield error(sentence, _providers_by_id(subject, lineage.orphans), FIX, fixable=True)
    if lineage.loops:
        names = tuple(" below ".join(_providers_by_id(subject, [*loop, loop[0]])) for loop in lineage.loops)
        sentence = (
            count_phrase(len(names), "loop", "loops")
            + " of providers that are their own ancestors; searches treat one provider of each loop as a root."
        )
        yield error(sentence, names, _MOVE)


def _read_lineage(subject: Subject) -> Lineage:
    lineage = subject.database.read(Lineage.read)
    subject.on_rows(len(lineage.parents))
    return lineage


def _providers_by_id(subject: Subject, ids: Collection[int]) -> tuple[str, ...]:
    """Return the uuids and names of providers, in the order of the ids."""
    rows = subject.database.read(lambda db: [*batches.rows(db, _NAMES, "ids", dict.fromkeys(ids))])
    names = {row.id: row.uuid if row.name is None else f"{row.uuid} ({row.name})" for row in rows}
    return tuple(names.get(provider_id, f"id {provider_id}") for provider_id in ids)


_P = resource_providers.c
_NAMES = sa.select(_P.id, _P.uuid, _P.name).where(_P.id.in_(sa.bindparam("ids", expanding=True)))
