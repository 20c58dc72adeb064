"""Concurrent calls of POST /v1/claims are carried out together, and each is answered as if it were alone."""

from __future__ import annotations

import datetime
import uuid

import pytest
import sqlalchemy as sa

from placement.db.schema.tables import resource_providers
from placement.objects.claims import leases
from tests.db.extensions.v1.claim_crowd import call, outcomes_of, results_of, waiting_calls
from tests.db.extensions.v1.test_claims import Cloud, request, roots_of
from tests.db.extensions.v1.test_claims_at_once import put, several_writers
from tests.db.extensions.v1.test_claims_statement_budget import CLAIM
from tests.db.faults import Plan
from tests.made import opened

TRAIT = "HW_CPU_X86_AVX"


@pytest.fixture
def crowd(database, monkeypatch):
    with waiting_calls(database, monkeypatch) as crowd:
        yield crowd


@pytest.fixture
def elsewhere(database):
    """Another process."""
    with opened(database.url) as other:
        yield Cloud(other)


def statements_of(crowd, *calls):
    """Return the statements of calls that are carried out together, including COMMIT."""
    plan = Plan()
    assert outcomes_of(crowd.claim_each(*calls, plan=plan)) == ["claimed"] * len(calls)
    statements = plan.statements_without_begin
    assert statements.count("COMMIT") == 2
    return statements[statements.index("COMMIT") + 1 :]


@pytest.mark.every_database
def test_waiting_calls_share_one_search_and_one_transaction(crowd, event_inserts):
    host = crowd.host("a", VCPU=100)
    crowd.read()
    statements = statements_of(crowd, *(call() for _ in range(6)))
    # One statement more reads the ids of the consumers' rows.
    assert len(statements) <= CLAIM + event_inserts + 1, "\n".join(statements)
    assert crowd.searches == 2
    assert crowd.joined == [1, 6]
    assert crowd.outcomes == {"claimed": 7}
    assert crowd("GET", f"/resource_providers/{host}").body["generation"] == 2


def test_each_request_has_an_event_with_the_common_generation_step(crowd):
    host = crowd.host("a", VCPU=100)
    crowd.read()
    assert outcomes_of(crowd.claim_each(*(call() for _ in range(4)))) == ["claimed"] * 4
    assert crowd.joined == [1, 4]
    events = crowd("GET", f"/v1/events?provider={host}&limit=1000").body["events"][-4:]
    assert [event["generation"] for event in events] == [[1, 2]] * 4
    assert [len(event["changes"]["consumers"]["added"]) for event in events] == [1] * 4
    assert len({event["request"]["request_id"] for event in events}) == 4


@pytest.mark.every_database
def test_each_request_has_its_own_place_and_owner(crowd):
    """Queries and owners differ; some of the owners' names are new."""
    hosts = [crowd.host("a", VCPU=100), crowd.host("b", MEMORY_MB=100), crowd.host("c", VCPU=100)]
    body = {"resource_provider_generation": 1, "traits": [TRAIT]}
    assert crowd("PUT", f"/resource_providers/{hosts[2]}/traits", body).status == 200
    crowd.read()
    places = [
        ("resources=VCPU:3&required=!" + TRAIT, hosts[0], {"VCPU": 3}),
        ("resources=MEMORY_MB:7", hosts[1], {"MEMORY_MB": 7}),
        ("resources=VCPU:2&required=" + TRAIT, hosts[2], {"VCPU": 2}),
        ("resources=VCPU:5&required=!" + TRAIT, hosts[0], {"VCPU": 5}),
        ("resources=VCPU:2&required=" + TRAIT, hosts[2], {"VCPU": 2}),
    ]
    owners = [
        {"project_id": f"p{number}", "user_id": f"u{number % 2}", "consumer_type": f"T{number % 3}"}
        for number in range(len(places))
    ]
    entries = [request(query, **owner) for (query, _, _), owner in zip(places, owners, strict=True)]
    results = results_of(crowd.claim_each(*map(call, entries)))
    assert crowd.joined == [1, len(places)]
    names = dict(zip(hosts, "abc", strict=True))
    generations = {hosts[0]: 2, hosts[1]: 2, hosts[2]: 3}
    for result, entry, owner, (_, host, amounts) in zip(results, entries, owners, places, strict=True):
        assert result == {
            "consumer": entry["consumer"],
            "status": 200,
            "outcome": "claimed",
            "allocations": {host: {"name": names[host], "resources": amounts, "generation": generations[host]}},
            "mappings": [{"": [host]}],
            "consumer_generation": 1,
            "expires_at": None,
        }
        document = crowd("GET", f"/v1/claims/{entry['consumer']}").body
        assert {name: document[name] for name in result if name in document} == {
            name: value for name, value in result.items() if name in document
        }
        assert {name: document[name] for name in owner} == owner
    assert {"consumer", "allocations", "mappings", "consumer_generation", "expires_at"} <= document.keys()


def test_only_calls_with_the_same_strategy_and_expiry_are_carried_out_together(crowd):
    kinds = {
        "VCPU": {},
        "MEMORY_MB": {"strategy": "random"},
        "PCPU": {"expires_in": 600},
        "VGPU": {"expires_in": 6000},
        "IPV4_ADDRESS": {"expires_in": None},
    }
    for name in kinds:
        crowd.host(name, **{name: 100})
    crowd.read()
    time_before = crowd.database.read(leases.now)
    calls = [call(request(f"resources={name}:1"), **kind) for name, kind in [*kinds.items()] * 2]
    results = results_of(crowd.claim_each(*calls))
    time_after = crowd.database.read(leases.now)
    assert crowd.joined == [1] + [2] * 5
    assert crowd.outcomes == {"claimed": 11}
    for body, result in zip(calls, results, strict=True):
        seconds = datetime.timedelta(seconds=body.get("expires_in") or 0)
        if seconds:
            end = datetime.datetime.fromisoformat(result["expires_at"]).replace(tzinfo=None)
            assert time_before + seconds - datetime.timedelta(seconds=1) <= end <= time_after + seconds
        else:
            assert result["expires_at"] is None


def test_calls_with_the_same_expiry_are_carried_out_together(crowd):
    crowd.host("a", VCPU=100)
    crowd.read()
    results = results_of(crowd.claim_each(*(call(expires_in=600) for _ in range(3))))
    assert crowd.joined == [1, 3]
    [expires_at] = {result["expires_at"] for result in results}
    for result in results:
        # Each consumer has one event, of its own request.
        [event] = crowd("GET", f"/v1/events?consumer={result['consumer']}").body["events"]
        assert event["changes"]["lease"] == [None, expires_at]


@pytest.mark.every_database
def test_a_call_whose_place_was_taken_gets_another(crowd, elsewhere):
    """The other calls are not carried out again."""
    full_host, free_host = crowd.host("a", VCPU=4), crowd.host("b", VCPU=4)
    quiet = crowd.host("c", MEMORY_MB=9)
    put(elsewhere, free_host, 4, consumer := str(uuid.uuid4()))
    crowd.read()
    put(elsewhere, full_host, 4)
    assert elsewhere("DELETE", f"/allocations/{consumer}").status == 204
    calls = [call(request("resources=MEMORY_MB:1")) for _ in range(3)]
    calls.insert(1, call(request("resources=VCPU:4")))
    results = results_of(crowd.claim_each(*calls))
    assert [roots_of(result) for result in results] == [{quiet}, {free_host}, {quiet}, {quiet}]
    assert {result["allocations"][quiet]["generation"] for result in results if quiet in result["allocations"]} == {2}
    assert crowd.joined == [1, 3, 1]
    assert crowd.outcomes == {"claimed": 5}
    assert crowd.searches == 3
    assert [*crowd.logged.values()] == [{"claimed": 1, "refused": 0}] * 5


@pytest.mark.usefixtures("patient_database")
@pytest.mark.every_database
@several_writers
def test_only_the_call_whose_provider_is_locked_waits(crowd, elsewhere):
    locked, quiet = crowd.host("a", VCPU=4), crowd.host("b", MEMORY_MB=9)
    crowd.read()
    calls = [call(request(f"resources={name}:1")) for name in ("MEMORY_MB", "VCPU", "MEMORY_MB")]
    commits = []

    def release(_connection):
        commits.append(crowd.joined[:])
        if len(commits) == 2:
            connection.rollback()

    with elsewhere.database.engine.connect() as connection:
        row = sa.select(resource_providers.c.id).where(resource_providers.c.uuid == locked)
        connection.execute(row.with_for_update()).one()
        sa.event.listen(crowd.database.engine, "commit", release)
        results = results_of(crowd.claim_each(*calls))
    assert [roots_of(result) for result in results] == [{quiet}, {locked}, {quiet}]
    assert (len(commits), crowd.joined) == (3, [1, 2, 1])
    assert crowd.outcomes == {"claimed": 4}


def test_only_the_call_that_fits_nowhere_is_refused(crowd):
    crowd.host("a", VCPU=100)
    crowd.read()
    answers = crowd.claim_each(call(), call(request("resources=VCPU:101")), call())
    assert [answer.status for answer in answers] == [200, 409, 200]
    [refused] = answers[1].body["results"]
    assert answers[1].error["code"] == refused["error"]["code"] == "placement.v1.no_room"
    assert refused["explanation"]["obstacle"] == {"rule": "resources", "group": ""}
    assert crowd.joined == [1, 2]
    assert crowd.outcomes == {"claimed": 3, "NoRoom": 1}
    assert crowd.logged["2"] == {"claimed": 0, "refused": 1}
    assert crowd.logged["3"] == {"claimed": 1, "refused": 0}


@pytest.mark.every_database
def test_calls_for_consumers_that_hold_resources_are_answered_by_their_holdings(crowd):
    crowd.host("a", VCPU=100)
    crowd.host("b", MEMORY_MB=100)
    holding = [request(), request()]
    assert crowd.claim(*holding).body["claimed"] == 2
    crowd.read()
    same, different = holding[0], {**holding[1], "query": "resources=VCPU:2"}
    others = [request("resources=MEMORY_MB:1") for _ in range(2)]
    answers = crowd.claim_each(*map(call, (others[0], same, different, others[1])))
    assert [answer.status for answer in answers] == [200, 200, 409, 200]
    assert answers[2].error["code"] == "placement.v1.held_otherwise"
    assert outcomes_of(answers) == ["claimed", "held", "refused", "claimed"]
    assert answers[1].body["results"][0]["allocations"].keys() == roots_of(results_of(answers)[1])
    assert crowd.joined == [1, 2]
    assert crowd.outcomes == {"claimed": 3, "held": 1, "HeldOtherwise": 1}
    assert crowd.searches == 4
    assert crowd("GET", f"/v1/claims/{different['consumer']}").body["consumer_generation"] == 1


@pytest.mark.every_database
def test_two_equal_calls_for_a_consumer_claim_once(crowd):
    crowd.host("a", VCPU=100)
    crowd.read()
    twice, other = request(), request()
    answers = crowd.claim_each(*map(call, (twice, twice, other)))
    assert [answer.status for answer in answers] == [200] * 3
    assert outcomes_of(answers) == ["claimed", "held", "claimed"]
    first, repeated, _ = results_of(answers)
    assert repeated["mappings"] == first["mappings"]
    assert crowd.outcomes == {"claimed": 3, "held": 1}


@pytest.mark.every_database
def test_as_many_calls_as_fit_get_the_last_places(crowd):
    for name in "abc":
        crowd.host(name, VCPU=3)
    crowd.read()
    answers = crowd.claim_each(*(call() for _ in range(12)))
    assert sorted(answer.status for answer in answers) == [200] * 9 + [409] * 3
    assert crowd.outcomes == {"claimed": 10, "NoRoom": 3}
    used = crowd("GET", "/usages?project_id=p").body["usages"]["INSTANCE"]
    assert (used["VCPU"], used["DISK_GB"]) == (9, 2)


def test_calls_that_fit_are_placed_even_if_all_optimistic_claims_are_refused(crowd, elsewhere):
    """Another process has changed every host since the index was read."""
    for name in "abc":
        host = crowd.host(name, VCPU=3)
        crowd.read()
        put(elsewhere, host, 1)
    answers = crowd.claim_each(*(call() for _ in range(8)))
    assert sorted(answer.status for answer in answers) == [200] * 6 + [409] * 2
    assert crowd.outcomes == {"claimed": 7, "NoRoom": 2}
