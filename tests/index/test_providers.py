"""Providers are found by each of their keys, whatever hashes collide, in the arrays and among the changed ones."""

from __future__ import annotations

from unittest import mock
from uuid import UUID

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from placement.index import packed_uuids, texts
from placement.index.build import build
from placement.index.providers import ChangedProvider, Providers
from placement.index.records import Rows
from placement.index.tables import Tables
from tests.strategies import examples

#: Uuids that share halves or have the same sum of halves, and uuids of other implementations, which are not packed.
UUIDS = (
    *(str(UUID(int=high << 64 | low)) for high in (0, 1, 2**63) for low in (0, 1, 2)),
    *("", "a", "00000000000000000000000000000000", "0000000A-0000-0000-0000-000000000000"),
)
#: Names of any kind; None for a provider without a name.
NAMES = ("", "a", "b", "ab", "\0", "a\0", "é", "😀", UUIDS[0], None, None, None)


@st.composite
def some_providers(draw: st.DrawFn, taken: tuple[ChangedProvider, ...] = ()) -> ChangedProvider:
    """Draw a root whose id, uuid and name differ from those of the other providers."""
    ids, uuids, names = ({getattr(other, field) for other in taken} for field in ("id", "uuid", "name"))
    return ChangedProvider(
        id=draw(st.sampled_from([number for number in (1, 2, 3, 4, 5, 9, 70, 2**31 - 1) if number not in ids])),
        uuid=draw(st.sampled_from([uuid for uuid in UUIDS if uuid not in uuids])),
        name=draw(st.sampled_from([name for name in NAMES if name is None or name not in names])),
        parent=-1,
        root=0,
        classes=(),
        traits=frozenset(),
        aggregates=frozenset(),
    )


@st.composite
def several_providers(draw: st.DrawFn) -> list[ChangedProvider]:
    providers: tuple[ChangedProvider, ...] = ()
    for _ in range(draw(st.integers(0, 4))):
        providers += (draw(some_providers(providers)),)
    return sorted(providers)


def built(members: list[ChangedProvider]) -> Providers:
    rows = Rows(
        [(provider.id, provider.uuid, provider.name, 0, None, provider.id) for provider in members],
        inventories=[],
        usages=[],
        traits=[],
        aggregates=[],
        trait_ids={},
    )
    return build(Tables.of(rows), {}).providers


def check(providers: Providers, model: dict[int, ChangedProvider | None]) -> None:
    """Compare the providers with a model, the provider in each slot, by every method about ids, uuids and names."""
    present = {slot: provider for slot, provider in model.items() if provider is not None}
    slots = np.array(sorted(present), dtype=np.intp)
    assert providers.slots().tolist() == slots.tolist()
    assert sorted(providers.free_slots()) == sorted(model.keys() - present.keys())
    for id_ in (*range(-1, 75), 2**31 - 1):
        assert providers.slot_of_id(id_) == {other.id: slot for slot, other in present.items()}.get(id_)
    for uuid in (*UUIDS, str(UUID(int=3 << 64))):
        assert providers.slot_of_uuid(uuid) == {other.uuid: slot for slot, other in present.items()}.get(uuid)
    for name in (*NAMES[:-3], "unknown"):
        assert providers.slot_of_name(name) == {other.name: slot for slot, other in present.items()}.get(name)
    for slot, expected in present.items():
        provider = providers.get(slot)
        assert provider is not None
        assert (provider.id, provider.uuid, provider.name) == (expected.id, expected.uuid, expected.name)
    for order in (slots, slots[::-1], np.concatenate((slots, slots))):
        members = [present[slot] for slot in order.tolist()]
        assert providers.ids(order).tolist() == [provider.id for provider in members]
        assert providers.uuids(order) == [provider.uuid for provider in members]
        assert providers.names(order) == [provider.name for provider in members]
        every = np.arange(len(members))
        assert providers.uuid_array(order).select(every) == [provider.uuid for provider in members]
        names, nameless = providers.name_array(order)
        assert nameless.tolist() == [provider.name is None for provider in members]
        assert names.select(every) == [provider.name or "" for provider in members]
    for size in (providers.end, providers.end + 3):
        expected_identities = [provider.identity if (provider := model.get(slot)) else 0 for slot in range(size)]
        assert providers.identities(size).tolist() == expected_identities


@pytest.mark.parametrize("collide", [False, True], ids=["different hashes", "equal hashes"])
@examples(300)
@given(data=st.data(), members=several_providers())
def test_every_provider_is_found_by_its_keys(
    collide: bool, data: st.DataObject, members: list[ChangedProvider]
) -> None:
    """With these factors all texts have the same hash, and uuids whose halves have the same sum."""
    uuid_factor, text_factor = (1, 0) if collide else (packed_uuids._FACTOR, texts._FACTOR)
    with mock.patch.object(packed_uuids, "_FACTOR", uuid_factor), mock.patch.object(texts, "_FACTOR", text_factor):
        providers = built(members)
        model: dict[int, ChangedProvider | None] = dict(enumerate(members))
        versions = [(providers, model)]
        for _ in range(data.draw(st.integers(0, 3))):
            slot = data.draw(st.integers(0, providers.end + 1))
            others = tuple(other for place, other in model.items() if place != slot and other is not None)
            changed = (
                data.draw(st.none() | some_providers(others)) if slot in model else data.draw(some_providers(others))
            )
            providers = providers.with_changes({slot: changed})
            # A slot that was skipped has no provider: edit fills every slot up to the last one.
            skipped = {place: None for place in range(slot) if place not in model}
            providers, model = providers.with_changes(skipped), {**model, **skipped, slot: changed}
            versions.append((providers, model))
        for version, expected in versions:
            check(version, expected)
