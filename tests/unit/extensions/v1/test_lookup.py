"""Lookup of a provider by its uuid or its name."""

from __future__ import annotations

import dataclasses

import pytest

from placement.extensions.v1 import lookup
from placement.extensions.v1.failures import NoSuchProvider, UnknownProvider
from placement.index.build import build
from placement.index.edit import with_providers
from placement.index.tables import Tables
from tests import made
from tests.world import World

ONE, TWO = "10000000-0000-4000-8000-000000000001", "20000000-0000-4000-8000-00000000000b"


@pytest.fixture
def snapshot():
    """Return a snapshot of three providers: "rack 1/node é", one named by the first's uuid, and one without a name."""
    world = World()
    for uuid in (ONE, TWO, "third"):
        world.host(uuid, VCPU=1)
    rows = world.rows()
    names = ["rack 1/node é", ONE, None]
    providers = [(row[0], row[1], name, *row[3:]) for row, name in zip(rows.providers, names, strict=True)]
    return build(Tables.of(dataclasses.replace(rows, providers=providers)), {0: "VCPU"})


def test_a_uuid_takes_precedence_over_an_equal_name(snapshot):
    assert snapshot.provider(lookup.provider_in_path(snapshot, made.empty_database(), ONE)).uuid == ONE
    assert snapshot.provider(lookup.provider_in_path(snapshot, made.empty_database(), TWO)).uuid == TWO


def test_a_name_is_compared_exactly(snapshot):
    slot = lookup.provider_in_parameter(snapshot, made.empty_database(), "root", "rack 1/node é")
    assert snapshot.provider(slot).uuid == ONE
    for name in ("Rack 1/node é", "rack 1/node e", "rack 1/node é ", "", "None"):
        assert lookup.find(snapshot, name) is None


def test_a_uuid_is_found_in_every_spelling(snapshot):
    for spelling in (TWO.upper(), TWO.replace("-", ""), f"{{{TWO}}}", f"urn:uuid:{TWO}"):
        assert snapshot.provider(lookup.provider_in_path(snapshot, made.empty_database(), spelling)).uuid == TWO


def test_a_new_name_is_found_in_the_next_snapshot(snapshot):
    assert lookup.find(snapshot, "rack 1/node é") is not None
    world = World()
    world.host(ONE, VCPU=1)
    rows = world.rows()
    renamed = [(row[0], row[1], "rack 2", *row[3:]) for row in rows.providers]
    after = with_providers(snapshot, [renamed[0][0]], dataclasses.replace(rows, providers=renamed))
    assert lookup.find(after, "rack 2") == after.by_uuid[ONE]
    assert lookup.find(after, "rack 1/node é") is None
    assert lookup.find(snapshot, "rack 2") is None


def test_a_provider_that_does_not_exist_is_named_in_the_failure(snapshot):
    with pytest.raises(NoSuchProvider, match='There is no provider or node "nothing"'):
        lookup.provider_in_path(snapshot, made.empty_database(), "nothing")
    with pytest.raises(UnknownProvider, match='root names "nothing", which is not a provider or node'):
        lookup.provider_in_parameter(snapshot, made.empty_database(), "root", "nothing")
