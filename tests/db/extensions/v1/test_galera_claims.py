"""Claims whose places the service chooses, and their ends, at two Galera nodes at once (tests/db/db/test_galera.py)."""

from __future__ import annotations

import itertools
import random

import pytest
import sqlalchemy as sa

from placement.objects.claims import leases
from tests.db import lease
from tests.db.galera_pair import either_first, met
from tests.load.extensions.claiming import claiming, refused, releasing, request, results
from tests.load.storm import Call, Storm, claim, name, new, statuses

pytestmark = [pytest.mark.xdist_group("galera"), pytest.mark.long]


class Hosts:
    """Providers with one unit each of a class of their own."""

    def __init__(self, pair, number):
        self._pair, self.resource_class = pair, pair.named(Call("PUT", f"/resource_classes/{name('C')}"))
        self.uuids = [pair.provider(**{self.resource_class: 1}) for _ in range(number)]

    @property
    def query(self):
        return f"resources={self.resource_class}:1"

    def holders(self):
        """Return the consumer of each host."""
        pages = [self._pair.ask(Call("GET", f"/resource_providers/{one}/allocations")).body for one in self.uuids]
        return [consumer for page in pages for consumer in page["allocations"]]


@met
def test_one_device_is_picked_once(pair):
    hosts = Hosts(pair, 1)
    assert pair.meet(*(claiming(request(hosts.query)) for _ in range(2))) == [200, 409]


@met
@either_first
def test_a_device_goes_to_who_picks_it_or_to_who_claims_it(pair, order):
    hosts = Hosts(pair, 1)
    calls = [claiming(request(hosts.query)), claim({hosts.uuids[0]: {hosts.resource_class: 1}})]
    assert pair.meet(*calls[::order]) == ([200, 409] if order == 1 else [204, 409])


@met
@pytest.mark.parametrize("at_once", [False, True])
def test_who_is_overtaken_takes_the_next_place(pair, at_once):
    hosts = Hosts(pair, 4)
    calls = [claiming(*(request(hosts.query) for _ in range(2)), all_or_nothing=at_once) for _ in range(2)]
    assert pair.meet(*calls) == [200, 200]
    assert len({*hosts.holders()}) == 4


@met
def test_the_same_call_at_both_nodes_places_a_consumer_once(pair):
    hosts, consumer = Hosts(pair, 2), new()
    assert pair.meet(*[claiming(request(hosts.query, consumer))] * 2) == [200, 200]
    assert hosts.holders() == [consumer]
    assert pair.ask(Call("GET", f"/allocations/{consumer}")).body["consumer_generation"] == 1


@met
def test_two_that_name_each_other_are_apart(pair):
    hosts, consumers = Hosts(pair, 1), [new(), new()]
    host = hosts.uuids[0]
    more = {hosts.resource_class: 1, "VCPU": 2}
    body = {"resource_provider_generation": 1, "inventories": {one: {"total": 2} for one in more}}
    assert pair.ask(Call("PUT", f"/resource_providers/{host}/inventories", body)).status == 200
    assert pair.meet(*(claiming(request(hosts.query, one), apart_from=consumers) for one in consumers)) == [200, 409]


@met
@either_first
def test_a_consumer_moves_once_or_is_released(pair, order):
    hosts, consumer = Hosts(pair, 2), new()
    assert pair.ask(claiming(request(hosts.query, consumer))).status == 200
    move = claiming(request(hosts.query, consumer, keep=False, consumer_generation=1), apart_from=[consumer])
    found = pair.meet(*[move, releasing([consumer])][::order])
    assert found == ([200, 200] if order == 1 else [200, 409])
    assert hosts.holders() == []


# --- ends ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def slow_is_ahead(pair):
    """The clock of the slow node is two hours ahead: leases of an hour are over there, and not at the other node."""
    slow, _ = pair.databases

    def ahead(connection):
        connection.exec_driver_sql("SET timestamp = UNIX_TIMESTAMP(SYSDATE()) + 7200")

    for engine in {slow.engine, slow.reading_engine}:
        sa.event.listen(engine, "begin", ahead)
    yield
    for engine in {slow.engine, slow.reading_engine}:
        sa.event.remove(engine, "begin", ahead)
        engine.dispose()


def given_back(database):
    return database.write(leases.release_expired)


def leased(pair):
    """A consumer on one host, for an hour by the clock of the quick node."""
    hosts, consumer = Hosts(pair, 1), new()
    assert pair.ask(claim({hosts.uuids[0]: {hosts.resource_class: 1}}, consumer=consumer)).status == 204
    assert pair.quick("POST", f"/v1/claims/{consumer}/extend", None, {"expires_in": 3600}).status == 200
    pair.settle()
    return hosts, consumer


@met
def test_a_lease_that_was_extended_is_not_given_back(pair, slow_is_ahead):
    """By a node that did not see the extension."""
    hosts, consumer = leased(pair)
    extend = Call("POST", f"/v1/claims/{consumer}/extend", {"expires_in": None})
    assert pair.meet(extend, given_back) == [200, 0]
    assert hosts.holders() == [consumer]
    assert pair.ask(releasing([consumer])).status == 200


@met
def test_a_lease_is_given_back_once(pair):
    hosts, consumer = leased(pair)
    lease.expire(pair.databases[0], consumer)
    pair.settle()
    assert pair.meet(given_back, given_back) == [1, 0]
    assert hosts.holders() == []


# --- many ------------------------------------------------------------------------------------------------------------


class Nodes(Storm):
    """Clients of whom each thread asks another node with each request."""

    def __init__(self, pair):
        turn = itertools.cycle([pair.slow, pair.quick])
        self._ask = lambda *request: next(turn)(*request)
        self.history = []


def test_a_storm_at_both_nodes(pair):
    """Claims for more than there is, releases, and claims of Placement's clients: nothing is given twice."""
    hosts, nodes = Hosts(pair, 12), Nodes(pair)

    def client(seed):
        chance = random.Random(seed)
        for number in range(5):
            consumers = [new() for _ in range(3)]
            found = nodes.ask(
                *claiming(*(request(hosts.query, one) for one in consumers), all_or_nothing=bool(number % 2))
            )
            assert found.status in (200, 409), found
            nodes.ask(*claim({chance.choice(hosts.uuids): {hosts.resource_class: 1}}))
            nodes.ask(*releasing(consumers[1:]))

    nodes.together(*(lambda seed=seed: client(seed) for seed in range(4)))
    assert {event.answer.status for event in nodes.history} <= {200, 204, 409}, statuses(
        event.answer for event in nodes.history
    )
    pair.settle()
    rest = claiming(*(request(hosts.query) for _ in hosts.uuids))
    without = refused(results([pair.ask(rest)]))
    holders = hosts.holders()
    assert len(holders) == len({*holders}) == 12
    assert not without & {*holders}
