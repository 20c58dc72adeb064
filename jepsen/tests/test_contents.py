"""Check ``contents``: contents of providers with and without an explaining write."""

from __future__ import annotations

import random

import pytest

from jepsen.checker.contents import contents
from jepsen.tests.handwritten_histories import call, history, loss, violated
from jepsen.tests.test_calls import Recorded

P = "c1000000-0000-4000-8000-000000000001"
PATH = f"/resource_providers/{P}"
A, B, C = (f"HW_CPU_X86_{name}" for name in ("AVX", "MMX", "SSE"))


def create(began, ended, name="p"):
    return call(began, ended, "POST", "/resource_providers", {"name": name, "uuid": P}, reply={"uuid": P})


def delete(began, ended, below="", status=204):
    return call(began, ended, "DELETE", f"{PATH}{below}", status=status)


def rename(began, ended, name):
    return call(began, ended, "PUT", PATH, {"name": name}, reply={"generation": 0})


def put(began, ended, given, kind, content, status=200, raised=1):
    reply = {"resource_provider_generation": given + raised}
    return call(
        *(began, ended, "PUT", f"{PATH}/{kind}", {"resource_provider_generation": given, kind: content}),
        status=status, reply=reply,
    )  # fmt: skip


def traits(began, ended, given, *names, **more):
    return put(began, ended, given, "traits", [*names], **more)


def stock(began, ended, given, **totals):
    return put(began, ended, given, "inventories", records(totals))


def records(totals):
    return {name: {"total": total} for name, total in totals.items()}


def one_class(began, ended, given, name, total):
    body, path = {"resource_provider_generation": given, "total": total}, f"{PATH}/inventories/{name}"
    return call(began, ended, "PUT", path, body, reply={"resource_provider_generation": given + 1})


def add(began, ended, name, total, shown=None):
    """Add an inventory; the service ignores the generation in the body."""
    body = {"resource_provider_generation": 0, "resource_class": name, "total": total}
    reply = {"resource_provider_generation": shown}
    return call(began, ended, "POST", f"{PATH}/inventories", body, status=201, reply=reply)


def reshape(began, ended, given, **totals):
    body = {"resource_provider_generation": given, "inventories": records(totals)}
    return call(began, ended, "POST", "/reshaper", {"inventories": {P: body}, "allocations": {}}, status=204)


def old_aggregates(began, ended, *uuids):
    return call(began, ended, "PUT", f"{PATH}/aggregates", [*uuids], minor=1, reply={"aggregates": [*uuids]})


def get(began, ended, generation, kind, content):
    reply = {"resource_provider_generation": generation, kind: content}
    return call(began, ended, "GET", f"{PATH}/{kind}", reply=reply)


def shows(began, ended, generation, *names):
    return get(began, ended, generation, "traits", [*names])


def has(began, ended, generation, **totals):
    """Return a read of inventories with all fields."""
    rest = {"reserved": 0, "min_unit": 1, "max_unit": 2147483647, "step_size": 1, "allocation_ratio": 1.0}
    return get(began, ended, generation, "inventories", {name: {"total": n} | rest for name, n in totals.items()})


def named(began, ended, name):
    return call(began, ended, "GET", PATH, reply={"uuid": P, "name": name, "generation": 0})


def listed(began, ended, name):
    entries = [{"uuid": P, "name": name, "generation": 0}]
    return call(began, ended, "GET", "/resource_providers", reply={"resource_providers": entries})


def is_wrong(*operations, **more):
    invariants = violated(contents, *operations, **more)
    assert invariants <= {"contents as written"}
    return bool(invariants)


NEW = create(0, 1)

WRONG = {
    "a missing write": [NEW, traits(2, 3, 0, A), shows(4, 5, 1)],
    "unwritten contents": [NEW, traits(2, 3, 0, A), shows(4, 5, 1, A, B)],
    "contents of a new provider": [NEW, shows(4, 5, 0, A)],
    "a refused write": [NEW, traits(2, 3, 0, A, status=409), shows(4, 5, 0, A)],
    "a replaced write": [NEW, traits(2, 3, 0, A), traits(4, 5, 1, B), shows(6, 7, 2, A)],
    "older contents with a newer generation": [
        *(NEW, traits(2, 3, 0, A), traits(4, 90, 1, B), shows(6, 7, 2, A)),
    ],
    "an open write that stated a lower generation": [NEW, traits(2, None, 0, A), traits(4, 5, 1, B), shows(6, 7, 2, A)],
    "concurrent writes in the wrong order": [
        *(NEW, traits(2, 90, 1, B), traits(3, 90, 0, A), shows(100, 101, 2, A)),
    ],
    "a write that begins after the read": [NEW, shows(2, 3, 0, A), traits(4, 5, 0, A)],
    "a missing inventory": [NEW, stock(2, 3, 0, VCPU=4, DISK_GB=8), has(4, 5, 1, VCPU=4)],
    "an unwritten inventory": [NEW, has(4, 5, 0, VCPU=4)],
    "a replaced inventory": [
        *(NEW, stock(2, 3, 0, VCPU=4), stock(4, 5, 1, DISK_GB=8), has(6, 7, 2, VCPU=4, DISK_GB=8)),
    ],
    "a wrong amount": [NEW, stock(2, 3, 0, VCPU=4), has(4, 5, 1, VCPU=5)],
    "an unchanged value of a changed class": [
        NEW,
        stock(2, 3, 0, VCPU=4),
        one_class(4, 5, 1, "VCPU", 6),
        has(6, 7, 2, VCPU=4),
    ],
    "a missing added class": [NEW, add(2, 3, "VCPU", 4, 1), has(4, 5, 1)],
    "a deleted class": [
        *(NEW, stock(2, 3, 0, VCPU=4), delete(4, 5, "/inventories/VCPU"), has(6, 7, 2, VCPU=4)),
    ],
    "deleted classes": [
        *(NEW, stock(2, 3, 0, VCPU=4), delete(4, 5, "/inventories"), has(6, 7, 2, VCPU=4)),
    ],
    "deleted traits": [NEW, traits(2, 3, 0, A), delete(4, 5, "/traits"), shows(6, 7, 2, A)],
    "a class removed by a reshape": [NEW, stock(2, 3, 0, VCPU=4), reshape(4, 5, 1), has(6, 7, 2, VCPU=4)],
    "aggregates without a generation": [NEW, old_aggregates(2, 3, "x"), get(4, 5, 1, "aggregates", [])],
    "aggregates of an earlier life": [
        *(NEW, put(2, 3, 0, "aggregates", ["x"]), delete(4, 5), create(6, 7), get(8, 9, 0, "aggregates", ["x"])),
    ],
    "traits of an earlier life": [NEW, traits(2, 3, 0, A), delete(4, 5), create(6, None), shows(8, 9, 0, A)],
    "traits emptied by a deletion of the provider": [NEW, traits(2, 3, 0, A), delete(4, None), shows(6, 7, 1)],
    "a changed name": [NEW, rename(2, 3, "q"), named(4, 5, "p")],
    "an unwritten name": [NEW, named(4, 5, "q")],
    "a changed name in a list": [NEW, rename(2, 3, "q"), listed(4, 5, "p")],
    "a name of an earlier life": [NEW, delete(2, 3), create(4, 5, "q"), named(6, 7, "p")],
}
RIGHT = {
    "a new provider": [NEW, has(2, 3, 0), shows(2, 3, 0), get(2, 3, 0, "aggregates", []), stock(4, 5, 0, VCPU=4)],
    "the last write": [NEW, traits(2, 3, 0, A), traits(4, 5, 1, B), shows(6, 7, 2, B), shows(8, 9, 5, B)],
    "the states before and after a concurrent write": [
        *(NEW, traits(2, 90, 0, A), shows(4, 5, 0), shows(6, 7, 1, A)),
    ],
    "an older generation with newer contents": [NEW, traits(2, 90, 0, A), shows(4, 5, 0, A)],
    "an open write": [NEW, traits(2, None, 0, A), shows(4, 5, 0), shows(6, 7, 1, A)],
    "an open write after an acknowledged one": [
        *(NEW, traits(2, None, 1, A), traits(4, 5, 0, B), shows(6, 7, 2, A)),
    ],
    "traits that do not change": [
        *(NEW, traits(2, 3, 0, A), traits(4, 5, 1, A, raised=0), shows(6, 7, 1, A)),
    ],
    "one class of several": [
        *(NEW, stock(2, 3, 0, VCPU=4), one_class(4, 5, 1, "DISK_GB", 6), add(6, 7, "MEMORY_MB", 8)),
        *(has(8, 9, 3, VCPU=4, DISK_GB=6, MEMORY_MB=8), delete(10, 11, "/inventories/VCPU")),
        has(12, 13, 4, DISK_GB=6, MEMORY_MB=8),
    ],
    "an open deletion of a class": [
        *(NEW, stock(2, 3, 0, VCPU=4), delete(4, None, "/inventories/VCPU"), has(6, 7, 1, VCPU=4), has(8, 9, 2)),
    ],
    "an open write whose generation is ignored": [NEW, add(2, None, "VCPU", 4), stock(4, 5, 1), has(6, 7, 2, VCPU=4)],
    "an open reshape": [NEW, reshape(2, None, 0, VCPU=4), stock(4, 5, 0), has(6, 7, 3, VCPU=4), has(8, 9, 3)],
    "a generation reused in another life": [
        *(NEW, traits(2, 3, 0, A), traits(4, 5, 1, B), delete(6, 7), create(8, 9), traits(10, 11, 0, C)),
        shows(12, 13, 2, C),
    ],
    "another life that may have begun": [
        *(NEW, traits(2, 3, 0, A), delete(4, None), create(6, None), shows(8, 9, 1, A), shows(10, 11, 0)),
    ],
    "aggregates without a generation": [
        *(NEW, put(2, 3, 0, "aggregates", ["x"]), old_aggregates(4, 90, "y")),
        *(get(6, 7, 1, "aggregates", ["x"]), get(8, 9, 1, "aggregates", ["y"])),
        call(10, 11, "GET", f"{PATH}/aggregates", minor=1, reply={"aggregates": ["x"]}),
    ],
    "names": [NEW, named(2, 3, "p"), rename(4, 20, "q"), named(5, 6, "p"), listed(7, 8, "q"), named(21, 22, "q")],
    "a dry run": [
        *(NEW, call(2, 3, "PUT", f"{PATH}/traits?dry_run=true", {"traits": [A], "resource_provider_generation": 0})),
        shows(4, 5, 0),
    ],
    "a provider from before the run": [traits(2, 3, 0, A), shows(4, 5, 1, B)],
    "a provider of a node": [
        *(NEW, call(2, 3, "POST", "/baremetal/v1/nodes", {"uuid": P}, status=201), has(4, 5, 0, CUSTOM_GOLD=1)),
    ],
}


@pytest.mark.parametrize("name", WRONG)
def test_contents_without_a_write_are_violations(name):
    assert is_wrong(*WRONG[name])


@pytest.mark.parametrize("name", RIGHT)
def test_written_contents_violate_nothing(name):
    assert not is_wrong(*RIGHT[name])


def test_the_ratio_may_be_stored_in_single_precision():
    body = {"VCPU": {"total": 4, "allocation_ratio": 1.1}}
    stocked = put(2, 3, 0, "inventories", body)
    for ratio, wrong in [(1.1, False), (1.10000002384186, False), (1.2, True)]:
        shown = get(4, 5, 1, "inventories", {"VCPU": {"total": 4, "allocation_ratio": ratio}})
        assert is_wrong(NEW, stocked, shown) == wrong


def test_writes_before_a_loss_may_survive():
    before = [NEW, traits(2, 3, 0, A), traits(4, 5, 1, B)]
    for names, wrong in [((), False), ((A,), False), ((B,), False), ((C,), True)]:
        assert is_wrong(*before, shows(30, 31, 1, *names), events=[loss(10, 20)]) == wrong
    # The lost generation is used again.
    assert not is_wrong(*before, traits(22, 23, 0, C), shows(30, 31, 2, C), events=[loss(10, 20)])
    assert is_wrong(*before, traits(22, 23, 0, C), shows(30, 31, 1, A), events=[loss(10, 20)])
    # Its response may come late.
    assert not is_wrong(NEW, traits(15, 23, 0, A), shows(30, 31, 0), events=[loss(10, 20)])


def test_a_generation_reused_after_a_loss_does_not_date_earlier_reads():
    before = [NEW, traits(2, 3, 0, A), traits(4, 5, 1, B), shows(7, 9, 2, B)]
    assert not is_wrong(*before, traits(22, 23, 0, C), events=[loss(10, 20)])
    # An operation that began before the loss writes it after the loss.
    assert not is_wrong(*before, traits(8, 23, 0, C), events=[loss(10, 20)])


def test_a_read_during_a_loss_shows_the_state_before_or_after_it():
    during = [NEW, traits(2, 3, 0, A), traits(22, 23, 0, B), shows(15, 30, 1, A)]
    assert not is_wrong(*during, events=[loss(10, 20)])
    assert is_wrong(*during)


def test_a_violation_names_the_operations_that_show_it():
    operations = [
        NEW,
        traits(2, 3, 0, A),
        traits(4, 5, 1, B),
        traits(4, 90, 2, C),
        shows(6, 7, 2, A),
        shows(8, 9, 2, B),
    ]
    [violation] = contents(history(*operations))
    assert violation.sentence == f"provider {P}: traits with generation 2 is [{A}], expected [{B}] or [{C}]"
    assert violation.operations == [1, 2, 3, 4]


def test_operations_of_the_real_service_violate_nothing(database):
    recorded, rng = Recorded(database), random.Random(5)
    host = recorded.host(6)
    path, classes = f"/resource_providers/{host}", ("VCPU", "MEMORY_MB", "DISK_GB")
    for _ in range(150):
        shown = recorded("GET", f"{path}/inventories").reply
        guarded = {"resource_provider_generation": shown["resource_provider_generation"] - rng.choice([0, 0, 1])}
        class_name, total = rng.choice(classes), rng.randint(1, 9)
        totals = records({name: total for name in classes if rng.random() < 0.5})
        inventories = {**guarded, "inventories": totals}
        method, below, body = rng.choice(
            [
                ("PUT", "/inventories", inventories),
                ("POST", "/inventories", {"resource_class": class_name, "total": total, "allocation_ratio": 1.1}),
                ("PUT", f"/inventories/{class_name}", {**guarded, "total": total}),
                ("DELETE", f"/inventories/{class_name}", None),
                ("DELETE", "/inventories", None),
                ("PUT", "/traits", {**guarded, "traits": rng.sample([A, B, C], 2)}),
                ("DELETE", "/traits", None),
                ("PUT", "/aggregates", {**guarded, "aggregates": [host]}),
                ("PUT", "", {"name": f"name {total}"}),
                ("POST", "/reshaper", {"inventories": {host: inventories}, "allocations": {}}),
            ]
        )
        recorded(method, below if below == "/reshaper" else f"{path}{below}", body)
        for about in ("", "/inventories", "/traits", "/aggregates"):
            recorded("GET", f"{path}{about}")
    assert contents(history(*recorded.operations)) == []
    missing = [
        operation
        for operation in recorded.operations
        if operation.method == "GET" or operation.path != f"{path}/inventories"
    ]
    assert contents(history(*missing))
