"""The providers that a file describes: one entry each, with names written out and parents before their children."""

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

#: Providers in one file.
MOST = 100_000
_MAX_NAME = 200
#: Numbers in a name: [1-3], [01-20,30].  Of those with more digits no name is short enough.
_NUMBERS = re.compile(r"\[([0-9]{1,200}(?:-[0-9]{1,200})?(?:,[0-9]{1,200}(?:-[0-9]{1,200})?)*)\]")
_PARENT = "{parent}"


@dataclass(frozen=True, slots=True)
class ProviderEntry:
    """What the file says about one provider.  None: the file does not say it, and it stays as it is."""

    line: int
    name: str
    uuid: str | None
    #: Whether the file says which parent the provider has.
    places: bool
    #: The name of the parent in the file, or the name or uuid of one in the database; None for a root.
    parent: str | None
    inventories: Mapping[str, Inventory] | None
    traits: frozenset[str] | None
    #: Uuids.
    aggregates: frozenset[str] | None


def described(source: YamlSource) -> tuple[ProviderEntry, ...]:
    """Return the providers that the file describes, parents before their children.

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
    """Makes entries of a source that conforms to the schema."""

    def __init__(self, source: YamlSource) -> None:
        self.findings: list[FileFinding] = []
        self._source = source
        self._document: Mapping[str, Any] = source.value
        self._aggregates: Mapping[str, str] = self._document.get("aggregates", {})
        self._by_name: dict[str, ProviderEntry] = {}
        self._by_uuid: dict[str, ProviderEntry] = {}

    def entries(self) -> dict[str, ProviderEntry]:
        """Return the entries by name; a parent that the file describes is named, not given by its uuid."""
        self._read(self._document["providers"], ("providers",), None)
        return {name: replace(entry, parent=self._named(entry.parent)) for name, entry in self._by_name.items()}

    def _named(self, parent: str | None) -> str | None:
        """Return the name of a parent in the file; one outside of it is returned as it is stated."""
        if parent is None or parent in self._by_name or parent not in self._by_uuid:
            return parent
        return self._by_uuid[parent].name

    def _read(self, providers: list[Any], path: Path, parent: str | None) -> None:
        for number, document in enumerate(providers):
            here = (*path, number)
            for name in self._names(document["name"], (*here, "name"), parent):
                if len(self._by_name) >= MOST:
                    raise InvalidFile([self._finding(here, f"A file can describe {MOST:,} providers at most.")])
                self._add(self._entry(document, here, name, parent))
                self._read(document.get("children", []), (*here, "children"), name)

    def _names(self, pattern: str, path: Path, parent: str | None) -> Iterator[str]:
        """Yield the names that a pattern stands for."""
        if parent is None and _PARENT in pattern:
            self._report(path, f"{_PARENT} is for the names of children.")
        literal, *rest = _NUMBERS.split(pattern)
        numbers = [_written_out(listed) for listed in rest[::2]]
        if any(part is None for part in numbers):
            self._report(path, f"The numbers of {pattern!r} have to rise.")
            return
        for chosen in itertools.product(*(part for part in numbers if part is not None)):
            name = literal + "".join(itertools.chain(*zip(chosen, rest[1::2], strict=True)))
            name = name.replace(_PARENT, parent or "")
            if len(name) > _MAX_NAME:
                self._report(path, f"The name {name!r} has more than {_MAX_NAME} characters.")
                return
            yield name

    def _entry(self, document: Mapping[str, Any], path: Path, name: str, parent: str | None) -> ProviderEntry:
        if parent is not None and "parent" in document:
            self._report((*path, "parent"), f"{name} is among the children of {parent}, and states a parent, too.")
        return ProviderEntry(
            line=self._source.line((*path, "name")),
            name=name,
            uuid=document.get("uuid"),
            places=parent is not None or "parent" in document,
            parent=parent if parent is not None else document.get("parent"),
            inventories=self._inventories(document, path, name),
            traits=frozenset(document["traits"]) if "traits" in document else None,
            aggregates=self._members(document, path),
        )

    def _add(self, entry: ProviderEntry) -> None:
        for named, known, what in ((entry.name, self._by_name, "name"), (entry.uuid, self._by_uuid, "uuid")):
            if named is None:
                continue
            if named in known:
                line = known[named].line
                self.findings.append(
                    FileFinding(entry.line, f"Another provider of the file has the {what} {named}, on line {line}.")
                )
            known[named] = entry

    def _inventories(self, document: Mapping[str, Any], path: Path, name: str) -> dict[str, Inventory] | None:
        if "inventories" not in document:
            return None
        found = {}
        for resource_class, stated in document["inventories"].items():
            amounts = stated if isinstance(stated, dict) else {"total": stated}
            amounts = {key: float(value) if key == "allocation_ratio" else int(value) for key, value in amounts.items()}
            found[resource_class] = Inventory.of_body(resource_class, amounts)
            try:
                Inventory.check_capacity(name, [found[resource_class]], may_be_full=True)
            except errors.Failure as failure:
                self._report((*path, "inventories", resource_class), str(failure))
        return found

    def _members(self, document: Mapping[str, Any], path: Path) -> frozenset[str] | None:
        if "aggregates" not in document:
            return None
        found = set()
        for number, stated in enumerate(document["aggregates"]):
            uuid = self._aggregates.get(stated, stated)
            found.add(uuid)
            if not schema.is_uuid(uuid):
                self._report(
                    (*path, "aggregates", number),
                    f"{stated!r} is no uuid, and no name in aggregates at the top of the file.",
                )
        return frozenset(found)

    def _finding(self, path: Path, text: str) -> FileFinding:
        return FileFinding(self._source.line(path), text)

    def _report(self, path: Path, text: str) -> None:
        self.findings.append(self._finding(path, text))


def _written_out(listed: str) -> list[str] | None:
    """Return the numbers of "01-20,30", each as wide as the first of its range; None if a range falls."""
    found: list[str] = []
    for part in listed.split(","):
        first, _, last = part.partition("-")
        last = last or first
        if int(last) < int(first):
            return None
        if int(last) - int(first) > MOST:  # refused by the number of providers, without building the names
            last = str(int(first) + MOST)
        width = len(first) if first.startswith("0") else 0
        found += [str(number).zfill(width) for number in range(int(first), int(last) + 1)]
        if len(found) > MOST:
            break
    return found


def _in_order(entries: Mapping[str, ProviderEntry]) -> Iterator[ProviderEntry]:
    """Yield the entries, parents first; raises InvalidFile if some are above themselves."""
    done: set[str] = set()
    for entry in entries.values():
        chain: dict[str, ProviderEntry] = {}
        above: ProviderEntry | None = entry
        while above is not None and above.name not in done:
            if above.name in chain:
                names = " < ".join(chain)
                raise InvalidFile([FileFinding(above.line, f"{above.name} would be above itself: {names}.")])
            chain[above.name] = above
            above = None if above.parent is None else entries.get(above.parent)
        done.update(chain)
        yield from reversed(chain.values())
