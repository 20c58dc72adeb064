"""Differences between the entries of a file and the database, with texts for operators."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from placement.db.upkeep.standard import CUSTOM_PREFIX
from placement.db.writes.transaction import Reading
from placement.extensions.loading.description import ProviderEntry
from placement.extensions.loading.provider_contents import ProviderContents
from placement.extensions.loading.yaml_source import FileFinding, InvalidFile
from placement.objects.inventory import AMOUNTS, Inventory
from placement.objects.provider import ResourceProvider
from placement.objects.resource_class import ResourceClass
from placement.objects.trait import Trait

#: The pattern of the name of a custom class or trait, whose length its column limits.
_CUSTOM_NAME = re.compile(rf"{CUSTOM_PREFIX}[A-Z0-9_]{{1,{255 - len(CUSTOM_PREFIX)}}}")


@dataclass(frozen=True, slots=True)
class ProviderChange:
    """The change for one entry.

    Attributes:
        record: The provider in the database; None for a new provider.
        contents: The contents of the provider in the database.
        parent_uuid: The uuid of a parent outside of the file; None for a root, or if the parent is in the file.
        differences: A text for each difference; empty if the provider is new or matches the file.
    """

    entry: ProviderEntry
    record: ResourceProvider | None
    contents: ProviderContents
    parent_uuid: str | None
    differences: tuple[str, ...]

    @property
    def is_needed(self) -> bool:
        """Whether the provider is new or differs from its entry."""
        return self.record is None or bool(self.differences)


@dataclass(frozen=True, slots=True)
class LoadPlan:
    """The changes that a load makes."""

    #: One change per entry, parents before their children.
    providers: tuple[ProviderChange, ...]
    #: Names of the custom classes and traits to create.
    resource_classes: tuple[str, ...]
    traits: tuple[str, ...]

    @property
    def changes(self) -> tuple[ProviderChange, ...]:
        """The changes for providers that do not match the file."""
        return tuple(change for change in self.providers if change.is_needed)

    @property
    def is_needed(self) -> bool:
        """Whether the database does not match the file."""
        return bool(self.changes or self.resource_classes or self.traits)

    def lines(self) -> Iterator[str]:
        """Yield a line for each new name, new provider and difference."""
        yield from (f"resource class {name}: new" for name in self.resource_classes)
        yield from (f"trait {name}: new" for name in self.traits)
        for change in self.changes:
            if change.record is None:
                place = "" if change.entry.parent is None else f", below {change.entry.parent}"
                yield f"{change.entry.name}: new{place}"
            yield from (f"{change.entry.name}: {text}" for text in change.differences)


def compare(db: Reading, entries: Sequence[ProviderEntry]) -> LoadPlan:
    """Return the changes that make the database match the entries.

    Raises:
        InvalidFile: Entries refer to parents, classes or traits that do not exist and cannot be created.
    """
    comparison = _Comparison(db, entries)
    providers = tuple(comparison.change(entry) for entry in entries)
    if comparison.findings:
        raise InvalidFile(comparison.findings)
    return LoadPlan(providers, *comparison.new_names)


class _Comparison:
    """The objects in the database that the entries refer to, and the comparison with them."""

    def __init__(self, db: Reading, entries: Sequence[ProviderEntry]) -> None:
        self.findings: list[FileFinding] = []
        self._in_file = {entry.name for entry in entries}
        names = {text for entry in entries for text in (entry.uuid, entry.name, entry.parent) if text is not None}
        records = ResourceProvider.by_uuid_or_name(db, names)
        self._by_uuid = {record.uuid: record for record in records}
        self._by_name = {record.name: record for record in records}
        self._contents = ProviderContents.of_ids(db, (record.id for record in records))
        self._parent_names = _parent_names(db, records)
        classes = {record.name for record in ResourceClass.all(db)}
        traits = {record.name for record in Trait.all(db)}
        self.new_names = (
            self._new_names("resource class", [(entry.line, entry.inventories or {}) for entry in entries], classes),
            self._new_names("trait", [(entry.line, entry.traits or ()) for entry in entries], traits),
        )

    def _new_names(
        self, kind: str, by_line: Iterable[tuple[int, Iterable[str]]], existing: Collection[str]
    ) -> tuple[str, ...]:
        """Return the unknown names that can be created, and report all other names."""
        new_names: set[str] = set()
        for line, names in by_line:
            for name in set(names) - set(existing) - new_names:
                if _CUSTOM_NAME.fullmatch(name):
                    new_names.add(name)
                    continue
                hint = _hint(name, existing) or f"; custom names consist of {CUSTOM_PREFIX} and A-Z, 0-9, _"
                self.findings.append(FileFinding(line, f"There is no {kind} {name}{hint}."))
        return tuple(sorted(new_names))

    def change(self, entry: ProviderEntry) -> ProviderChange:
        """Return the change for an entry."""
        record = self._by_name.get(entry.name) if entry.uuid is None else self._by_uuid.get(entry.uuid)
        namesake = self._by_name.get(entry.name)
        if record is None and namesake is not None:
            self._report(entry, f"The provider {entry.name} already exists with the uuid {namesake.uuid}.")
        parent = self._parent(entry)
        parent_uuid = parent.uuid if parent is not None else None
        if record is None:
            return ProviderChange(entry, None, ProviderContents(), parent_uuid, ())
        differences = tuple(self._differences(entry, record, parent))
        return ProviderChange(entry, record, self._contents[record.id], parent_uuid, differences)

    def _parent(self, entry: ProviderEntry) -> ResourceProvider | None:
        """Return the parent of an entry; None for a root, or if the parent is in the file."""
        if entry.parent is None or entry.parent in self._in_file:
            return None
        parent = self._by_name.get(entry.parent) or self._by_uuid.get(entry.parent)
        if parent is None:
            hint = _hint(entry.parent, self._in_file)
            self._report(entry, f"{entry.name}: the parent {entry.parent} does not exist{hint}.")
        return parent

    def _differences(
        self, entry: ProviderEntry, record: ResourceProvider, parent: ResourceProvider | None
    ) -> Iterator[str]:
        if entry.name != record.name:
            yield f"new name, was {record.name}"
        old_parent = self._parent_names.get(record.parent_id)
        new_parent = entry.parent if parent is None else parent.name
        if entry.states_parent and old_parent != new_parent:
            yield f"{_place(new_parent)}, was {_place(old_parent)}"
        contents = self._contents[record.id]
        if entry.inventories is not None:
            yield from inventory_differences(entry.inventories, contents.inventories)
        if entry.traits is not None:
            yield from member_differences("trait", entry.traits, contents.traits)
        if entry.aggregates is not None:
            yield from member_differences("aggregate", entry.aggregates, contents.aggregates)

    def _report(self, entry: ProviderEntry, text: str) -> None:
        self.findings.append(FileFinding(entry.line, text))


def _parent_names(db: Reading, records: Iterable[ResourceProvider]) -> dict[int | None, str]:
    ids = {record.parent_id for record in records if record.parent_id is not None}
    return {record.id: record.name for record in ResourceProvider.of_ids(db, ids)}


def _place(parent: str | None) -> str:
    return "a root" if parent is None else f"below {parent}"


def _hint(name: str, valid_names: Iterable[str]) -> str:
    matches = difflib.get_close_matches(name, valid_names, 1, 0.8)
    return f" (did you mean {matches[0]}?)" if matches else ""


def inventory_differences(target: Mapping[str, Inventory], present: Mapping[str, Inventory]) -> Iterator[str]:
    """Yield a text for each inventory that differs."""
    for name, inventory in target.items():
        if name not in present:
            yield f"inventory of {name}: new, {_amounts(inventory)}"
        elif inventory.columns != present[name].columns:
            changed = [
                f"{amount} {_text(getattr(inventory, amount))}, was {_text(getattr(present[name], amount))}"
                for amount in AMOUNTS
                if getattr(inventory, amount) != getattr(present[name], amount)
            ]
            yield f"inventory of {name}: {'; '.join(changed)}"
    yield from (f"inventory of {name}: removed" for name in present if name not in target)


def _amounts(inventory: Inventory) -> str:
    defaults = Inventory(inventory.resource_class, 0)
    names = (name for name in AMOUNTS if getattr(inventory, name) != getattr(defaults, name))
    return ", ".join(f"{name} {_text(getattr(inventory, name))}" for name in names)


def _text(amount: float) -> str:
    return f"{amount:g}" if isinstance(amount, float) else str(amount)


def member_differences(kind: str, target: Collection[str], present: Collection[str]) -> Iterator[str]:
    """Yield a text for each trait or aggregate (``kind``) that is added or removed."""
    yield from (f"{kind} {name}: added" for name in sorted(set(target) - set(present)))
    yield from (f"{kind} {name}: removed" for name in sorted(set(present) - set(target)))
