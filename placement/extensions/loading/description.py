"""Entries of a file: one per provider, with expanded names, parents before their children."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from placement import errors
from placement.extensions.loading import schema
from placement.extensions.loading.yaml_source import FileFinding, InvalidFile, Path, YamlSource
from placement.objects.inventory import Inventory

#: Maximum number of providers in a file.
MAX_PROVIDERS = 100_000
#: Maximum length of a name, in characters.
_MAX_NAME = 200
#: Numbers in a name, such as [1-3] or [01-20,30]; longer numbers would exceed ``_MAX_NAME``.
_NUMBERS = re.compile(r"\[([0-9]{1,200}(?:-[0-9]{1,200})?(?:,[0-9]{1,200}(?:-[0-9]{1,200})?)*)\]")
_PARENT = "{parent}"


@dataclass(frozen=True, slots=True)
class ProviderEntry:
    """The entry of a file for one provider; a property that the file omits is None, and stays unchanged."""

    line: int
    name: str
    uuid: str | None
    #: Whether the file states the parent.
    states_parent: bool
    #: The name of a parent in the file, or the name or uuid of a parent in the database; None for a root.
    parent: str | None
    inventories: Mapping[str, Inventory] | None
    traits: frozenset[str] | None
    #: Uuids of the aggregates.
    aggregates: frozenset[str] | None


def read_entries(source: YamlSource) -> tuple[ProviderEntry, ...]:
    """Return the entries of the file, parents before their children.

    Raises:
        InvalidFile: The file does not conform to the schema, or contradicts itself.
    """
    schema.check(source)
    reader = _Reader(source)
    entries = reader.entries()
    if reader.findings:
        raise InvalidFile(reader.findings)
    return tuple(_in_order(entries))


class _Reader:
    """A reader of the entries in a source that conforms to the schema."""

    def __init__(self, source: YamlSource) -> None:
        self.findings: list[FileFinding] = []
        self._source = source
        self._document: Mapping[str, Any] = source.value
        self._aggregates: Mapping[str, str] = self._document.get("aggregates", {})
        self._by_name: dict[str, ProviderEntry] = {}
        self._by_uuid: dict[str, ProviderEntry] = {}

    def entries(self) -> dict[str, ProviderEntry]:
        """Return the entries by name; parents in the file are referred to by name even if the file uses their uuid."""
        self._read(self._document["providers"], ("providers",), None)
        return {name: replace(entry, parent=self._parent_name(entry.parent)) for name, entry in self._by_name.items()}

    def _parent_name(self, parent: str | None) -> str | None:
        """Return the name of a parent in the file; a parent outside of the file is returned unchanged."""
        if parent is None or parent in self._by_name or parent not in self._by_uuid:
            return parent
        return self._by_uuid[parent].name

    def _read(self, providers: list[Any], path: Path, parent: str | None) -> None:
        for number, document in enumerate(providers):
            item = (*path, number)
            for name in self._names(document["name"], (*item, "name"), parent):
                if len(self._by_name) >= MAX_PROVIDERS:
                    raise InvalidFile(
                        [self._finding(item, f"A file can describe at most {MAX_PROVIDERS:,} providers.")]
                    )
                self._add(self._entry(document, item, name, parent))
                self._read(document.get("children", []), (*item, "children"), name)

    def _names(self, pattern: str, path: Path, parent: str | None) -> Iterator[str]:
        """Yield the names that a pattern expands to."""
        if parent is None and _PARENT in pattern:
            self._report(path, f"{_PARENT} can only be used in the names of children.")
        literal, *parts = _NUMBERS.split(pattern)
        numbers = [_expand(ranges) for ranges in parts[::2]]
        if any(part is None for part in numbers):
            self._report(path, f"The numbers in {pattern!r} must ascend.")
            return
        for combination in itertools.product(*(part for part in numbers if part is not None)):
            name = literal + "".join(itertools.chain(*zip(combination, parts[1::2], strict=True)))
            name = name.replace(_PARENT, parent or "")
            if len(name) > _MAX_NAME:
                self._report(path, f"The name {name!r} has more than {_MAX_NAME} characters.")
                return
            yield name

    def _entry(self, document: Mapping[str, Any], path: Path, name: str, parent: str | None) -> ProviderEntry:
        if parent is not None and "parent" in document:
            self._report((*path, "parent"), f"{name} is a child of {parent} and must not state another parent.")
        return ProviderEntry(
            line=self._source.line((*path, "name")),
            name=name,
            uuid=document.get("uuid"),
            states_parent=parent is not None or "parent" in document,
            parent=parent if parent is not None else document.get("parent"),
            inventories=self._inventories(document, path, name),
            traits=frozenset(document["traits"]) if "traits" in document else None,
            aggregates=self._members(document, path),
        )

    def _add(self, entry: ProviderEntry) -> None:
        for value, entries, field in ((entry.name, self._by_name, "name"), (entry.uuid, self._by_uuid, "uuid")):
            if value is None:
                continue
            if value in entries:
                line = entries[value].line
                self.findings.append(
                    FileFinding(entry.line, f"Line {line} already describes a provider with the {field} {value}.")
                )
            entries[value] = entry

    def _inventories(self, document: Mapping[str, Any], path: Path, name: str) -> dict[str, Inventory] | None:
        if "inventories" not in document:
            return None
        inventories = {}
        for resource_class, value in document["inventories"].items():
            amounts = value if isinstance(value, dict) else {"total": value}
            amounts = {
                key: float(amount) if key == "allocation_ratio" else int(amount) for key, amount in amounts.items()
            }
            inventories[resource_class] = Inventory.of_body(resource_class, amounts)
            try:
                Inventory.check_capacity(name, [inventories[resource_class]], may_be_full=True)
            except errors.Failure as failure:
                self._report((*path, "inventories", resource_class), str(failure))
        return inventories

    def _members(self, document: Mapping[str, Any], path: Path) -> frozenset[str] | None:
        if "aggregates" not in document:
            return None
        uuids = set()
        for number, aggregate in enumerate(document["aggregates"]):
            uuid = self._aggregates.get(aggregate, aggregate)
            uuids.add(uuid)
            if not schema.is_uuid(uuid):
                self._report(
                    (*path, "aggregates", number),
                    f"{aggregate!r} is neither a uuid nor a name in aggregates at the top of the file.",
                )
        return frozenset(uuids)

    def _finding(self, path: Path, text: str) -> FileFinding:
        return FileFinding(self._source.line(path), text)

    def _report(self, path: Path, text: str) -> None:
        self.findings.append(self._finding(path, text))


def _expand(ranges: str) -> list[str] | None:
    """Return the numbers of "01-20,30", padded to the width of the first of each range; None if a range descends."""
    numbers: list[str] = []
    for part in ranges.split(","):
        first, _, last = part.partition("-")
        last = last or first
        if int(last) < int(first):
            return None
        if int(last) - int(first) > MAX_PROVIDERS:  # enough to exceed the limit, without building all names
            last = str(int(first) + MAX_PROVIDERS)
        width = len(first) if first.startswith("0") else 0
        numbers += [str(number).zfill(width) for number in range(int(first), int(last) + 1)]
        if len(numbers) > MAX_PROVIDERS:
            break
    return numbers


def _in_order(entries: Mapping[str, ProviderEntry]) -> Iterator[ProviderEntry]:
    """Yield the entries, parents first; raise InvalidFile for a loop."""
    yielded: set[str] = set()
    for entry in entries.values():
        chain: dict[str, ProviderEntry] = {}
        ancestor: ProviderEntry | None = entry
        while ancestor is not None and ancestor.name not in yielded:
            if ancestor.name in chain:
                names = " < ".join(chain)
                raise InvalidFile([FileFinding(ancestor.line, f"{ancestor.name} is its own ancestor: {names}.")])
            chain[ancestor.name] = ancestor
            ancestor = None if ancestor.parent is None else entries.get(ancestor.parent)
        yielded.update(chain)
        yield from reversed(chain.values())
