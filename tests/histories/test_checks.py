"""Some checks of ``jepsen`` find what a history written by hand has wrong, and nothing in the one beside it.

``make jepsen`` has such histories of each rule of each check, and services with faults that runs have to find.
"""

from __future__ import annotations

import pytest

from jepsen import catalogue
from jepsen.tests.handwritten_histories import call, error, violations

HOST, CONSUMER, OTHER = (f"{letter}0000000-0000-4000-8000-000000000001" for letter in "abc")
OWNER = {"project_id": "red", "user_id": "ann", "consumer_type": "INSTANCE"}


def stock(began, total):
    body = {"resource_provider_generation": 0, "inventories": {"VCPU": {"total": total}}}
    reply = {"resource_provider_generation": 1}
    return call(began, began + 1, "PUT", f"/resource_providers/{HOST}/inventories", body, reply=reply)


def claim(began, amount, consumer=CONSUMER, *, ended=0, status=204, reply=None):
    held = {HOST: {"resources": {"VCPU": amount}}}
    body = {"allocations": held, "consumer_generation": None, **OWNER}
    path = f"/allocations/{consumer}"
    return call(began, began + 1 if ended == 0 else ended, "PUT", path, body, status=status, reply=reply)


def holds(began, amount):
    held = {HOST: {"resources": {"VCPU": amount}, "generation": 2}}
    shown = {"allocations": held, "consumer_generation": 1, **OWNER} if amount else {"allocations": {}}
    return call(began, began + 1, "GET", f"/allocations/{CONSUMER}", reply=shown)


def refused(began, amount):
    why = f"allocation for 'VCPU' on resource provider '{HOST}'. The requested amount would exceed the capacity"
    return claim(began, amount, OTHER, status=409, reply=error(why))


def shows(began, generation):
    return call(began, began + 1, "GET", f"/resource_providers/{HOST}", reply={"generation": generation})


@pytest.mark.parametrize(
    ("check", "right", "wrong", "invariant"),
    [
        ("consumers", [claim(1, 3), holds(3, 3)], [claim(1, 3), holds(3, 0)], "consumers: linearizable"),
        # A call without a reply may take effect at any time, but once, and with what it asked for.
        ("consumers", [claim(1, 3, ended=None), holds(9, 0), holds(11, 3)],
         [claim(1, 3, ended=None), holds(9, 3), holds(11, 0)], "consumers: linearizable"),
        ("generations", [stock(1, 8), shows(3, 1)], [stock(1, 8), shows(3, 0)], "generations: linearizable"),
        ("refusals", [stock(1, 8), claim(3, 5), claim(5, 3, OTHER)],
         [stock(1, 8), claim(3, 5), claim(5, 4, OTHER)], "capacity is never exceeded"),
        ("refusals", [stock(1, 8), claim(3, 5), refused(5, 4)],
         [stock(1, 8), claim(3, 5), refused(5, 3)], "refusals for capacity are explained"),
        ("replies", [claim(1, 3, status=409, reply=error("no room"))],
         [claim(1, 3, status=500, reply=error("..."))], "no 5xx except 503"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_found(check, right, wrong, invariant):
    assert violations(catalogue.checks()[check], *right) == set()
    assert violations(catalogue.checks()[check], *wrong) == {invariant}


def test_wrong_rows_at_the_end_are_found():
    wrong = {"soundness": {"a consumer that holds nothing": [CONSUMER]}}
    assert violations(catalogue.checks()["soundness"], final={"soundness": {}}) == set()
    assert violations(catalogue.checks()["soundness"], final=wrong) == {"consistent rows"}
