"""Check ``contents``: contents of providers with and without an explaining write."""

from __future__ import annotations

import random

import pytest

from jepsen.checker.contents import contents
from jepsen.tests.handwritten_histories import call, history, loss, violations
from jepsen.tests.test_calls import RecordingClient

P = "c1000000-0000-4000-8000-000000000001"
PATH = f"/resource_providers/{P}"
A, B, C = (f"HW_CPU_X86_{name}" for name in ("AVX", "MMX", "SSE"))


def create(began, ended, name="p"):
    return call(began, ended, "POST", "/resource_providers", {"name": name, "uuid": P}, reply={"uuid": P})


def delete(began, ended, below="", status=204):
    return call(began, ended, "DELETE", f"{PATH}{below}", status=status)


def rename(began, ended, name):
    return call(began, ended, "PUT", PATH, {"name": name}, reply={"generation": 0})


def put(began, ended, generation, kind, content, status=200, raised=1):
    reply = {"resource_provider_generation": generation + raised}
    return call(
        *(began, ended, "PUT", f"{PATH}/{kind}", {"resource_provider_generation": generation, kind: content}),
        status=status, reply=reply,
    )  # fmt: skip


def traits(began, ended, generation, *names, **more):
    return put(began, ended, generation, "traits", [*names], **more)


def stock(began, ended, generation, **totals):
    return put(began, ended, generation, "inventories", records(totals))


def records(totals):
    return {name: {"total": total} for name, total in totals.items()}


def one_class(began, ended, generation, name, total):
    body, path = {"resource_provider_generation": generation, "total": total}, f"{PATH}/inventories/{name}"
    return call(began, ended, "PUT", path, body, reply={"resource_provider_generation": generation + 1})


def add(began, ended, name, total, generation=None):
    """Add an inventory; the service ignores the generation in the body."""
    body = {"resource_provider_generation": 0, "resource_class": name, "total": total}
    reply = {"resource_provider_generation": generation}
    return call(began, ended, "POST", f"{PATH}/inventories", body, status=201, reply=reply)


def reshape(began, ended, generation, **totals):
    body = {"resource_provider_generation": generation, "inventories": records(totals)}
    return call(began, ended, "POST", "/reshaper", {"inventories": {P: body}, "allocations": {}}, status=204)


def old_aggregates(began, ended, *uuids):
    return call(began, ended, "PUT", f"{PATH}/aggregates", [*uuids], minor=1, reply={"aggregates": [*uuids]})


def get(began, ended, generation, kind, content):
    reply = {"resource_provider_generation": generation, kind: content}
    return call(began, ended, "GET", f"{PATH}/{kind}", reply=reply)


def get_traits(began, ended, generation, *names):
    return get(began, ended, generation, "traits", [*names])


def get_inventories(began, ended, generation, **totals):
    """Return a read of inventories with all fields."""
    defaults = {"reserved": 0, "min_unit": 1, "max_unit": 2147483647, "step_size": 1, "allocation_ratio": 1.0}
    return get(began, ended, generation, "inventories", {name: {"total": n} | defaults for name, n in totals.items()})


def get_name(began, ended, name):
    return call(began, ended, "GET", PATH, reply={"uuid": P, "name": name, "generation": 0})


def get_list(began, ended, name):
    entries = [{"uuid": P, "name": name, "generation": 0}]
    return call(began, ended, "GET", "/resource_providers", reply={"resource_providers": entries})


def is_wrong(*operations, **more):
    invariants = violations(contents, *operations, **more)
    assert invariants <= {"contents as written"}
    return bool(invariants)


NEW = create(0, 1)

WRONG = {
    "a missing write": [NEW, traits(2, 3, 0, A), get_traits(4, 5, 1)],
    "unwritten contents": [NEW, traits(2, 3, 0, A), get_traits(4, 5, 1, A, B)],
    "contents of a new provider": [NEW, get_traits(4, 5, 0, A)],
    "a refused write": [NEW, traits(2, 3, 0, A, status=409), get_traits(4, 5, 0, A)],
    "a replaced write": [NEW, traits(2, 3, 0, A), traits(4, 5, 1, B), get_traits(6, 7, 2, A)],
    "older contents with a newer generation": [
        *(NEW, traits(2, 3, 0, A), traits(4, 90, 1, B), get_traits(6, 7, 2, A)),
    ],
    "an open write that stated a lower generation": [
        NEW,
        traits(2, None, 0, A),
        traits(4, 5, 1, B),
        get_traits(6, 7, 2, A),
    ],
    "concurrent writes in the wrong order": [
        *(NEW, traits(2, 90, 1, B), traits(3, 90, 0, A), get_traits(100, 101, 2, A)),
    ],
    "a write that begins after the read": [NEW, get_traits(2, 3, 0, A), traits(4, 5, 0, A)],
    "a missing inventory": [NEW, stock(2, 3, 0, VCPU=4, DISK_GB=8), get_inventories(4, 5, 1, VCPU=4)],
    "an unwritten inventory": [NEW, get_inventories(4, 5, 0, VCPU=4)],
    "a replaced inventory": [
        *(NEW, stock(2, 3, 0, VCPU=4), stock(4, 5, 1, DISK_GB=8), get_inventories(6, 7, 2, VCPU=4, DISK_GB=8)),
    ],
    "a wrong amount": [NEW, stock(2, 3, 0, VCPU=4), get_inventories(4, 5, 1, VCPU=5)],
    "an unchanged value of a changed class": [
        NEW,
        stock(2, 3, 0, VCPU=4),
        one_class(4, 5, 1, "VCPU", 6),
        get_inventories(6, 7, 2, VCPU=4),
    ],
    "a missing added class": [NEW, add(2, 3, "VCPU", 4, 1), get_inventories(4, 5, 1)],
    "a deleted class": [
        *(NEW, stock(2, 3, 0, VCPU=4), delete(4, 5, "/inventories/VCPU"), get_inventories(6, 7, 2, VCPU=4)),
    ],
    "deleted classes": [
        *(NEW, stock(2, 3, 0, VCPU=4), delete(4, 5, "/inventories"), get_inventories(6, 7, 2, VCPU=4)),
    ],
    "deleted traits": [NEW, traits(2, 3, 0, A), delete(4, 5, "/traits"), get_traits(6, 7, 2, A)],
    "a class removed by a reshape": [NEW, stock(2, 3, 0, VCPU=4), reshape(4, 5, 1), get_inventories(6, 7, 2, VCPU=4)],
    "aggregates without a generation": [NEW, old_aggregates(2, 3, "x"), get(4, 5, 1, "aggregates", [])],
    "aggregates of an earlier life": [
        *(NEW, put(2, 3, 0, "aggregates", ["x"]), delete(4, 5), create(6, 7), get(8, 9, 0, "aggregates", ["x"])),
    ],
    "traits of an earlier life": [NEW, traits(2, 3, 0, A), delete(4, 5), create(6, None), get_traits(8, 9, 0, A)],
    "traits emptied by a deletion of the provider": [NEW, traits(2, 3, 0, A), delete(4, None), get_traits(6, 7, 1)],
    "a changed name": [NEW, rename(2, 3, "q"), get_name(4, 5, "p")],
    "an unwritten name": [NEW, get_name(4, 5, "q")],
    "a changed name in a list": [NEW, rename(2, 3, "q"), get_list(4, 5, "p")],
    "a name of an earlier life": [NEW, delete(2, 3), create(4, 5, "q"), get_name(6, 7, "p")],
}
RIGHT = {
    "a new provider": [
        NEW,
        get_inventories(2, 3, 0),
        get_traits(2, 3, 0),
        get(2, 3, 0, "aggregates", []),
        stock(4, 5, 0, VCPU=4),
    ],
    "the last write": [NEW, traits(2, 3, 0, A), traits(4, 5, 1, B), get_traits(6, 7, 2, B), get_traits(8, 9, 5, B)],
    "the states before and after a concurrent write": [
        *(NEW, traits(2, 90, 0, A), get_traits(4, 5, 0), get_traits(6, 7, 1, A)),
    ],
    "an older generation with newer contents": [NEW, traits(2, 90, 0, A), get_traits(4, 5, 0, A)],
    "an open write": [NEW, traits(2, None, 0, A), get_traits(4, 5, 0), get_traits(6, 7, 1, A)],
    "an open write after an acknowledged one": [
        *(NEW, traits(2, None, 1, A), traits(4, 5, 0, B), get_traits(6, 7, 2, A)),
    ],
    "traits that do not change": [
        *(NEW, traits(2, 3, 0, A), traits(4, 5, 1, A, raised=0), get_traits(6, 7, 1, A)),
    ],
    "one class of several": [
        *(NEW, stock(2, 3, 0, VCPU=4), one_class(4, 5, 1, "DISK_GB", 6), add(6, 7, "MEMORY_MB", 8)),
        *(get_inventories(8, 9, 3, VCPU=4, DISK_GB=6, MEMORY_MB=8), delete(10, 11, "/inventories/VCPU")),
        get_inventories(12, 13, 4, DISK_GB=6, MEMORY_MB=8),
    ],
    "an open deletion of a class": [
        *(
            NEW,
            stock(2, 3, 0, VCPU=4),
            delete(4, None, "/inventories/VCPU"),
            get_inventories(6, 7, 1, VCPU=4),
            get_inventories(8, 9, 2),
        ),
    ],
    "an open write whose generation is ignored": [
        NEW,
        add(2, None, "VCPU", 4),
        stock(4, 5, 1),
        get_inventories(6, 7, 2, VCPU=4),
    ],
    "an open reshape": [
        NEW,
        reshape(2, None, 0, VCPU=4),
        stock(4, 5, 0),
        get_inventories(6, 7, 3, VCPU=4),
        get_inventories(8, 9, 3),
    ],
    "a generation reused in another life": [
        *(NEW, traits(2, 3, 0, A), traits(4, 5, 1, B), delete(6, 7), create(8, 9), traits(10, 11, 0, C)),
        get_traits(12, 13, 2, C),
    ],
    "another life that may have begun": [
        *(NEW, traits(2, 3, 0, A), delete(4, None), create(6, None), get_traits(8, 9, 1, A), get_traits(10, 11, 0)),
    ],
    "aggregates without a generation": [
        *(NEW, put(2, 3, 0, "aggregates", ["x"]), old_aggregates(4, 90, "y")),
        *(get(6, 7, 1, "aggregates", ["x"]), get(8, 9, 1, "aggregates", ["y"])),
        call(10, 11, "GET", f"{PATH}/aggregates", minor=1, reply={"aggregates": ["x"]}),
    ],
    "names": [
        NEW,
        get_name(2, 3, "p"),
        rename(4, 20, "q"),
        get_name(5, 6, "p"),
        get_list(7, 8, "q"),
        get_name(21, 22, "q"),
    ],
    "a dry run": [
        *(NEW, call(2, 3, "PUT", f"{PATH}/traits?dry_run=true", {"traits": [A], "resource_provider_generation": 0})),
        get_traits(4, 5, 0),
    ],
    "a provider from before the run": [traits(2, 3, 0, A), get_traits(4, 5, 1, B)],
    "a provider of a node": [
        *(
            NEW,
            call(2, 3, "POST", "/baremetal/v1/nodes", {"uuid": P}, status=201),
            get_inventories(4, 5, 0, CUSTOM_GOLD=1),
        ),
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
        read = get(4, 5, 1, "inventories", {"VCPU": {"total": 4, "allocation_ratio": ratio}})
        assert is_wrong(NEW, stocked, read) == wrong


def test_writes_before_a_loss_may_survive():
    operations = [NEW, traits(2, 3, 0, A), traits(4, 5, 1, B)]
    for names, wrong in [((), False), ((A,), False), ((B,), False), ((C,), True)]:
        assert is_wrong(*operations, get_traits(30, 31, 1, *names), events=[loss(10, 20)]) == wrong
    # The lost generation is used again.
    assert not is_wrong(*operations, traits(22, 23, 0, C), get_traits(30, 31, 2, C), events=[loss(10, 20)])
    assert is_wrong(*operations, traits(22, 23, 0, C), get_traits(30, 31, 1, A), events=[loss(10, 20)])
    # The response to a write may come after the loss.
    assert not is_wrong(NEW, traits(15, 23, 0, A), get_traits(30, 31, 0), events=[loss(10, 20)])


def test_a_generation_reused_after_a_loss_does_not_date_earlier_reads():
    operations = [NEW, traits(2, 3, 0, A), traits(4, 5, 1, B), get_traits(7, 9, 2, B)]
    assert not is_wrong(*operations, traits(22, 23, 0, C), events=[loss(10, 20)])
    # An operation that began before the loss reaches the same generation after the loss.
    assert not is_wrong(*operations, traits(8, 23, 0, C), events=[loss(10, 20)])


def test_a_read_during_a_loss_shows_the_state_before_or_after_it():
    during = [NEW, traits(2, 3, 0, A), traits(22, 23, 0, B), get_traits(15, 30, 1, A)]
    assert not is_wrong(*during, events=[loss(10, 20)])
    assert is_wrong(*during)


def test_a_violation_names_the_operations_that_show_it():
    operations = [
        NEW,
        traits(2, 3, 0, A),
        traits(4, 5, 1, B),
        traits(4, 90, 2, C),
        get_traits(6, 7, 2, A),
        get_traits(8, 9, 2, B),
    ]
    [violation] = contents(history(*operations))
    assert violation.sentence == f"provider {P}: traits with generation 2 is [{A}], expected [{B}] or [{C}]"
    assert violation.operations == [1, 2, 3, 4]


def test_operations_of_the_real_service_violate_nothing(database):
    client, rng = RecordingClient(database), random.Random(5)
    host = client.host(6)
    path, classes = f"/resource_providers/{host}", ("VCPU", "MEMORY_MB", "DISK_GB")
    for _ in range(150):
        reply = client("GET", f"{path}/inventories").reply
        guarded = {"resource_provider_generation": reply["resource_provider_generation"] - rng.choice([0, 0, 1])}
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
        client(method, below if below == "/reshaper" else f"{path}{below}", body)
        for page in ("", "/inventories", "/traits", "/aggregates"):
            client("GET", f"{path}{page}")
    assert contents(history(*client.operations)) == []
    missing = [
        operation
        for operation in client.operations
        if operation.method == "GET" or operation.path != f"{path}/inventories"
    ]
    assert contents(history(*missing))
