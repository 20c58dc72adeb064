"""The providers of a snapshot: arrays that snapshots share, and the providers that have changed since."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from placement.index import packed_uuids
from placement.index.arrays import Arrays, part
from placement.index.key_index import KeyIndex
from placement.index.member_sets import MemberSets
from placement.index.slots import Slots, positions_in
from placement.index.texts import Texts, hash_one

Key = TypeVar("Key", int, str)

_FACTOR = 0xBF58476D1CE4E5B9


class Provider(Protocol):
    """A provider without its generation and amounts, which the snapshot holds in arrays."""

    @property
    def id(self) -> int: ...
    @property
    def uuid(self) -> str: ...
    @property
    def name(self) -> str | None: ...
    @property
    def parent(self) -> int:
        """The slot of the parent; -1 for a root."""

    @property
    def root(self) -> int:
        """The slot of the root."""

    @property
    def classes(self) -> tuple[int, ...]:
        """The ids of the resource classes of its inventories, ascending."""

    @property
    def traits(self) -> frozenset[str]: ...
    @property
    def aggregates(self) -> frozenset[str]: ...


class ChangedProvider(NamedTuple):
    """A provider that has changed since the arrays were built, with its own values."""

    id: int
    uuid: str
    name: str | None
    parent: int
    root: int
    classes: tuple[int, ...]
    traits: frozenset[str]
    aggregates: frozenset[str]

    @property
    def identity(self) -> int:
        """The hash of the id and the uuid, as in ``ProviderArrays.identities``."""
        halves = packed_uuids.pack_one(self.uuid)
        uuid_hash = hash_one(self.uuid) if halves is None else packed_uuids.hash_one(*halves)
        return (uuid_hash * _FACTOR + self.id) % 2**64

    @classmethod
    def copy(cls, provider: Provider) -> ChangedProvider:
        """Return a provider with the values of another one."""
        return cls(*(getattr(provider, field) for field in cls._fields))


class ProviderArrays:
    """Providers in ascending order of their ids: the n-th one is in slot n."""

    __slots__ = (
        "_by_name",
        "_by_uuid",
        "_id",
        "_names",
        "_other_uuids",
        "_other_uuids_by_slot",
        "_parent",
        "_root",
        "_uuids",
        "aggregates",
        "classes",
        "ids",
        "nameless",
        "parents",
        "traits",
    )

    def __init__(
        self, arrays: Arrays, roots: Slots, trait_names: Sequence[str], aggregate_names: Sequence[str]
    ) -> None:
        """Store the part ``providers`` of the arrays that ``build_arrays`` returns.

        Args:
            arrays: The arrays.
            roots: The root of each slot.
            trait_names: Trait names; the sets of traits contain indexes into this list.
            aggregate_names: The same for aggregates.
        """
        self.ids: npt.NDArray[np.int64] = arrays["ids"]
        #: The slot of the parent of each provider; -1 for a root.
        self.parents: Slots = arrays["parents"]
        self.nameless: npt.NDArray[np.bool_] = arrays["nameless"]
        # Elements of a memoryview are Python numbers, and take a third of the time of elements of an array.
        self._id, self._parent, self._root = self.ids.data, self.parents.data, roots.data
        self._uuids: packed_uuids.PackedUuids = arrays["uuids"]
        self._by_uuid = KeyIndex(**part(arrays, "by_uuid"))
        self._names = Texts(**part(arrays, "names"))
        self._by_name = KeyIndex(**part(arrays, "by_name"))
        #: Uuids that cannot be packed, which another implementation has stored.
        texts = Texts(**part(arrays, "other_uuids"))
        self._other_uuids = {texts[number]: slot for number, slot in enumerate(arrays["other_slots"].tolist())}
        self._other_uuids_by_slot = {slot: uuid for uuid, slot in self._other_uuids.items()}
        self.classes = MemberSets(part(arrays, "classes"), tuple)
        self.traits = MemberSets(part(arrays, "traits"), functools.partial(_names, trait_names))
        self.aggregates = MemberSets(part(arrays, "aggregates"), functools.partial(_names, aggregate_names))

    def __len__(self) -> int:
        return len(self.ids)

    def id(self, slot: int) -> int:
        """Return the id of a provider."""
        return self._id[slot]

    def uuid(self, slot: int) -> str:
        """Return the uuid of a provider."""
        other = self._other_uuids_by_slot.get(slot)
        return packed_uuids.unpack_one(*self._uuids[slot].tolist()) if other is None else other

    def name(self, slot: int) -> str | None:
        """Return the name of a provider."""
        return None if self.nameless[slot] else self._names[slot]

    def parent(self, slot: int) -> int:
        """Return the slot of the parent; -1 for a root."""
        return self._parent[slot]

    def root(self, slot: int) -> int:
        """Return the slot of the root."""
        return self._root[slot]

    def uuids(self, slots: Slots) -> list[str]:
        """Return the uuids of several providers."""
        uuids = packed_uuids.unpack(self._uuids[slots])
        if self._other_uuids:
            unpacked = self._other_uuids_by_slot
            uuids = [unpacked.get(slot, uuid) for slot, uuid in zip(slots.tolist(), uuids, strict=True)]
        return uuids

    def names(self, slots: Slots) -> list[str | None]:
        """Return the names of several providers."""
        nameless = self.nameless[slots].tolist()
        return [None if none else name for none, name in zip(nameless, self._names.select(slots), strict=True)]

    def uuid_array(self) -> Texts:
        """Return the uuids of all providers."""
        uuids = packed_uuids.unpack_array(self._uuids)
        return _replace(uuids, self._other_uuids_by_slot)

    def name_array(self) -> Texts:
        """Return the names of all providers."""
        return self._names

    def identities(self) -> npt.NDArray[np.uint64]:
        """Return a hash of the id and the uuid of each provider."""
        hashes = packed_uuids.hashes(self._uuids)
        for slot, uuid in self._other_uuids_by_slot.items():
            hashes[slot] = hash_one(uuid)
        return hashes * np.uint64(_FACTOR) + self.ids.astype(np.uint64)

    def slot_of_id(self, provider_id: int) -> int | None:
        """Return the slot of the provider with this id."""
        slot = int(np.searchsorted(self.ids, provider_id))
        return slot if slot < len(self.ids) and self._id[slot] == provider_id else None

    def slot_of_uuid(self, uuid: str) -> int | None:
        """Return the slot of the provider with this uuid."""
        halves = packed_uuids.pack_one(uuid)
        if halves is None:
            return self._other_uuids.get(uuid)
        slots = self._by_uuid.slots_of(packed_uuids.hash_one(*halves))
        return next((slot for slot in slots if tuple(self._uuids[slot].tolist()) == halves), None)

    def slot_of_name(self, name: str) -> int | None:
        """Return the slot of the provider with this name."""
        slots = self._by_name.slots_of(hash_one(name))
        return next((slot for slot in slots if self.name(slot) == name), None)


def _replace(texts: Texts, changes: Mapping[int, str]) -> Texts:
    """Return the texts with some replaced, and others appended; a number that is skipped gets an empty text."""
    if not changes:
        return texts
    numbers = np.arange(max(len(texts), 1 + max(changes)))
    numbers[len(texts) :] = len(texts)
    numbers[[*changes]] = len(texts) + 1 + np.arange(len(changes))
    return Texts.concatenate([texts, Texts.of(["", *changes.values()])]).take(numbers)


def _names(names: Sequence[str], numbers: list[int]) -> frozenset[str]:
    return frozenset([names[number] for number in numbers])


class ArrayProvider:
    """A provider whose values are read from the arrays."""

    __slots__ = ("_arrays", "_slot")

    def __init__(self, arrays: ProviderArrays, slot: int) -> None:
        self._arrays, self._slot = arrays, slot

    @property
    def id(self) -> int:
        return self._arrays.id(self._slot)

    @property
    def uuid(self) -> str:
        return self._arrays.uuid(self._slot)

    @property
    def name(self) -> str | None:
        return self._arrays.name(self._slot)

    @property
    def parent(self) -> int:
        return self._arrays.parent(self._slot)

    @property
    def root(self) -> int:
        return self._arrays.root(self._slot)

    @property
    def classes(self) -> tuple[int, ...]:
        return self._arrays.classes.of_slot(self._slot)

    @property
    def traits(self) -> frozenset[str]:
        return self._arrays.traits.of_slot(self._slot)

    @property
    def aggregates(self) -> frozenset[str]:
        return self._arrays.aggregates.of_slot(self._slot)


class Providers:
    """The providers of a snapshot, by slot; immutable."""

    __slots__ = ("_arrays", "_changed", "_changed_slots", "_slots_by_id", "_slots_by_name", "_slots_by_uuid", "end")

    def __init__(self, arrays: ProviderArrays, changed: Mapping[int, ChangedProvider | None]) -> None:
        """Store the providers of the arrays, and those that have replaced them; None in a slot without a provider."""
        self._arrays = arrays
        self._changed = changed
        self._changed_slots: Slots = np.array(sorted(changed), dtype=np.intp)
        present = [(slot, provider) for slot, provider in changed.items() if provider is not None]
        self._slots_by_id = {provider.id: slot for slot, provider in present}
        self._slots_by_uuid = {provider.uuid: slot for slot, provider in present}
        self._slots_by_name = {provider.name: slot for slot, provider in present if provider.name is not None}
        #: The number of slots up to the last one that has, or had, a provider.
        self.end = max(len(arrays), 1 + max(changed, default=-1))

    @property
    def changes(self) -> int:
        """The number of providers that differ from the arrays."""
        return len(self._changed)

    def get(self, slot: int) -> Provider | None:
        """Return the provider in a slot, or None."""
        if slot in self._changed:
            return self._changed[slot]
        return ArrayProvider(self._arrays, slot) if slot < len(self._arrays) else None

    def with_changes(self, providers: Mapping[int, ChangedProvider | None]) -> Providers:
        """Return the providers with some replaced, created, or deleted (None)."""
        return Providers(self._arrays, {**self._changed, **providers})

    def slots(self) -> Slots:
        """Return the slots with a provider, ascending."""
        has_provider = np.zeros(self.end, dtype=np.bool_)
        has_provider[: len(self._arrays)] = True
        has_provider[self._changed_slots] = [self._changed[slot] is not None for slot in self._changed_slots.tolist()]
        return np.flatnonzero(has_provider)

    def slots_between(self, low: int, high: int) -> Slots:
        """Return the slots of the providers with ``low <= id < high``."""
        start, end = self._arrays.ids.searchsorted([low, high]).tolist()
        slots = np.arange(start, end)
        unchanged = slots[~positions_in(self._changed_slots, slots)[1]]
        changed = [
            slot for slot, provider in self._changed.items() if provider is not None and low <= provider.id < high
        ]
        return np.concatenate((unchanged, np.array(changed, dtype=np.intp)))

    @property
    def highest_id(self) -> int:
        """An id that no provider exceeds."""
        last = self._arrays.ids[-1:].tolist()
        return max((*last, *(provider.id for provider in self._changed.values() if provider is not None)), default=0)

    def free_slots(self) -> list[int]:
        """Return the slots whose provider was deleted."""
        return [slot for slot, provider in self._changed.items() if provider is None]

    def slot_of_id(self, provider_id: int) -> int | None:
        """Return the slot of the provider with this id."""
        return self._lookup(self._slots_by_id, self._arrays.slot_of_id, provider_id)

    def slot_of_uuid(self, uuid: str) -> int | None:
        """Return the slot of the provider with exactly this uuid."""
        return self._lookup(self._slots_by_uuid, self._arrays.slot_of_uuid, uuid)

    def slot_of_name(self, name: str) -> int | None:
        """Return the slot of the provider with exactly this name."""
        return self._lookup(self._slots_by_name, self._arrays.slot_of_name, name)

    def _lookup(self, changed: Mapping[Key, int], find: Callable[[Key], int | None], key: Key) -> int | None:
        slot = changed.get(key)
        if slot is None and (slot := find(key)) in self._changed:
            return None
        return slot

    def identities(self, size: int) -> npt.NDArray[np.uint64]:
        """Return a hash of the id and the uuid of each provider, by slot; 0 for a slot without a provider."""
        identities = np.zeros(max(size, self.end), dtype=np.uint64)
        identities[: len(self._arrays)] = self._arrays.identities()
        changed = [self._changed[slot] for slot in self._changed_slots.tolist()]
        identities[self._changed_slots] = [0 if provider is None else provider.identity for provider in changed]
        return identities[:size]

    # --- values of several providers; every slot must have one ---

    def ids(self, slots: Slots) -> npt.NDArray[np.int64]:
        """Return the id of each provider."""
        return self._numbers(slots, self._arrays.ids, "id")

    def uuids(self, slots: Slots) -> list[str]:
        """Return the uuid of each provider."""
        return self._values(slots, self._arrays.uuids, "uuid")

    def names(self, slots: Slots) -> list[str | None]:
        """Return the name of each provider."""
        return self._values(slots, self._arrays.names, "name")

    def classes(self, slots: Slots) -> list[tuple[int, ...]]:
        """Return the ids of the resource classes of each provider."""
        return self._values(slots, self._arrays.classes.of_slots, "classes")

    def traits(self, slots: Slots) -> list[frozenset[str]]:
        """Return the traits of each provider."""
        return self._values(slots, self._arrays.traits.of_slots, "traits")

    def _values(self, slots: Slots, read: Callable[[Slots], list[Any]], field: str) -> list[Any]:
        """Return values of the arrays, or of changed providers."""
        if not self._changed:
            return read(slots)
        # The values of changed providers are read from the arrays as well, and replaced.
        values = read(np.minimum(slots, len(self._arrays) - 1)) if len(self._arrays) else [None] * len(slots)
        for position, provider in self._changed_at(slots):
            values[position] = getattr(provider, field)
        return values

    def uuid_array(self, slots: Slots) -> Texts:
        """Return the uuid of each provider, as an array."""
        changed = {slot: provider.uuid for slot, provider in self._changed.items() if provider is not None}
        return _replace(self._arrays.uuid_array(), changed).take(slots)

    def name_array(self, slots: Slots) -> tuple[Texts, npt.NDArray[np.bool_]]:
        """Return the name of each provider, as an array, and a mask of the providers without a name."""
        changed = {slot: provider.name for slot, provider in self._changed.items() if provider is not None}
        texts = _replace(self._arrays.name_array(), {slot: name or "" for slot, name in changed.items()})
        nameless = np.zeros(self.end, dtype=np.bool_)
        nameless[: len(self._arrays)] = self._arrays.nameless
        nameless[[*changed]] = [name is None for name in changed.values()]
        return texts.take(slots), nameless[slots]

    def parents(self, slots: Slots) -> Slots:
        """Return the slot of the parent of each provider; -1 for a root."""
        return self._numbers(slots, self._arrays.parents, "parent")

    def _numbers(self, slots: Slots, array: npt.NDArray[Any], field: str) -> npt.NDArray[Any]:
        """Return elements of an array, or values of changed providers."""
        in_array = slots < len(array)
        numbers = np.zeros(len(slots), dtype=array.dtype)
        numbers[in_array] = array[slots[in_array]]
        for position, provider in self._changed_at(slots):
            numbers[position] = getattr(provider, field)
        return numbers

    def _changed_at(self, slots: Slots) -> Iterator[tuple[int, ChangedProvider]]:
        """Yield the positions of changed providers in a list of slots, and the providers."""
        if not len(self._changed_slots):
            return
        _, is_changed = positions_in(self._changed_slots, slots)
        for position in np.flatnonzero(is_changed).tolist():
            provider = self._changed[int(slots[position])]
            assert provider is not None, slots[position]
            yield position, provider
