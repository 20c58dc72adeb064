"""Claims of /v1 and the expiry of their leases at two Galera nodes at once (tests/db/db/test_galera.py)."""

from __future__ import annotations

import itertools
import random

import pytest
import sqlalchemy as sa

from placement.objects.claims import leases
from tests.db import lease
from tests.db.galera_pair import either_first, retry_if_missed
from tests.load.extensions.claiming import claiming, refused_consumers, releasing, request, results
from tests.load.storm import Call, Storm, claim, name, new, statuses

pytestmark = [pytest.mark.xdist_group("galera"), pytest.mark.long]


class Hosts:
    """Providers with one unit each of a resource class that no other providers have."""

    def __init__(self, pair, number):
        self._pair, self.resource_class = pair, pair.create_name(Call("PUT", f"/resource_classes/{name('C')}"))
        self.uuids = [pair.provider(**{self.resource_class: 1}) for _ in range(number)]

    @property
    def query(self):
        return f"resources={self.resource_class}:1"

    def holders(self):
        """Return the consumers that hold resources on the hosts."""
        pages = [self._pair.ask(Call("GET", f"/resource_providers/{uuid}/allocations")).body for uuid in self.uuids]
        return [consumer for page in pages for consumer in page["allocations"]]


@retry_if_missed
def test_a_device_is_chosen_once(pair):
    hosts = Hosts(pair, 1)
    assert pair.meet(*(claiming(request(hosts.query)) for _ in range(2))) == [200, 409]


@retry_if_missed
@either_first
def test_a_device_goes_to_either_a_v1_claim_or_a_placement_claim(pair, order):
    hosts = Hosts(pair, 1)
    calls = [claiming(request(hosts.query)), claim({hosts.uuids[0]: {hosts.resource_class: 1}})]
    assert pair.meet(*calls[::order]) == ([200, 409] if order == 1 else [204, 409])


@retry_if_missed
@pytest.mark.parametrize("at_once", [False, True])
def test_an_overtaken_claim_takes_the_next_place(pair, at_once):
    hosts = Hosts(pair, 4)
    calls = [claiming(*(request(hosts.query) for _ in range(2)), all_or_nothing=at_once) for _ in range(2)]
    assert pair.meet(*calls) == [200, 200]
    assert len({*hosts.holders()}) == 4


@retry_if_missed
def test_the_same_call_at_both_nodes_places_a_consumer_once(pair):
    hosts, consumer = Hosts(pair, 2), new()
    assert pair.meet(*[claiming(request(hosts.query, consumer))] * 2) == [200, 200]
    assert hosts.holders() == [consumer]
    assert pair.ask(Call("GET", f"/allocations/{consumer}")).body["consumer_generation"] == 1


@retry_if_missed
def test_two_claims_apart_from_each_other_are_apart(pair):
    hosts, consumers = Hosts(pair, 1), [new(), new()]
    host = hosts.uuids[0]
    inventories = {resource_class: {"total": 2} for resource_class in (hosts.resource_class, "VCPU")}
    body = {"resource_provider_generation": 1, "inventories": inventories}
    assert pair.ask(Call("PUT", f"/resource_providers/{host}/inventories", body)).status == 200
    assert pair.meet(*(claiming(request(hosts.query, consumer), apart_from=consumers) for consumer in consumers)) == [
        200,
        409,
    ]


@retry_if_missed
@either_first
def test_a_consumer_is_released_despite_a_concurrent_move(pair, order):
    hosts, consumer = Hosts(pair, 2), new()
    assert pair.ask(claiming(request(hosts.query, consumer))).status == 200
    move = claiming(request(hosts.query, consumer, keep=False, consumer_generation=1), apart_from=[consumer])
    observed = pair.meet(*[move, releasing([consumer])][::order])
    assert observed == ([200, 200] if order == 1 else [200, 409])
    assert hosts.holders() == []


# --- expiry ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def slow_is_ahead(pair):
    """Set the clock of the slow node two hours ahead, so leases of an hour have expired there, but not elsewhere."""
    slow, _ = pair.databases

    def advance_clock(connection):
        connection.exec_driver_sql("SET timestamp = UNIX_TIMESTAMP(SYSDATE()) + 7200")

    for engine in {slow.engine, slow.reading_engine}:
        sa.event.listen(engine, "begin", advance_clock)
    yield
    for engine in {slow.engine, slow.reading_engine}:
        sa.event.remove(engine, "begin", advance_clock)
        engine.dispose()


def release_expired(database):
    return database.write(leases.release_expired)


def lease_host(pair):
    """Lease a host to a consumer for an hour by the clock of the quick node; return the hosts and the consumer."""
    hosts, consumer = Hosts(pair, 1), new()
    assert pair.ask(claim({hosts.uuids[0]: {hosts.resource_class: 1}}, consumer=consumer)).status == 204
    assert pair.quick("POST", f"/v1/claims/{consumer}/extend", None, {"expires_in": 3600}).status == 200
    pair.settle()
    return hosts, consumer


@retry_if_missed
def test_an_extended_lease_is_not_released(pair, slow_is_ahead):
    """A node that has not seen the extension tries to release it."""
    hosts, consumer = lease_host(pair)
    extend = Call("POST", f"/v1/claims/{consumer}/extend", {"expires_in": None})
    assert pair.meet(extend, release_expired) == [200, 0]
    assert hosts.holders() == [consumer]
    assert pair.ask(releasing([consumer])).status == 200


@retry_if_missed
def test_an_expired_lease_is_released_once(pair):
    hosts, consumer = lease_host(pair)
    lease.expire(pair.databases[0], consumer)
    pair.settle()
    assert pair.meet(release_expired, release_expired) == [1, 0]
    assert hosts.holders() == []


# --- many clients ----------------------------------------------------------------------------------------------------


class Nodes(Storm):
    """Clients whose requests go to both nodes in turn."""

    def __init__(self, pair):
        turn = itertools.cycle([pair.slow, pair.quick])
        self._ask = lambda *request: next(turn)(*request)
        self.history = []


def test_a_storm_at_both_nodes_allocates_no_resource_twice(pair):
    """Clients release, and claim more than the capacity by both APIs: no resource is allocated twice."""
    hosts, nodes = Hosts(pair, 12), Nodes(pair)

    def client(seed):
        chance = random.Random(seed)
        for number in range(5):
            consumers = [new() for _ in range(3)]
            answer = nodes.ask(
                *claiming(*(request(hosts.query, consumer) for consumer in consumers), all_or_nothing=bool(number % 2))
            )
            assert answer.status in (200, 409), answer
            nodes.ask(*claim({chance.choice(hosts.uuids): {hosts.resource_class: 1}}))
            nodes.ask(*releasing(consumers[1:]))

    nodes.together(*(lambda seed=seed: client(seed) for seed in range(4)))
    assert {event.answer.status for event in nodes.history} <= {200, 204, 409}, statuses(
        event.answer for event in nodes.history
    )
    pair.settle()
    remaining = claiming(*(request(hosts.query) for _ in hosts.uuids))
    without_place = refused_consumers(results([pair.ask(remaining)]))
    holders = hosts.holders()
    assert len(holders) == len({*holders}) == 12
    assert not without_place & {*holders}
