"""Concurrent clients of /v1/claims, beside clients of Placement (docs: v1-claims).

Claims never exceed a capacity, are never partial, and are not refused if they fit.  If only claims run, free capacity
shrinks: a refusal was wrong if the request still fits at the end.  After each storm the `storm` fixture looks for
contradictions in the responses, and for flaws in the database.
"""

from __future__ import annotations

import itertools
import random
import time

import pytest

from placement.extensions.v1.pick.strategy import Preference
from tests.children import until
from tests.load.extensions.claiming import (
    CONCURRENT_UPDATE,
    Hosts,
    claiming,
    refused_consumers,
    releasing,
    request,
    results,
)
from tests.load.storm import Call, claim, name, new, statuses
from tests.run_length import LONG

pytestmark = pytest.mark.every_database

ROUNDS = 10 if LONG else 1
CLIENTS = 8
STRATEGIES = (*(preference.value for preference in Preference), {"spread_over": "root"})

rounds = pytest.mark.parametrize("round_", range(ROUNDS))


# --- claims only: free capacity shrinks ------------------------------------------------------------------------------


@rounds
def test_single_claims_use_all_free_capacity(storm, round_):
    """Clients reduce their amount when refused; in the end no capacity is left."""
    hosts = Hosts(storm, *[5] * 12)

    def fill(chance):
        strategy = chance.choice(STRATEGIES)
        for amount in (3, 2, 1):
            for _ in range(12 * 5 + 1):
                entry = request(hosts.query(amount))
                [result] = results([storm.ask(*claiming(entry, strategy=strategy))])
                yield amount, result
                if result["status"] != 200:
                    break

    answers = storm.together(*(lambda seed=seed: [*fill(random.Random(seed))] for seed in range(CLIENTS)))
    outcomes = [*itertools.chain(*answers)]
    assert len(refused_consumers(result for _, result in outcomes)) == 3 * CLIENTS
    assert hosts.free() == [0] * 12
    for amount, result in outcomes:
        assert hosts.amount_of(result["consumer"]) == (amount if result["status"] == 200 else 0)


@rounds
def test_calls_for_several_consumers_refuse_only_what_does_not_fit(storm, round_):
    """Each call has several sizes and one of several strategies; together they exceed the capacity."""
    hosts, chance = Hosts(storm, *[7] * 20), random.Random(round_)
    amounts = {new(): chance.choice((1, 2, 3, 4)) for _ in range(24 * CLIENTS)}
    consumers = [*amounts]
    calls = [
        claiming(
            *(request(hosts.query(amounts[consumer]), consumer) for consumer in consumers[number::CLIENTS]),
            strategy=STRATEGIES[number % len(STRATEGIES)],
        )
        for number in range(CLIENTS)
    ]
    outcomes = [*results(storm.together(*calls))]
    assert {result["consumer"] for result in outcomes} == {*amounts}
    refused, free = refused_consumers(outcomes), hosts.free()
    assert refused
    assert [consumer for consumer in refused if amounts[consumer] <= free[0]] == []
    assert {consumer: hosts.amount_of(consumer) for consumer in amounts} == {
        consumer: 0 if consumer in refused else amount for consumer, amount in amounts.items()
    }


@rounds
def test_a_call_places_all_or_none(storm, round_):
    """Each call requests four times two units; a host of three units fits one of these."""
    hosts = Hosts(storm, *[3] * 22)
    calls = [
        claiming(*(request(hosts.query(2)) for _ in range(4)), all_or_nothing=True, strategy=STRATEGIES[number % 2])
        for number in range(CLIENTS)
    ]
    answers = storm.together(*calls)
    assert statuses(answers) == {200: 5, 409: CLIENTS - 5}
    for answer in answers:
        outcomes = [*results([answer])]
        assert {hosts.amount_of(result["consumer"]) for result in outcomes} == {2 if answer.status == 200 else 0}
        assert {result["status"] for result in outcomes} == {answer.status}
        refused_consumers(outcomes)


@rounds
def test_devices_are_claimed_until_no_node_has_both_a_device_and_a_port(storm, round_):
    """Each claim takes a device and a port of one node; some nodes have more devices, and some more ports."""
    device, port = name("DEVICE"), name("PORT")
    for class_ in (device, port):
        assert storm.ask("PUT", f"/resource_classes/{class_}").status == 201
    nodes = {}
    for _ in range(5):
        host = storm.provider()
        for devices, ports in ((1, 3), (4, 2)):
            node = storm.provider(parent=host)
            nodes[storm.provider(parent=node, **{device: devices}), storm.provider(parent=node, **{port: ports})] = 0
            assert storm.ask(*traits(storm, node)).status == 200
    query = (
        f"resources_D={device}:1&resources_P={port}:1&required_N=HW_NUMA_ROOT&same_subtree=_D,_P,_N&group_policy=none"
    )
    calls = [
        claiming(*(request(query) for _ in range(4)), strategy=STRATEGIES[number % 3]) for number in range(CLIENTS)
    ]
    outcomes = [*results(storm.together(*calls))]
    assert len(refused_consumers(outcomes)) == 4 * CLIENTS - 5 * 3
    for result in outcomes:
        if result["status"] == 200:
            [pair] = [(*mapped["_D"], *mapped["_P"]) for mapped in result["mappings"]]
            assert {*result["allocations"]} == {*pair}
            nodes[pair] += 1
    assert [*nodes.values()] == [1, 2] * 5


def traits(storm, provider):
    body = {"traits": ["HW_NUMA_ROOT"], "resource_provider_generation": storm.generation(provider)}
    return Call("PUT", f"/resource_providers/{provider}/traits", body)


# --- with other writers ----------------------------------------------------------------------------------------------


@rounds
def test_one_consumer_of_each_client_always_fits(storm, round_):
    """Each client has at most one consumer, and there is a unit for each: no claim may lack capacity.

    Some clients use the Placement API, choose a host themselves, and may find it full.
    """
    hosts, per_client = Hosts(storm, *[1] * (CLIENTS // 2), *[2] * (CLIENTS // 4)), 15 if LONG else 6

    def claim_anywhere(seed):
        for _ in range(per_client):
            consumer = new()
            call = claiming(request(hosts.query(), consumer), strategy=STRATEGIES[seed % 3])
            answers = []
            # A client that loses every attempt to others repeats its request.
            until(lambda: not is_overtaken(call, answers), f"{consumer} is always overtaken")  # noqa: B023
            yield answers[-1].status
            storm.ask(*(releasing([consumer]) if seed % 2 else Call("DELETE", f"/allocations/{consumer}")))

    def is_overtaken(call, answers):
        answers.append(storm.ask(*call))
        if answers[-1].status != 409:
            return False
        [result] = results(answers[-1:])
        assert result["error"]["code"] == CONCURRENT_UPDATE, result
        return True

    def claim_chosen_host(seed):
        chance = random.Random(seed)
        for _ in range(per_client):
            consumer, amounts = new(), {chance.choice([*hosts.totals]): {hosts.resource_class: 1}}
            answer = storm.ask(*claim(amounts, consumer=consumer))
            assert answer.status in (204, 409)
            storm.ask("DELETE", f"/allocations/{consumer}")

    works = [lambda seed=seed: [*claim_anywhere(seed)] for seed in range(CLIENTS - 2)]
    answers = storm.together(*works, *(lambda seed=seed: claim_chosen_host(seed) for seed in range(2)))
    assert answers[:-2] == [[200] * per_client] * (CLIENTS - 2)
    assert set(hosts.usage().values()) == {0}


@rounds
def test_moves_keep_the_amount_of_each_consumer(storm, round_):
    """The hosts are full except for one unit; a consumer's own amounts count as free capacity for its move."""
    hosts = Hosts(storm, *[2] * 6)
    consumers = [new() for _ in range(11)]
    storm.ask(*claiming(*(request(hosts.query(), consumer) for consumer in consumers)))
    assert [hosts.amount_of(consumer) for consumer in consumers] == [1] * 11

    def moves(own_consumers):
        for _ in range(4):
            for consumer in own_consumers:
                generation = storm.get(f"/v1/claims/{consumer}")["consumer_generation"]
                entry = request(hosts.query(), consumer, keep=False, consumer_generation=generation)
                yield storm.ask(*claiming(entry, strategy="random"))

    answers = storm.together(*(lambda position=position: [*moves(consumers[position::4])] for position in range(4)))
    outcomes = [*results(itertools.chain(*answers))]
    assert {(result["status"], result["outcome"]) for result in outcomes} == {(200, "moved")}
    assert [hosts.amount_of(consumer) for consumer in consumers] == [1] * 11
    assert hosts.free() == [1, 0, 0, 0, 0, 0]


@rounds
def test_one_move_of_many_from_the_same_generation_wins(storm, round_):
    hosts, consumer = Hosts(storm, *[1] * CLIENTS), new()
    assert storm.ask(*claiming(request(hosts.query(), consumer))).status == 200
    entry = request(hosts.query(), consumer, keep=False, consumer_generation=1)
    answers = storm.together(*[claiming(entry, apart_from=[consumer])] * CLIENTS)
    outcomes = [*results(answers)]
    # The other calls return the result of the successful move.
    assert sorted(result["outcome"] for result in outcomes) == ["held"] * (CLIENTS - 1) + ["moved"]
    assert storm.get(f"/v1/claims/{consumer}")["consumer_generation"] == 2
    assert sum(hosts.usage().values()) == 1


# --- the same consumer -----------------------------------------------------------------------------------------------


@rounds
def test_the_same_call_by_many_clients_claims_once_for_each_consumer(storm, round_):
    hosts, consumers = Hosts(storm, *[4] * CLIENTS), [new() for _ in range(10)]
    entries = [request(hosts.query(2), consumer) for consumer in consumers]
    granted = [*results(storm.together(*[claiming(*entries)] * CLIENTS))]
    assert {result["status"] for result in granted} == {200}
    outcomes = {consumer: sorted(r["outcome"] for r in granted if r["consumer"] == consumer) for consumer in consumers}
    assert {(*consumer_outcomes,) for consumer_outcomes in outcomes.values()} == {
        ("claimed", *["held"] * (CLIENTS - 1))
    }
    for consumer in consumers:
        places = {str(result["allocations"].keys()) for result in granted if result["consumer"] == consumer}
        assert len(places) == 1
        assert hosts.amount_of(consumer) == 2
    assert sum(hosts.usage().values()) == 20


@rounds
def test_one_of_different_first_claims_of_a_consumer_wins(storm, round_):
    """Some claim through the v1 API, and some through the Placement API."""
    hosts, consumer = Hosts(storm, *[9] * 4), new()
    calls = [claiming(request(hosts.query(amount), consumer)) for amount in range(1, CLIENTS + 1)]
    calls += [claim({host: {hosts.resource_class: 9}}, consumer=consumer) for host in hosts.totals]
    answers = storm.together(*calls)
    assert sum(answer.status < 300 for answer in answers) == 1
    assert {answer.status for answer in answers} <= {200, 204, 409}
    winner = [answer.status < 300 for answer in answers].index(True)
    assert hosts.amount_of(consumer) == (winner + 1 if winner < CLIENTS else 9)


# --- consumers that name each other ----------------------------------------------------------------------------------


@rounds
def test_consumers_kept_apart_get_a_tree_each(storm, round_):
    """Concurrent calls, one for each consumer: none sees the allocations of another."""
    hosts, consumers = Hosts(storm, *[CLIENTS] * (CLIENTS - 2)), [new() for _ in range(CLIENTS)]
    calls = [
        claiming(request(hosts.query(), consumer), apart_from=consumers, strategy="pack") for consumer in consumers
    ]
    outcomes = [*results(storm.together(*calls))]
    assert len(refused_consumers(outcomes)) == 2
    assert [*hosts.usage().values()] == [1] * (CLIENTS - 2)


@rounds
def test_consumers_kept_together_share_a_tree(storm, round_):
    hosts, consumers = Hosts(storm, *[CLIENTS] * 5), [new() for _ in range(CLIENTS)]
    calls = [claiming(request(hosts.query(), consumer), together_with=consumers) for consumer in consumers]
    assert refused_consumers(results(storm.together(*calls))) == set()
    assert len({hosts.host_of(consumer) for consumer in consumers}) == 1


# --- expiry ----------------------------------------------------------------------------------------------------------


@rounds
def test_each_of_many_consumers_is_released_once(storm, round_):
    hosts, consumers = Hosts(storm, *[10] * 6), [new() for _ in range(30)]
    storm.ask(*claiming(*(request(hosts.query(), consumer) for consumer in consumers)))
    mixed = [random.Random(seed).sample(consumers, 20) for seed in range(CLIENTS)]
    answers = storm.together(*map(releasing, [*mixed, consumers]))
    assert statuses(answers) == {200: CLIENTS + 1}
    released = [consumer for answer in answers for consumer in answer.body["released"]]
    assert sorted(released) == sorted(consumers)
    assert set(hosts.usage().values()) == {0}


@rounds
def test_expired_claims_free_their_capacity_at_once_and_are_released_once(storm, round_, counter):
    """Clients claim for a second each and never release, together more than the capacity, until each has succeeded."""
    hosts, expired = Hosts(storm, *[2] * 6), counter("placement_leases_expired_total")
    before = expired()

    def lease(chance):
        leases_granted = 0
        while leases_granted < (8 if LONG else 2):
            [result] = results([storm.ask(*claiming(request(hosts.query(2)), expires_in=1))])
            leases_granted += result["status"] == 200
            yield result
            time.sleep(chance.uniform(0.1, 0.6))

    answers = storm.together(*(lambda seed=seed: [*lease(random.Random(seed))] for seed in range(CLIENTS)))
    outcomes = [*itertools.chain(*answers)]
    leases = len(outcomes) - len(refused_consumers(outcomes))
    entries = [request(hosts.query(2)) for _ in hosts.totals]
    # The whole capacity is free, whether or not a worker has released the expired claims.
    until(lambda: storm.ask(*claiming(*entries, all_or_nothing=True)).status == 200)
    assert hosts.free() == [0] * 6
    # The worker that has released them counts after its transaction.
    until(lambda: expired() - before >= leases)
    assert expired() - before == leases


@rounds
def test_an_extension_and_an_expiry_exclude_each_other(storm, round_):
    """A lease extended in time remains, and any other expires while other clients keep trying to claim its capacity."""
    hosts, consumers = Hosts(storm, *[1] * CLIENTS), [new() for _ in range(CLIENTS)]
    storm.ask(*claiming(*(request(hosts.query(), consumer) for consumer in consumers), expires_in=1))
    extended = []

    def extend(consumer, seconds):
        time.sleep(seconds)
        answer = storm.ask("POST", f"/v1/claims/{consumer}/extend", {"expires_in": None})
        assert answer.status in (200, 404), answer
        extended.append(answer.status == 200)
        return extended[-1]

    def take():
        while len(extended) < CLIENTS:
            yield storm.ask(*claiming(request(hosts.query())))

    works = [
        lambda consumer=consumer, position=position: extend(consumer, 0.85 + position * 0.3 / CLIENTS)
        for position, consumer in enumerate(consumers)
    ]
    *extensions, first, second = storm.together(*works, lambda: [*take()], lambda: [*take()])
    last = [storm.ask(*claiming(*(request(hosts.query()) for _ in hosts.totals)))]
    assert [hosts.amount_of(consumer) for consumer in consumers] == extensions
    takeovers = [result for result in results([*first, *second, *last]) if result["status"] == 200]
    assert len(takeovers) == extensions.count(False)
    assert hosts.free() == [0] * CLIENTS
