"""Traits by prefix, which is a text and not an SQL pattern, and the order of traits in a search."""

from __future__ import annotations

import pytest

from tests.db import interleaving
from tests.db.in_process import placement
from tests.made import opened


@pytest.mark.parametrize(
    ("prefix", "expected"),
    [("CUSTOM_A_", ["CUSTOM_A_B"]), ("CUSTOM_A", ["CUSTOM_AXB", "CUSTOM_A_B"]), ("CUSTOM%25", [])],
)
def test_a_prefix_has_no_wildcards(database, prefix, expected):
    service = placement(database)
    for name in ("CUSTOM_A_B", "CUSTOM_AXB"):
        assert service("PUT", f"/traits/{name}").status == 201
    matches = service("GET", f"/traits?name=startswith:{prefix}").body["traits"]
    assert sorted(matches) == expected


def test_summaries_show_traits_in_the_order_of_their_ids(database):
    """A worker may have read the provider with all others, or alone after a change; a new trait is last."""
    service, old_service = placement(database), placement(database)
    path = "/resource_providers/6c1b0f5e-0b8e-4f6e-8a57-51a3f0a4c007"
    search = "/allocation_candidates?resources=VCPU:1"
    assert old_service("GET", search).status == 200
    names = [f"CUSTOM_{letter}" for letter in "QAZMB"]
    body = {"name": "host", "uuid": path.rpartition("/")[2]}
    assert service("POST", "/resource_providers", 39, body).status == 200
    body = {"resource_provider_generation": 0, "inventories": {"VCPU": {"total": 1}}}
    assert service("PUT", f"{path}/inventories", 39, body).status == 200
    for generation in (1, 3):
        for name in names:
            assert service("PUT", f"/traits/{name}").status in (201, 204)
        body = {"resource_provider_generation": generation, "traits": [*reversed(names), "HW_CPU_X86_AVX"]}
        assert service("PUT", f"{path}/traits", 39, body).status == 200
        for reader in (placement(database), old_service):
            (summary,) = reader("GET", search).body["provider_summaries"].values()
            assert summary["traits"] == ["HW_CPU_X86_AVX", *names]
        body = {"resource_provider_generation": generation + 1, "traits": []}
        assert service("PUT", f"{path}/traits", 39, body).status == 200
        assert service("DELETE", f"/traits/{names[0]}").status == 204
        names.append(names.pop(0))


@pytest.mark.every_database
@pytest.mark.parametrize("backend", ["mariadb", "postgresql"], indirect=True)
@pytest.mark.parametrize("path", ["/traits/CUSTOM_ONCE", "/resource_classes/CUSTOM_ONCE"])
def test_one_of_two_deletions_of_a_name_succeeds(database, path):
    """The other deletion is committed right before this one deletes or locks the row."""
    service = placement(database)
    assert service("PUT", path, 39).status == 201
    table = path.split("/")[1]

    def deletes_or_locks(statement):
        return table in statement and (statement.startswith("DELETE") or "FOR UPDATE" in statement)

    statuses = []
    with opened(database.url) as second_database:
        second_service = placement(second_database)
        with interleaving.just_before(
            database, deletes_or_locks, lambda: statuses.append(second_service("DELETE", path, 39).status)
        ):
            statuses.append(service("DELETE", path, 39).status)
    assert statuses == [204, 404]
