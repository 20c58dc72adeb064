"""The transaction that makes the database match a file."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable, Sequence

from placement import errors
from placement.db.database import Database
from placement.db.writes import names
from placement.db.writes.transaction import Transaction
from placement.extensions.loading.description import ProviderEntry
from placement.extensions.loading.plan import LoadPlan, ProviderChange, compare, inventory_differences
from placement.extensions.loading.yaml_source import FileFinding, InvalidFile
from placement.objects.locked_provider import LockedProvider
from placement.objects.resource_class import ResourceClass
from placement.objects.trait import Trait

#: Attempts of the transaction: it locks many providers, so it collides more often than a request.
_ATTEMPTS = 50


class _RolledBack(Exception):
    """The end of a dry run, which rolls its transaction back."""


def load(
    database: Database,
    entries: Sequence[ProviderEntry],
    *,
    dry_run: bool = False,
    advance: Callable[[int], object] = lambda _: None,
) -> LoadPlan:
    """Make the database match the entries in one transaction, and return the changes.

    Args:
        dry_run: Whether to check everything and then roll back.
        advance: A callback with the number of providers written since the previous call; negative after a rollback.

    Raises:
        InvalidFile: The changes cannot be made; nothing is changed.
    """
    plan = database.read(lambda db: compare(db, entries))
    if not plan.is_needed:
        return plan

    number_written = 0

    def count(number: int) -> None:
        nonlocal number_written
        number_written += number
        advance(number)

    def work(db: Transaction) -> None:
        nonlocal plan
        count(-number_written)  # an earlier attempt was rolled back
        plan = _Load(db, entries, plan, count).apply()
        if dry_run:
            raise _RolledBack

    with contextlib.suppress(_RolledBack):
        database.write(work, attempts=_ATTEMPTS)
    return plan


class _Load:
    """One attempt to apply a plan."""

    def __init__(
        self, db: Transaction, entries: Sequence[ProviderEntry], plan: LoadPlan, advance: Callable[[int], object]
    ) -> None:
        self._db = db
        self._entries = entries
        self._plan = plan
        self._advance = advance
        #: Uuids of the existing providers of the file, by name.
        self._uuids: dict[str, str] = {}
        self._findings: list[FileFinding] = []

    def apply(self) -> LoadPlan:
        """Lock the providers, compare again, and write the differences; raise InvalidFile with all failures."""
        # Locked in the order of ids, as in all transactions.  The rows may have changed since the first comparison.
        LockedProvider.lock_all(self._db, {change.record.id for change in self._plan.changes if change.record})
        plan = compare(self._db, self._entries)
        for name in plan.resource_classes:
            ResourceClass.create(self._db, name)
        for name in plan.traits:
            Trait.create(self._db, name)
        for change in plan.providers:
            self._apply(change)
        if self._findings:
            raise InvalidFile(self._findings)
        self._create_aggregates()
        return plan

    def _apply(self, change: ProviderChange) -> None:
        entry = change.entry
        if change.record is not None and not change.is_needed:
            self._uuids[entry.name] = change.record.uuid
            return
        if entry.parent is not None and change.parent_uuid is None and entry.parent not in self._uuids:
            return  # the failure of the parent has been reported
        try:
            provider = self._place(change)
            self._uuids[entry.name] = provider.record.uuid
            self._fill(provider, change)
        except errors.Failure as failure:
            self._findings.append(FileFinding(entry.line, f"{entry.name}: {failure}"))
        self._advance(1)

    def _place(self, change: ProviderChange) -> LockedProvider:
        """Return the locked provider: created, or moved and renamed, as described in the file."""
        entry = change.entry
        parent_uuid = change.parent_uuid
        if entry.parent is not None and parent_uuid is None:
            parent_uuid = self._uuids[entry.parent]
        if change.record is None:
            return LockedProvider.create(
                self._db, uuid=entry.uuid or str(uuid.uuid4()), name=entry.name, parent_uuid=parent_uuid
            )
        if entry.states_parent and parent_uuid != change.record.parent_uuid:
            provider = LockedProvider.lock_and_move(self._db, change.record.uuid, parent_uuid, may_reparent=True)
        else:
            provider = LockedProvider.lock(self._db, change.record.uuid)
        provider.rename(entry.name)
        return provider

    def _fill(self, provider: LockedProvider, change: ProviderChange) -> None:
        """Write the contents that differ; without differences, the generation does not change."""
        entry, contents = change.entry, change.contents
        if entry.inventories is not None and any(inventory_differences(entry.inventories, contents.inventories)):
            provider.replace_inventories(entry.inventories.values())
        if entry.traits is not None and entry.traits != contents.traits:
            provider.replace_traits(entry.traits)
        if entry.aggregates is not None and entry.aggregates != contents.aggregates:
            provider.replace_aggregates(entry.aggregates)

    def _create_aggregates(self) -> None:
        """Create all missing aggregates at once: this ends the attempt, and the transaction is retried."""
        uuids = {uuid for entry in self._entries for uuid in entry.aggregates or ()}
        aggregates = [names.Name(names.AGGREGATE, uuid) for uuid in sorted(uuids)]
        names.ensure(self._db, aggregates, names.find(self._db, aggregates))
