"""Check ``bank``: vectors of ticks that belong to one history of commits, and vectors that do not."""

from __future__ import annotations

import pytest

from jepsen.checker.bank import bank
from jepsen.tests.handwritten_histories import call, loss, violations

RUN = {"bank": {"project": "bank", "total": 10, "ticks": ["CUSTOM_TICK_0", "CUSTOM_TICK_1"]}}


def swap(began, ended, client, tick, status=204):
    note = {"bank": {"client": client, "tick": tick}}
    return call(began, ended, "POST", "/allocations", {}, status=status, process=client, note=note)


def read(began, ended, *ticks, money=10):
    amounts = {"VCPU": money} | {f"CUSTOM_TICK_{client}": tick for client, tick in enumerate(ticks)}
    reply = {"usages": {"INSTANCE": {"consumer_count": 4, **amounts}}}
    return call(began, ended, "GET", "/usages?project_id=bank", reply=reply, process=9, note={"bank": "read"})


def violations_of(*operations, **more):
    return violations(bank, *operations, **RUN, **more)


def test_a_history_of_committed_states_is_accepted():
    assert not violations_of(
        *(swap(1, 2, 0, 1), swap(1, 3, 1, 1), read(1, 4, 1, 0), read(3, 4, 1, 1)),
        *(swap(5, None, 0, 2), read(6, 7, 1, 1), read(8, 9, 2, 1), swap(10, 11, 1, 2, status=409), read(12, 13, 2, 1)),
    )


@pytest.mark.parametrize(
    ("invariant", "operations"),
    [
        ("bank: constant sum", [swap(1, 2, 0, 1), read(3, 4, 1, 0, money=9)]),
        ("bank: reads include acknowledged writes", [swap(1, 2, 0, 1), read(3, 4, 0, 0)]),
        ("bank: no out-of-thin-air reads", [read(1, 2, 1, 0), swap(3, 4, 0, 1)]),
        ("bank: no out-of-thin-air reads", [swap(1, 2, 0, 1, status=409), read(3, 4, 1, 0)]),
        (
            "bank: one commit order",
            [swap(1, 9, 0, 1), swap(1, 9, 1, 1), read(2, 8, 1, 0), read(2, 8, 0, 1)],
        ),
        ("bank: monotonic reads", [swap(1, None, 0, 1), read(2, 3, 1, 0), read(4, 5, 0, 0)]),
    ],
)
def test_reads_of_uncommitted_states_are_violations(invariant, operations):
    assert violations_of(*operations) == {invariant}


@pytest.mark.parametrize(
    "reply",
    [
        {"usages": {"VCPU": 10, "CUSTOM_TICK_0": 1}},
        {
            "provider_summaries": {
                "a": {"resources": {"VCPU": {"capacity": 9, "used": 4}, "CUSTOM_TICK_0": {"capacity": 9, "used": 1}}},
                "b": {"resources": {"VCPU": {"capacity": 9, "used": 6}}},
            }
        },
        {"providers": [{"inventories": {"VCPU": {"used": 10}, "CUSTOM_TICK_0": {"used": 1}}}]},
    ],
)
def test_balances_are_read_from_every_kind_of_page(reply):
    path = {
        "usages": "/usages?project_id=bank",
        "provider_summaries": "/allocation_candidates",
        "providers": "/v1/overview",
    }
    [form] = reply
    page = call(3, 4, "GET", path[form], reply=reply, note={"bank": "read"})
    assert not violations_of(swap(1, 2, 0, 1), page)
    assert violations_of(
        swap(1, 2, 0, 1), swap(2, 3, 0, 2), call(4, 5, *(page.method, page.path), reply=reply, note=page.note)
    )


SWAPS = [swap(1, 2, 0, 1), swap(3, 4, 1, 1), swap(5, 6, 0, 2), read(7, 8, 2, 1)]


@pytest.mark.parametrize("surviving", [(2, 1), (1, 1), (1, 0), (0, 0)])
def test_a_prefix_may_survive_a_loss(surviving):
    following = swap(24, 25, 0, surviving[0] + 1)
    assert not violations_of(
        *SWAPS, read(20, 21, *surviving), following, read(26, 27, surviving[0] + 1, surviving[1]), events=[loss(10, 11)]
    )


@pytest.mark.parametrize(("surviving", "wrong"), [((2, 1), False), ((1, 1), True), ((0, 0), True)])
def test_acknowledged_writes_survive_a_loss_if_the_event_keeps_them(surviving, wrong):
    invariants = violations_of(*SWAPS, read(20, 21, *surviving), events=[loss(10, 11, keeps_earlier=True)])
    assert invariants == ({"bank: a prefix survives"} if wrong else set())


@pytest.mark.parametrize("surviving", [(2, 0), (0, 1)])
def test_only_a_prefix_may_survive_a_loss(surviving):
    assert violations_of(*SWAPS, read(20, 21, *surviving), events=[loss(10, 11)]) == {"bank: a prefix survives"}


def test_without_a_loss_nothing_may_be_lost():
    assert "bank: monotonic reads" in violations_of(*SWAPS, read(20, 21, 1, 1))


def test_an_open_write_may_take_effect_after_a_loss():
    assert not violations_of(*SWAPS, swap(9, None, 1, 2), read(20, 21, 0, 0), read(22, 23, 0, 0), events=[loss(10, 11)])
    late = [swap(1, 2, 0, 1), swap(3, 4, 1, 1), read(5, 6, 1, 1), swap(7, None, 0, 2)]
    # The tick of client 1 is lost, and the one that client 0 had begun before takes effect later.
    assert not violations_of(*late, swap(8, 8, 1, 2), read(9, 9, 1, 2), read(20, 21, 2, 1), events=[loss(10, 11)])


def test_writes_acknowledged_after_a_loss_are_kept():
    operations = [read(20, 21, 1, 1), swap(22, 23, 0, 2), read(24, 25, 1, 1)]
    assert violations_of(*SWAPS, *operations, events=[loss(10, 11)]) == {"bank: reads include acknowledged writes"}


BEFORE_LOSS = [*SWAPS, swap(9, 12, 0, 3)]


@pytest.mark.parametrize(
    "reads",
    [
        [read(13, 14, 3, 1), read(15, 16, 1, 1), read(17, 18, 1, 1)],
        [read(13, 20, 1, 1), read(13, 20, 3, 1)],
        # Some reads are before the loss, and some after it; the last read shows which.
        [swap(13, 20, 1, 2), read(14, 20, 2, 2), read(14, 20, 3, 1), read(42, 43, 2, 2)],
        [read(9, 13, 2, 1), read(14, 15, 0, 0), read(16, 17, 0, 0), read(42, 43, 0, 0)],
    ],
)
def test_reads_during_a_loss_show_the_state_before_or_after_it(reads):
    assert not violations_of(*BEFORE_LOSS, *reads, events=[loss(10, 40)])


@pytest.mark.parametrize(
    "reads",
    [
        # The first lacks an acknowledged write, so it is after the loss, and so are the others.
        [read(13, 14, 2, 1), read(15, 16, 3, 1), read(17, 18, 2, 1)],
        [read(13, 14, 1, 1), read(15, 16, 3, 1), read(17, 18, 1, 1)],
        # Three commit orders.
        [swap(11, None, 1, 2), *(read(12, 20, *ticks) for ticks in ((3, 0), (2, 1), (1, 2)))],
        # A state neither before nor after the loss.
        [read(13, 14, 3, 0), read(42, 43, 2, 1)],
    ],
)
def test_reads_during_a_loss_that_fit_no_two_orders_are_violations(reads):
    assert violations_of(*BEFORE_LOSS, *reads, events=[loss(10, 40)]) == {"bank: one commit order"}


def test_reads_during_a_loss_show_no_unwritten_values():
    assert violations_of(*BEFORE_LOSS, read(13, 14, 4, 1), events=[loss(10, 40)]) == {"bank: no out-of-thin-air reads"}


def test_lost_writes_do_not_come_back():
    returned = [read(20, 21, 1, 1), read(22, 23, 2, 1)]
    assert violations_of(*SWAPS, *returned, events=[loss(10, 11)]) == {"bank: no out-of-thin-air reads"}
