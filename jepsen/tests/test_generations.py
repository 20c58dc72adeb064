"""Check ``generations``: each rule is violated by a handwritten history, and similar correct histories violate none."""

from __future__ import annotations

import random
import uuid

import pytest

from jepsen.checker import linearizable
from jepsen.checker.generations import by_provider, generations
from jepsen.tests.handwritten_histories import call, error, history, loss, violations
from jepsen.tests.test_calls import RecordingClient, claim_body
from jepsen.tests.test_consumers import C, D, P, Q, claim, result, send_random_request

PATH = f"/resource_providers/{P}"
UNKNOWN = f"Allocation for resource provider '{P}' that does not exist."
PARENT = error("Unable to create resource provider 'q': parent provider UUID does not exist.")
STALE = "resource provider generation conflict"


def create(began, ended, generation=0):
    body = {"name": "p", "uuid": P}
    return call(began, ended, "POST", "/resource_providers", body, reply={"uuid": P, "generation": generation})


def put(began, ended, generation, shown_generation=None, contents="inventories", **more):
    """Replace the inventories, or other contents, with a generation."""
    reply = {"resource_provider_generation": generation + 1 if shown_generation is None else shown_generation}
    body = {"resource_provider_generation": generation, "inventories": {}}
    return call(began, ended, "PUT", f"{PATH}/{contents}", body, **{"reply": reply, **more})


def stock(name):
    body = {"resource_provider_generation": 0, "inventories": {name: {"total": 8}}}
    return call(12, 14, "PUT", f"{PATH}/inventories", body, reply={"resource_provider_generation": 1})


def stale(began, ended, generation):
    return put(began, ended, generation, status=409, reply=error(STALE, "placement.concurrent_update"))


def get(began, ended, generation):
    return call(began, ended, "GET", PATH, reply={"generation": generation})


def missing(began, ended):
    return call(began, ended, "GET", PATH, status=404, reply=error("missing"))


def delete(began, ended, status=204):
    return call(began, ended, "DELETE", PATH, status=status, reply=None if status == 204 else error("missing"))


def use(began, ended, consumer=C, amount=1, provider=P):
    return call(began, ended, "PUT", f"/allocations/{consumer}", claim_body(provider, amount), status=204)


def is_wrong(*operations, **more):
    invariants = violations(generations, *operations, **more)
    assert invariants <= {"generations: linearizable"}
    return bool(invariants)


NEW = create(0, 10)

WRONG = {
    "a stale read": [NEW, put(20, 30, 0), get(40, 50, 0)],
    "an unwritten generation": [NEW, get(40, 50, 3)],
    "a generation that goes back": [NEW, put(20, 90, 0), get(30, 40, 1), get(50, 60, 0)],
    "two writes with one generation": [NEW, put(20, 30, 0), put(25, 35, 0)],
    "a write that raises by two": [NEW, put(20, 30, 0, 2)],
    "a write that raises nothing": [NEW, put(20, 30, 0, 0)],
    "a conflict with the actual generation": [NEW, stale(20, 30, 0)],
    "a claim that raises nothing": [NEW, use(20, 30), get(40, 50, 0)],
    "a claim that raises by two": [NEW, use(20, 30), get(40, 50, 2)],
    "claims one after the other, counted once": [NEW, use(20, 30), use(40, 50, D), get(60, 70, 1)],
    "an open claim counted twice": [NEW, use(20, None), get(40, 50, 2)],
    "a new provider with a nonzero generation": [create(0, 10, 5), get(20, 30, 5)],
    "present after its deletion": [NEW, delete(20, 30), get(40, 50, 0)],
    "missing before its deletion": [NEW, missing(40, 50)],
    "deleted twice": [NEW, delete(20, 30), delete(40, 50)],
    "nothing to delete": [NEW, delete(20, 30, 404)],
    "created twice": [NEW, create(20, 30)],
}
RIGHT = {
    "a conflict during a write": [NEW, put(20, 90, 0), stale(30, 40, 0)],
    "joined claims": [NEW, use(20, 50), use(30, 60, D), get(70, 80, 1)],
    "concurrent claims, each by itself": [NEW, use(20, 50), use(30, 60, D), get(70, 80, 2)],
    "an open claim": [NEW, use(20, None), get(40, 50, 0), get(60, 70, 1)],
    "an open claim that no response shows": [NEW, put(12, 14, 0), use(20, None), stale(30, 40, 1), delete(50, 60)],
    "an open write": [NEW, put(20, None, 0), get(40, 50, 0), get(60, 70, 1)],
    "another provider": [NEW, use(20, 30, provider=Q), get(40, 50, 0)],
    "a new provider with the same uuid": [
        NEW,
        put(12, 14, 0),
        delete(20, 30),
        missing(40, 50),
        create(60, 70),
        get(80, 90, 0),
    ],
    "a provider that never existed": [missing(0, 10), delete(20, 30, 404), missing(40, 50)],
    "a provider from before the run": [get(0, 10, 41), put(20, 30, 41), get(40, 50, 42)],
    "traits that do not change": [NEW, put(20, 30, 0, 0, contents="traits"), put(40, 50, 0, 1, contents="traits")],
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_histories_are_violations(name):
    assert is_wrong(*WRONG[name])


@pytest.mark.parametrize("name", RIGHT)
def test_correct_histories_violate_nothing(name):
    assert not is_wrong(*RIGHT[name])


def test_joined_claims_overlap_each_other():
    """The first and the last of three successive claims cannot belong to one transaction."""
    first, middle, last = use(20, 40), use(30, 60, D), use(50, 70, Q)
    assert is_wrong(NEW, first, middle, last, get(80, 90, 1))
    assert not is_wrong(NEW, first, middle, last, get(80, 90, 2))


def test_a_write_between_claims_separates_them():
    claims = use(20, 90), use(50, 90, D)
    assert not is_wrong(NEW, *claims, get(100, 110, 1))
    assert is_wrong(NEW, *claims, put(30, 40, 1), get(100, 110, 2))
    assert not is_wrong(NEW, *claims, put(30, 40, 1), get(100, 110, 3))


def test_a_v1_claim_shows_the_generation():
    assert not is_wrong(NEW, claim(20, 30, result(1)))
    assert is_wrong(NEW, put(12, 14, 0), claim(20, 30, result(1)))
    open_claim = claim(20, None)
    assert not is_wrong(NEW, stock("VCPU"), open_claim, get(40, 50, 1), get(60, 70, 2))
    assert is_wrong(NEW, stock("VCPU"), open_claim, get(40, 50, 3))


def test_an_open_v1_claim_uses_no_provider_without_its_classes():
    open_claim, read = claim(20, None), get(40, 50, 2)
    assert not is_wrong(NEW, stock("VCPU"), open_claim, read)
    assert is_wrong(NEW, stock("DISK_GB"), open_claim, read)
    # The classes of a provider of an earlier run are unknown.
    assert not is_wrong(get(0, 10, 0), stock("DISK_GB"), open_claim, read)


def test_a_search_without_a_verdict_is_undecided(monkeypatch):
    monkeypatch.setattr(linearizable, "BOUND", 3)
    monkeypatch.setattr(linearizable, "BOUND_PER_OPERATION", 0)
    [violation] = generations(history(NEW, use(20, 90), put(30, 80, 0), put(30, 80, 1), get(100, 110, 3)))
    assert violation.undecided
    assert violation.invariant == "generations: undecided"


def test_emptying_a_consumer_may_raise_its_providers():
    emptied = call(40, 50, "PUT", f"/allocations/{C}", claim_body(P, 0, 1), status=204)
    for generation, wrong in [(1, False), (2, False), (3, True)]:
        assert is_wrong(NEW, use(20, 30), emptied, get(60, 70, generation)) == wrong
    assert is_wrong(NEW, use(20, 30, provider=Q), emptied, get(60, 70, 1))


def test_a_provider_used_and_left_by_one_request_is_raised_once():
    joint_write = call(40, 50, "POST", "/allocations", {C: claim_body(P, 0, 1), D: claim_body(P)}, status=204)
    assert not is_wrong(NEW, use(20, 30), joint_write, get(60, 70, 2))
    assert is_wrong(NEW, use(20, 30), joint_write, get(60, 70, 3))


def test_a_reshape_raises_by_its_steps():
    body = {"inventories": {P: {"resource_provider_generation": 0, "inventories": {"VCPU": {"total": 1}}}}}
    for claims, raised in [({}, 2), ({C: claim_body(P)}, 3)]:
        reshaped = call(20, 30, "POST", "/reshaper", {**body, "allocations": claims}, status=204)
        assert not is_wrong(NEW, reshaped, get(40, 50, raised))
        assert is_wrong(NEW, reshaped, get(40, 50, 1))
        assert is_wrong(NEW, put(12, 14, 0), reshaped)


def test_a_refused_reshape_shows_the_generation():
    body = {"inventories": {P: {"resource_provider_generation": 5, "inventories": {}}}, "allocations": {}}

    def refusal(actual):
        reply = error(f"{STALE} for provider {P}: actual: {actual}, given: 5", "placement.concurrent_update")
        return call(20, 30, "POST", "/reshaper", body, status=409, reply=reply)

    assert not is_wrong(NEW, refusal(0))
    assert is_wrong(NEW, refusal(1))
    assert is_wrong(get(0, 10, 5), refusal(5))


@pytest.mark.parametrize(
    "refusal",
    [
        call(20, 30, "PUT", f"/allocations/{C}", claim_body(P), status=400, reply=error(UNKNOWN)),
        call(20, 30, "POST", "/allocations", {C: claim_body(P), D: claim_body(Q)}, status=400, reply=error(UNKNOWN)),
        call(20, 30, "POST", "/resource_providers", {"name": "q", "parent_provider_uuid": P}, status=400, reply=PARENT),
        call(20, 30, "PUT", f"/resource_providers/{Q}", {"parent_provider_uuid": P}, status=400, reply=PARENT),
    ],
)
def test_existing_providers_are_not_refused_as_unknown(refusal):
    assert is_wrong(NEW, refusal)
    assert not is_wrong(refusal)
    assert not is_wrong(create(25, 35), refusal)
    assert not is_wrong(NEW, delete(12, 22), refusal)
    assert not is_wrong(NEW, delete(12, None), refusal)


def test_a_loss_may_restore_any_earlier_generation():
    operations = [NEW, put(20, 30, 0), put(40, 50, 1)]
    for generation, wrong in [(0, False), (1, False), (2, False), (3, True)]:
        assert is_wrong(*operations, get(100, 110, generation), events=[loss(60, 70)]) == wrong
    assert not is_wrong(*operations, missing(100, 110), events=[loss(60, 70)])
    assert is_wrong(*operations, missing(100, 110))
    assert is_wrong(*operations, get(100, 110, 1), get(120, 130, 2), events=[loss(60, 70)])
    assert not is_wrong(*operations, get(100, 110, 1), put(120, 130, 1), events=[loss(60, 70)])


def test_a_loss_may_restore_an_earlier_life():
    earlier = [NEW, put(20, 30, 0), put(30, 40, 1), delete(50, 55), create(56, 60)]
    assert not is_wrong(*earlier, get(100, 110, 2), events=[loss(45, 70)])
    assert is_wrong(*earlier, get(100, 110, 2))


def test_providers_of_nodes_are_not_checked():
    body = {"uuid": P, "driver": "ipmi", "resource_class": "gold"}
    node = call(12, 14, "POST", "/baremetal/v1/nodes", body, status=201, reply={"uuid": P})
    assert not is_wrong(*WRONG["a stale read"], node)


def test_operations_of_the_real_service_violate_nothing(database):
    client, rng = RecordingClient(database), random.Random(3)
    hosts, names = [client.host(6) for _ in range(2)], [str(uuid.uuid4()) for _ in range(3)]
    for _ in range(200):
        send_random_request(client, rng, hosts, names)
        host = rng.choice(hosts)
        path, generation = f"/resource_providers/{host}", client("GET", f"/resource_providers/{host}").reply
        guarded = {"resource_provider_generation": generation["generation"] - rng.choice([0, 0, 1])}
        match rng.randrange(4):
            case 0:
                client("PUT", f"{path}/inventories", {**guarded, "inventories": {"VCPU": {"total": 6}}})
            case 1:
                client("PUT", f"{path}/traits", {**guarded, "traits": rng.choice([[], ["HW_CPU_X86_AVX"]])})
            case 2:
                claims = {rng.choice(names): claim_body(host, rng.randrange(2), rng.choice([None, 1]))}
                inventories = {host: {**guarded, "inventories": {"VCPU": {"total": 6}}}}
                client("POST", "/reshaper", {"inventories": inventories, "allocations": claims})
    succeeded = {
        operation.path.rpartition("/")[2] for operation in client.operations if operation.succeeded and operation.body
    }
    assert succeeded >= {"inventories", "traits", "reshaper"}
    assert generations(history(*client.operations)) == []
    calls = by_provider(client.operations)
    assert all(len(calls[host]) > 100 for host in hosts)
