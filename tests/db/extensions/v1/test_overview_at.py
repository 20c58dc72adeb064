"""GET /v1/overview?at=: the overview of a past time is the one that was shown then."""

from __future__ import annotations

import datetime
import random
import re
import time

import pytest
import sqlalchemy as sa

from placement import extension
from placement.db.connect import connect
from placement.extensions.v1.history.recorder import HistorySettings
from placement.extensions.v1.history.tables import event_order, events
from placement.extensions.v1.overview import past
from placement.objects.claims import leases
from placement.schemas.dates import precise
from tests import web
from tests.children import until
from tests.db import sql_hooks
from tests.db.in_process import placement
from tests.db.scenarios import Names
from tests.db.writes import ALL, HOST, VARIANTS, claim, provider
from tests.made import opened

SCENARIOS = [write for write in (*ALL, *VARIANTS) if not write.name.startswith("a dry run")]
#: Writes to a provider that is not deleted.  With them, each seed runs every branch of ``undo``.
ALWAYS = [
    write
    for write in SCENARIOS
    if write.name in {"rename a provider", "move a subtree", "set traits", "set aggregates", "change an inventory"}
]


def overview_of(service, **query):
    """Return the providers of the overview, by uuid."""
    text = "&".join(f"{name}={value}" for name, value in query.items())
    answer = service("GET", f"/v1/overview?{text}")
    assert answer.status == 200, answer
    providers = {provider["uuid"]: provider for provider in answer.body["providers"]}
    assert len(providers) == len(answer.body["providers"])
    return providers


def now_between_events(database):
    """Return the time by the database's clock; all earlier events are older, and all later ones are newer."""
    newest = database.read(lambda db: db.execute(sa.select(sa.func.max(events.c.at))).scalar_one())
    now = later(database, newest)
    later(database, now)
    return precise(now)


def later(database, time):
    """Wait until the database's clock is later than ``time``, and return its time."""
    until(lambda: database.read(leases.now) > time)
    return database.read(leases.now)


@pytest.mark.parametrize("seed", range(3))
def test_every_state_is_shown_again(database, seed):
    service, states, chance = placement(database), [], random.Random(seed)
    for write in chance.sample([*ALWAYS, *chance.sample(SCENARIOS, 15)], 20):
        names = Names()
        for call in (*write.before, write.call):
            service(*names.fill(call))
            states.append((now_between_events(database), overview_of(service)))
    for at, state in states:
        assert overview_of(service, at=at) == state
    assert len({str(state) for _, state in states}) > 20


def test_conditions_and_pages_apply_to_a_past_state(database):
    service, names = placement(database), Names()
    for call in (*HOST, claim(host={"VCPU": 3}), provider("other"), provider("child", "host")):
        assert service(*names.fill(call)).status < 300
    at = now_between_events(database)
    for call in (
        "DELETE /allocations/$consumer",
        "DELETE /resource_providers/$child",
        "DELETE /resource_providers/$host",
    ):
        assert service("DELETE", names.fill_text(call.split()[1]), 39).status == 204
    assert names["host"] not in overview_of(service)
    tree = overview_of(service, at=at, root=names["host"])
    assert tree.keys() == {names["host"], names["child"]}
    assert tree[names["host"]]["inventories"]["VCPU"]["used"] == 3
    assert tree[names["host"]]["consumers"] == 1
    assert tree[names["child"]]["root"]["uuid"] == names["host"]
    first = service("GET", f"/v1/overview?at={at}&limit=1").body
    following = service("GET", "/v1/" + first["next"].partition("/v1/")[2]).body
    assert {provider["uuid"] for page in (first, following) for provider in page["providers"]} == {
        *tree,
        names["other"],
    }


def test_a_renamed_class_has_its_former_name(database):
    service, names = placement(database), Names()
    assert service("PUT", "/resource_classes/CUSTOM_OLD", 7).status == 201
    assert service(*names.fill(provider("host"))).status == 200
    body = {"resource_provider_generation": 0, "inventories": {"CUSTOM_OLD": {"total": 4}}}
    assert service("PUT", names.fill_text("/resource_providers/$host/inventories"), 39, body).status == 200
    at = now_between_events(database)
    assert service("PUT", "/resource_classes/CUSTOM_OLD", 6, {"name": "CUSTOM_NEW"}).status == 200
    assert overview_of(service)[names["host"]]["inventories"].keys() == {"CUSTOM_NEW"}
    assert overview_of(service, at=at)[names["host"]]["inventories"].keys() == {"CUSTOM_OLD"}
    assert overview_of(service, at=at, **{"class": "CUSTOM_OLD"}).keys() == {names["host"]}


def test_changes_before_the_rename_of_a_class_are_undone_under_its_former_name(database):
    """One of the two providers has no event since then."""
    service, names = placement(database), Names()
    assert service("PUT", "/resource_classes/CUSTOM_OLD", 7).status == 201
    for name in ("host", "other"):
        assert service(*names.fill(provider(name))).status == 200
        body = {"resource_provider_generation": 0, "inventories": {"CUSTOM_OLD": {"total": 4}}}
        assert service("PUT", names.fill_text(f"/resource_providers/${name}/inventories"), 39, body).status == 200
    at, state = now_between_events(database), overview_of(service)
    body = {"resource_provider_generation": 1, "inventories": {"CUSTOM_OLD": {"total": 5}, "VCPU": {"total": 1}}}
    assert service("PUT", names.fill_text("/resource_providers/$host/inventories"), 39, body).status == 200
    assert service("PUT", "/resource_classes/CUSTOM_OLD", 6, {"name": "CUSTOM_NEW"}).status == 200
    assert overview_of(service, at=at) == state


def test_classes_that_were_renamed_repeatedly_have_their_former_names(database):
    """Two classes exchange their names by way of a third."""
    service, names = placement(database), Names()
    assert service(*names.fill(provider("host"))).status == 200
    for number, name in enumerate(("CUSTOM_A", "CUSTOM_B"), 1):
        assert service("PUT", f"/resource_classes/{name}", 7).status == 201
        body = {
            "resource_provider_generation": number - 1,
            "inventories": {"VCPU": {"total": 9}, name: {"total": number}},
        }
        before = service("GET", names.fill_text("/resource_providers/$host/inventories"), 39).body["inventories"]
        body["inventories"] |= {
            resource_class: {"total": amounts["total"]} for resource_class, amounts in before.items()
        }
        assert service("PUT", names.fill_text("/resource_providers/$host/inventories"), 39, body).status == 200
    states = []
    for old, new in (("A", "C"), ("B", "A"), ("C", "B"), ("B", "D"), ("D", "B")):
        states.append((now_between_events(database), overview_of(service)))
        assert service("PUT", f"/resource_classes/CUSTOM_{old}", 6, {"name": f"CUSTOM_{new}"}).status == 200
    for at, state in states:
        assert overview_of(service, at=at) == state
        for name in state[names["host"]]["inventories"]:
            assert overview_of(service, at=at, **{"class": name}).keys() == {names["host"]}


def test_unrecorded_deletions_do_not_break_a_past_state(database):
    """Earlier events contain only some columns of a deleted inventory; the others are unknown, so it is left out."""
    service, names = placement(database), Names()
    assert service(*names.fill(provider("host"))).status == 200
    page = names.fill_text("/resource_providers/$host/inventories")
    body = {"resource_provider_generation": 0, "inventories": {"VCPU": {"total": 4}, "DISK_GB": {"total": 4}}}
    assert service("PUT", page, 39, body).status == 200
    at = now_between_events(database)
    changed = {"resource_provider_generation": 1, "total": 4, "reserved": 1}
    assert service("PUT", f"{page}/VCPU", 39, changed).status == 200
    with opened(database.url, history=HistorySettings(enabled=False)) as other:
        assert placement(other)("DELETE", f"{page}/VCPU", 39).status == 204
    assert overview_of(service, at=at)[names["host"]]["inventories"].keys() == {"DISK_GB"}
    with opened(database.url, history=HistorySettings(enabled=False)) as other:
        assert placement(other)("DELETE", names.fill_text("/resource_providers/$host"), 39).status == 204
    overview_of(service, at=at)


def test_deletions_without_a_position_are_undone_separately(database, monkeypatch):
    """Each deleted provider is shown with its own data."""
    service, names = placement(database), Names()
    for name in ("host", "second"):
        assert service(*names.fill(provider(name))).status == 200
    at = now_between_events(database)
    state = overview_of(service)
    database.recorder.order()
    for name in ("host", "second"):
        assert service("DELETE", names.fill_text(f"/resource_providers/${name}"), 39).status == 204
    monkeypatch.setattr(database.recorder, "order", lambda: None)
    assert overview_of(service, at=at) == state


@pytest.mark.parametrize("backend", ["mariadb", "postgresql"], indirect=True)
def test_events_that_are_pruned_while_they_are_read_are_undone(database, monkeypatch):
    """All events are read in one snapshot."""
    monkeypatch.setattr(past, "_WINDOW", 1)
    service, names = placement(database), Names()
    for name in ("host", "second", "third"):
        assert service(*names.fill(provider(name))).status == 200
        if name == "host":
            at, state = now_between_events(database), overview_of(service)
    database.recorder.order()
    removed = []

    def prune(statement):
        if not removed and "JOIN event_order" in statement:
            with opened(database.url, history=HistorySettings(max_events=1)) as other:
                removed.append(other.recorder.prune())

    with sql_hooks.statements(database.reading_engine, prune):
        assert overview_of(service, at=at) == state
    assert removed == [2]


def test_all_pages_of_an_age_show_the_same_time(database):
    service, names = placement(database), Names()
    for name in ("host", "second"):
        assert service(*names.fill(provider(name))).status == 200
    time.sleep(1.1)
    first = service("GET", "/v1/overview?at=1s&limit=1").body
    assert "at=1s" not in first["next"]
    assert "at=20" in first["next"]
    time.sleep(1.1)
    assert service("DELETE", names.fill_text("/resource_providers/$second"), 39).status == 204
    time.sleep(1.1)
    following = service("GET", "/v1/" + first["next"].partition("/v1/")[2]).body
    assert len(following["providers"]) == 1


def test_pages_of_a_past_state_contain_each_provider_once_despite_deletions(database):
    service, names = placement(database), Names()
    for name in ("first", "second", "third", "fourth"):
        assert service(*names.fill(provider(name))).status == 200
    assert service("DELETE", names.fill_text("/resource_providers/$first"), 39).status == 204
    at = now_between_events(database)
    before = overview_of(service, at=at)
    path, uuids = f"/v1/overview?at={at}&limit=1", []
    while path:
        body = service("GET", path).body
        uuids += [provider["uuid"] for provider in body["providers"]]
        if len(uuids) in (1, 2):
            assert service("DELETE", f"/resource_providers/{uuids[-1]}", 39).status == 204
        path = body["next"] and "/v1/" + body["next"].partition("/v1/")[2]
    assert sorted(uuids) == sorted(before)


def test_a_time_before_the_history_is_refused_with_410(database):
    service, names = placement(database), Names()
    answer = service("GET", "/v1/overview?at=1h")
    assert (answer.status, answer.error["code"]) == (410, "placement.v1.time_unknown")
    assert "oldest event: none" in answer.error["detail"]
    assert service(*names.fill(provider("host"))).status == 200
    overview_of(service, at=now_between_events(database))
    before = database.read(leases.now) - datetime.timedelta(hours=1)
    answer = service("GET", f"/v1/overview?at={precise(before)}")
    assert (answer.status, answer.error["code"]) == (410, "placement.v1.time_unknown")
    oldest = database.read(lambda db: db.execute(sa.select(event_order.c.at)).scalar())
    assert precise(oldest) in answer.error["detail"]


def test_an_event_exactly_at_the_time_is_part_of_the_state(database):
    """This includes the oldest event."""
    service, names = placement(database), Names()
    assert service(*names.fill(provider("host"))).status == 200
    now_between_events(database)
    assert service(*names.fill(provider("second"))).status == 200
    database.recorder.order()
    at, _ = database.read(lambda db: db.execute(sa.select(event_order.c.at).order_by(event_order.c.at)).scalars().all())
    assert overview_of(service, at=precise(at)).keys() == {names["host"]}


def test_all_events_with_the_same_timestamp_are_undone(database):
    """The database may return them in an order other than that of their positions."""
    service, names = placement(database), Names()
    assert service(*names.fill(provider("host"))).status == 200
    at = now_between_events(database)
    for name in ("second", "third"):
        assert service(*names.fill(provider(name))).status == 200
    database.recorder.order()
    is_later = event_order.c.position > 1
    with database.engine.begin() as connection:
        rows = connection.execute(sa.select(event_order).where(is_later)).mappings().all()
        rows = sorted(({**row, "at": rows[0]["at"]} for row in rows), key=lambda row: -row["position"])
        connection.execute(sa.delete(event_order).where(is_later))
        connection.execute(sa.insert(event_order), rows)
    assert len(rows) == 2
    assert overview_of(service, at=at).keys() == {names["host"]}


def test_a_time_whose_later_events_were_pruned_is_refused(database):
    """The state at that time is unknown."""
    service, names = placement(database), Names()
    assert service(*names.fill(provider("host"))).status == 200
    at = now_between_events(database)
    for name in ("second", "third"):
        assert service(*names.fill(provider(name))).status == 200
    database.recorder.order()
    with opened(database.url, history=HistorySettings(max_events=1)) as bounded:
        bounded.recorder.prune()
    assert service("GET", f"/v1/overview?at={at}").status == 410


def test_too_many_changes_are_refused_before_providers_are_read(database):
    with opened(database.url, history=HistorySettings(max_undone_events=2)) as bounded:
        service, names = placement(bounded), Names()
        assert service(*names.fill(provider("host"))).status == 200
        at = now_between_events(bounded)
        for name in ("second", "third"):
            assert service(*names.fill(provider(name))).status == 200
        assert overview_of(service, at=at).keys() == {names["host"]}
        now_between_events(bounded)
        assert service(*names.fill(provider("fourth"))).status == 200
        bounded.recorder.order()
        statements = []
        with sql_hooks.statements(bounded.reading_engine, statements.append):
            answer = service("GET", f"/v1/overview?at={at}")
        assert (answer.status, answer.error["code"]) == (400, "placement.v1.too_many_changes")
        assert not [statement for statement in statements if "resource_providers" in statement]
        # The suggested time is not refused.
        [reached] = re.findall(r"such as (\S+Z)\.", answer.error["detail"])
        assert overview_of(service, at=reached).keys() >= {names["host"], names["second"], names["third"]}


def test_the_maximum_number_of_undone_events_is_configured():
    conf = web.configuration(history__max_undone_events=5000)
    configured = connect(conf)
    extension.attach(configured, conf)
    assert configured.recorder.settings.max_undone_events == 5000


def test_events_without_a_position_are_undone(database, monkeypatch):
    """Such events are committed while a past state is read."""
    service, names = placement(database), Names()
    for call in HOST:
        assert service(*names.fill(call)).status < 300
    at = now_between_events(database)
    before = overview_of(service)
    database.recorder.order()
    monkeypatch.setattr(database.recorder, "order", lambda: None)
    for number in range(3):
        assert service(*names.fill(claim(consumer=f"consumer_{number}", host={"VCPU": 1}))).status == 204
    assert overview_of(service)[names["host"]]["consumers"] == 3
    assert service("DELETE", names.fill_text("/allocations/$consumer_1"), 39).status == 204
    assert overview_of(service, at=at) == before


def test_an_invalid_date_is_refused(database):
    service = placement(database)
    for text in ("yesterday", "2026-13-01", "2026-11-20T08:11:35.1234567Z"):
        assert service("GET", f"/v1/overview?at={text}").status == 400


# --- cached states ---

_HOUR = datetime.timedelta(hours=1)


def grow_older(database):
    """Set all events back by an hour, as if the test had run an hour earlier."""
    database.recorder.order()
    with database.engine.begin() as connection:
        for table in (events, event_order):
            keys = [*table.primary_key]
            for *values, at in connection.execute(sa.select(*keys, table.c.at)).all():
                is_row = [key == value for key, value in zip(keys, values, strict=True)]
                connection.execute(sa.update(table).where(*is_row).values(at=at - _HOUR))


def an_hour_before(at):
    """Return the date an hour before a date."""
    return precise(datetime.datetime.fromisoformat(at).replace(tzinfo=None) - _HOUR)


@pytest.fixture
def long_ago(database):
    """Return a service, and states of an hour ago by date: each has one host more than the previous state."""
    service, names, states = placement(database), Names(), {}
    for number in range(past._MAX_RECENT + 2):
        assert service(*names.fill(provider(f"host{number}"))).status == 200
        states[an_hour_before(now_between_events(database))] = overview_of(service)
    grow_older(database)
    return service, states


def request_state(database, service, at):
    """Return the state at a time, and whether providers were read from the database."""
    statements = []
    with sql_hooks.statements(database.reading_engine, statements.append):
        state = overview_of(service, at=at)
    return state, any("FROM resource_providers" in statement for statement in statements)


def test_an_old_state_is_read_once_and_not_affected_by_writes(database, long_ago):
    service, states = long_ago
    at, state = next(iter(states.items()))
    assert request_state(database, service, at) == (state, True)
    names = Names()
    for call in (*HOST, claim(host={"VCPU": 3})):
        assert service(*names.fill(call)).status < 300
    assert names["host"] in overview_of(service)
    assert request_state(database, service, at) == (state, False)


def test_the_cache_keeps_the_last_requested_states(database, long_ago):
    service, states = long_ago
    for _ in range(2):
        for at, state in states.items():
            assert request_state(database, service, at) == (state, True)
    newest = [*states][-past._MAX_RECENT :]
    assert [request_state(database, service, at) for at in newest] == [(states[at], False) for at in newest]
    oldest = next(iter(states))
    assert request_state(database, service, oldest) == (states[oldest], True)


def test_a_recent_state_includes_events_that_are_committed_later_with_an_earlier_timestamp(database):
    """The timestamps of a transaction's events precede its COMMIT, by a long time if the transaction is slow."""
    service, names = placement(database), Names()
    assert service(*names.fill(provider("host"))).status == 200
    at = now_between_events(database)
    assert service(*names.fill(provider("second"))).status == 200
    database.recorder.order()
    assert overview_of(service, at=at).keys() == {names["host"]}
    first = sa.select(event_order.c.at).where(event_order.c.position == 1)
    with database.engine.begin() as connection:
        earlier = connection.execute(first).scalar_one()
        connection.execute(sa.update(event_order).where(event_order.c.position == 2).values(at=earlier))
    assert overview_of(service, at=at).keys() == {names["host"], names["second"]}
