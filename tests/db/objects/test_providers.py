"""Duplicate uuids and names, renames, and concurrent changes of providers."""

from __future__ import annotations

import pytest

from placement import errors
from placement.objects.locked_provider import LockedProvider
from placement.objects.provider import ResourceProvider
from tests.db import sql_hooks
from tests.db.in_process import placement
from tests.made import opened

ONE, OTHER = "6c1b0f5e-0b8e-4f6e-8a57-51a3f0a4c005", "6c1b0f5e-0b8e-4f6e-8a57-51a3f0a4c006"


@pytest.mark.parametrize(("uuid", "name"), [(ONE, "other"), (OTHER, "one")])
def test_a_duplicate_uuid_is_reported_before_a_duplicate_name(database, uuid, name):
    """A client whose uuid is taken reads that provider; one whose name is taken fails.  The rows have any order."""
    service = placement(database)
    for body in ({"uuid": ONE, "name": "one"}, {"uuid": OTHER, "name": "other"}):
        assert service("POST", "/resource_providers", 39, body).status == 200
    answer = service("POST", "/resource_providers", 39, {"uuid": uuid, "name": name})
    assert answer.status == 409
    assert f"Conflicting resource provider uuid: {uuid} already exists." in answer.error["detail"]


def test_a_provider_can_be_renamed_to_another_case_of_its_name(database):
    """If the collation ignores case, the provider's own row has the new name."""
    service = placement(database)
    assert service("POST", "/resource_providers", 39, {"uuid": ONE, "name": "one"}).status == 200
    answer = service("PUT", f"/resource_providers/{ONE}", 39, {"name": "One"})
    assert (answer.status, answer.body["name"]) == (200, "One")
    assert service("GET", f"/resource_providers/{ONE}").body["name"] == "One"


def test_a_generation_advances_only_from_the_generation_that_was_read(database):
    """A change of a record that differs from the locked row collides."""
    old = database.write(lambda db: LockedProvider.create(db, uuid=ONE, name="one"))
    database.write(lambda db: LockedProvider.lock(db, ONE).replace_inventories([]))
    with pytest.raises(errors.TooManyConflicts):
        database.write(lambda db: LockedProvider(db, old.record).replace_inventories([]), attempts=2)
    assert database.read(lambda db: ResourceProvider.get(db, ONE)).generation == 1


@pytest.mark.parametrize("part", ["inventories", "traits", "aggregates", "usages", "allocations"])
def test_a_provider_deleted_while_it_is_read_is_not_shown_as_empty(database, part):
    service = placement(database)
    assert service("POST", "/resource_providers", 39, {"uuid": ONE, "name": "one"}).status == 200
    body = {"resource_provider_generation": 0, "inventories": {"VCPU": {"total": 4}}}
    assert service("PUT", f"/resource_providers/{ONE}/inventories", 39, body).status == 200
    statements = []
    with opened(database.url) as second_database:

        def delete_between(statement):
            statements.append(statement)
            if len(statements) == 2:
                assert placement(second_database)("DELETE", f"/resource_providers/{ONE}").status == 204

        with sql_hooks.statements(database.reading_engine, delete_between):
            answer = service("GET", f"/resource_providers/{ONE}/{part}", 39)
    assert len(statements) >= 2
    assert answer.status == 404
