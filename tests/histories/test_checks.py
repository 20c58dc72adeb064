"""Some checks of ``jepsen`` find the violation in a handwritten history, and none in the correct history beside it.

``make jepsen`` tests every rule of every check in this way, and whether runs find planted faults.
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
    allocations = {HOST: {"resources": {"VCPU": amount}}}
    body = {"allocations": allocations, "consumer_generation": None, **OWNER}
    path = f"/allocations/{consumer}"
    return call(began, began + 1 if ended == 0 else ended, "PUT", path, body, status=status, reply=reply)


def consumer_read(began, amount):
    allocations = {HOST: {"resources": {"VCPU": amount}, "generation": 2}}
    document = {"allocations": allocations, "consumer_generation": 1, **OWNER} if amount else {"allocations": {}}
    return call(began, began + 1, "GET", f"/allocations/{CONSUMER}", reply=document)


def refusal(began, amount):
    detail = f"allocation for 'VCPU' on resource provider '{HOST}'. The requested amount would exceed the capacity"
    return claim(began, amount, OTHER, status=409, reply=error(detail))


def provider_read(began, generation):
    return call(began, began + 1, "GET", f"/resource_providers/{HOST}", reply={"generation": generation})


@pytest.mark.parametrize(
    ("check", "right", "wrong", "invariant"),
    [
        ("consumers", [claim(1, 3), consumer_read(3, 3)],
         [claim(1, 3), consumer_read(3, 0)], "consumers: linearizable"),
        # An operation without a response may take effect at any later time, but only once, and only as requested.
        ("consumers", [claim(1, 3, ended=None), consumer_read(9, 0), consumer_read(11, 3)],
         [claim(1, 3, ended=None), consumer_read(9, 3), consumer_read(11, 0)], "consumers: linearizable"),
        ("generations", [stock(1, 8), provider_read(3, 1)],
         [stock(1, 8), provider_read(3, 0)], "generations: linearizable"),
        ("refusals", [stock(1, 8), claim(3, 5), claim(5, 3, OTHER)],
         [stock(1, 8), claim(3, 5), claim(5, 4, OTHER)], "capacity is never exceeded"),
        ("refusals", [stock(1, 8), claim(3, 5), refusal(5, 4)],
         [stock(1, 8), claim(3, 5), refusal(5, 3)], "refusals for capacity are explained"),
        ("replies", [claim(1, 3, status=409, reply=error("no room"))],
         [claim(1, 3, status=500, reply=error("..."))], "no 5xx except 503"),
    ],
)  # fmt: skip
def test_a_violation_is_found(check, right, wrong, invariant):
    assert violations(catalogue.checks()[check], *right) == set()
    assert violations(catalogue.checks()[check], *wrong) == {invariant}


def test_inconsistent_rows_at_the_end_are_found():
    wrong = {"soundness": {"a consumer that holds nothing": [CONSUMER]}}
    assert violations(catalogue.checks()["soundness"], final={"soundness": {}}) == set()
    assert violations(catalogue.checks()["soundness"], final=wrong) == {"consistent rows"}
