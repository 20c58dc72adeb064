"""Events of concurrent deletions of classes and traits."""

from __future__ import annotations

import pytest

from tests.db import interleaving
from tests.db.extensions import event_rows
from tests.db.in_process import placement
from tests.made import opened


@pytest.mark.every_database
@pytest.mark.parametrize("backend", ["mariadb", "postgresql"], indirect=True)
@pytest.mark.parametrize("path", ["/traits/CUSTOM_ONCE", "/resource_classes/CUSTOM_ONCE"])
def test_two_concurrent_deletions_of_a_name_record_one_event(database, path):
    """The other deletion commits just before this one deletes the row or locks it."""
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
    names = [event.changes["name"] for event in event_rows.following(database)]
    assert names == [
        [None, "CUSTOM_ONCE"],
        ["CUSTOM_ONCE", None],
    ]
