"""The events are complete for the writes of every route: replaying them gives the state of the tables."""

from __future__ import annotations

import contextlib
from unittest import mock

import pytest

from placement import routes
from placement.db.writes.transaction import Transaction
from tests import apis
from tests.db.extensions import event_rows, replay
from tests.db.in_process import placement
from tests.db.scenarios import Names
from tests.db.writes import ALL, REFUSED, VARIANTS, every_tenth

each = pytest.mark.parametrize("write", [*ALL, *VARIANTS], ids=lambda write: write.name)


def told(database, write, *, silent=False):
    """Make the scenario and the request of a write; return the status, and the events of the request.

    Args:
        silent: Whether the request notes nothing.
    """
    names, service = Names(), placement(database)
    for call in write.before:
        answer = service(*names.fill(call))
        assert answer.status < 300, (call, answer)
    before = len([*event_rows.following(database)])
    with mock.patch.object(Transaction, "note", autospec=True) if silent else contextlib.nullcontext():
        answer = service(*names.fill(write.call))
    return answer.status, [*event_rows.following(database)][before:]


@each
def test_replaying_the_events_gives_the_state(database, write):
    status, of_request = told(database, write)
    assert status == write.status
    assert replay.differences(replay.replayed(database), replay.read(database)) == {}
    assert event_rows.without_row(database) == []
    if status >= 400 or write in REFUSED or write.name.startswith("a dry run"):
        assert of_request == []
    elif write.changes:
        assert of_request
        method, path = write.call.what.split()
        api = next((api for api in apis.ALL if api.prefix and path.startswith(api.prefix)), routes.PLACEMENT)
        for one in of_request:
            assert one.request["route"].startswith(f"{method} {api.prefix}/"), one
            assert one.request["request_id"].startswith("req-")
            assert one.request["api"] == api.name


@pytest.mark.parametrize("write", every_tenth(write for write in (*ALL, *VARIANTS) if write.changes))
def test_a_write_that_notes_nothing_is_seen(database, write):
    told(database, write, silent=True)
    assert replay.differences(replay.replayed(database), replay.read(database)) != {}
