"""The linearizability search agrees with brute force and decides the classic examples."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jepsen.checker import linearizable
from jepsen.checker.linearizable import Outcome, TimedCall

LINEARIZABLE, VIOLATED, UNDECIDED = Outcome.LINEARIZABLE, Outcome.VIOLATED, Outcome.UNDECIDED


class Register:
    """A number with reads, writes, compare-and-set, increments, and writes of either of two values.

    Claims raise it by one, together with those that join, and may show the result.
    """

    def step(self, state, operation, *joined):
        match operation.call:
            case ("claim", *_):
                values = {value for claim in (operation, *joined) for value in claim.call[1:]}
                return [state + 1] if values <= {state + 1} else []
            case ("write", value):
                return [value]
            case ("read", value):
                return [state] if state == value else []
            case ("compare", old, new):
                return [new] if state == old else []
            case ("increase",):
                return [state + 1]
            case ("either", first, second):
                return {first, second}


def timed_call(call, began, ended, **more):
    return TimedCall(began, began, ended, call, changes=call[0] != "read", joins=call[0] == "claim", **more)


def outcome(*operations, **more):
    return linearizable.check(operations, Register(), [0], **more).outcome


# --- the classic examples --------------------------------------------------------------------------------------------


def test_an_empty_history_is_linearizable():
    assert outcome() is LINEARIZABLE


def test_a_stale_read_is_a_violation():
    write = timed_call(("write", 1), 0, 10)
    assert outcome(write, timed_call(("read", 0), 20, 30)) is VIOLATED
    assert outcome(write, timed_call(("read", 0), 5, 30)) is LINEARIZABLE
    assert outcome(write, timed_call(("read", 0), 10, 30)) is LINEARIZABLE


def test_a_lost_update_is_a_violation():
    first, second = timed_call(("compare", 0, 1), 0, 10), timed_call(("compare", 0, 2), 5, 15)
    assert outcome(first, second) is VIOLATED
    assert (
        outcome(timed_call(("increase",), 0, 10), timed_call(("increase",), 5, 15), timed_call(("read", 1), 20, 30))
        is VIOLATED
    )
    assert (
        outcome(timed_call(("increase",), 0, 10), timed_call(("increase",), 5, 15), timed_call(("read", 2), 20, 30))
        is LINEARIZABLE
    )


def test_an_open_write_takes_effect_later_or_never():
    write = timed_call(("write", 1), 0, None)
    early_read, late_read = timed_call(("read", 0), 10, 20), timed_call(("read", 1), 30, 40)
    assert outcome(write, early_read) is LINEARIZABLE
    assert outcome(write, early_read, late_read) is LINEARIZABLE
    assert outcome(write, early_read, late_read, timed_call(("read", 0), 50, 60)) is VIOLATED


def test_an_open_write_takes_effect_once():
    history = [timed_call(("read", 1), 30, 40), timed_call(("write", 0), 50, 60), timed_call(("read", 1), 70, 80)]
    assert outcome(timed_call(("write", 1), 0, None), *history) is VIOLATED
    twice = [timed_call(("write", 1), 0, None), timed_call(("write", 1), 1, None)]
    assert outcome(*twice, *history) is LINEARIZABLE


def test_open_writes_do_not_take_effect_before_they_begin():
    assert outcome(timed_call(("read", 1), 0, 10), timed_call(("write", 1), 11, None)) is VIOLATED


def test_a_read_that_goes_back_is_a_violation():
    write = timed_call(("write", 1), 0, 100)
    new, old = timed_call(("read", 1), 10, 20), timed_call(("read", 0), 30, 40)
    assert outcome(write, new, old) is VIOLATED
    assert outcome(write, old, new) is VIOLATED
    assert outcome(write, new, timed_call(("read", 0), 15, 40)) is LINEARIZABLE


def test_an_open_read_is_ignored():
    assert outcome(timed_call(("read", 5), 0, None)) is LINEARIZABLE


def test_an_optional_operation_happens_in_its_time_or_never():
    write = timed_call(("write", 1), 0, 10, optional=True)
    assert outcome(write, timed_call(("read", 0), 20, 30)) is LINEARIZABLE
    assert outcome(write, timed_call(("read", 1), 20, 30)) is LINEARIZABLE
    assert outcome(write, timed_call(("read", 0), 20, 30), timed_call(("read", 1), 40, 50)) is VIOLATED


def test_a_required_operation_does_not_wait_for_an_optional_one():
    calls = timed_call(("increase",), 0, 10, optional=True), timed_call(("increase",), 0, 20)
    assert outcome(*calls, timed_call(("read", 1), 5, 8), timed_call(("read", 1), 30, 40)) is LINEARIZABLE


def test_an_operation_may_have_several_results():
    either = timed_call(("either", 1, 2), 0, 10)
    assert outcome(either, timed_call(("read", 2), 20, 30)) is LINEARIZABLE
    assert outcome(either, timed_call(("read", 2), 20, 30), timed_call(("read", 1), 40, 50)) is VIOLATED


def test_joined_operations_have_one_effect_at_one_time():
    first, second = timed_call(("claim",), 0, 20), timed_call(("claim",), 10, 30)
    assert outcome(first, second, timed_call(("read", 1), 40, 50)) is LINEARIZABLE
    assert outcome(first, second, timed_call(("read", 2), 40, 50)) is LINEARIZABLE
    later = timed_call(("claim",), 25, 60)
    assert outcome(first, second, later, timed_call(("read", 1), 70, 80)) is VIOLATED
    assert outcome(first, second, later, timed_call(("read", 2), 70, 80)) is LINEARIZABLE
    assert outcome(first, timed_call(("claim", 1), 10, 30), timed_call(("claim", 2), 10, 30)) is LINEARIZABLE
    assert (
        outcome(timed_call(("claim", 1), 10, 30), timed_call(("claim", 2), 10, 30), timed_call(("read", 1), 40, 50))
        is VIOLATED
    )


def test_the_prefix_includes_operations_begun_before_the_impossible_return():
    write, read, concurrent, later = (
        timed_call(("write", 1), 0, 10),
        timed_call(("read", 2), 20, 30),
        timed_call(("write", 3), 25, 60),
        timed_call(("read", 1), 40, 50),
    )
    verdict = linearizable.check([later, concurrent, read, write], Register(), [0])
    assert (verdict.outcome, verdict.impossible, verdict.prefix) == (VIOLATED, read, 3)
    assert verdict.pending == [concurrent]
    assert set(verdict.states) == {1}


def test_a_search_that_takes_too_long_is_undecided():
    writes = [timed_call(("write", number), number, 100 + number) for number in range(10)]
    assert outcome(*writes, bound=1000) is UNDECIDED
    assert outcome(*writes) is LINEARIZABLE


def test_a_write_of_the_current_value_may_take_effect_later():
    repeated, other = timed_call(("write", 0), 0, 100), timed_call(("write", 1), 10, 20)
    assert outcome(repeated, other, timed_call(("read", 0), 30, 40)) is LINEARIZABLE


@pytest.mark.parametrize("later", [2, 3])
def test_either_of_two_open_operations_may_remain(later):
    calls = [
        timed_call(("either", 1, 2), 0, None),
        timed_call(("either", 1, 3), 0, None),
        timed_call(("read", 1), 10, 20),
    ]
    assert outcome(*calls, timed_call(("read", later), 30, 40)) is LINEARIZABLE
    assert outcome(*calls, timed_call(("read", later), 30, 40), timed_call(("read", 5 - later), 50, 60)) is VIOLATED


def test_a_long_history_has_a_larger_bound(monkeypatch):
    monkeypatch.setattr(linearizable, "BOUND", 10)
    calls = [timed_call(("write", number), number, 20 + number) for number in range(6)]
    monkeypatch.setattr(linearizable, "BOUND_PER_OPERATION", 2)
    assert outcome(*calls) is UNDECIDED
    monkeypatch.setattr(linearizable, "BOUND_PER_OPERATION", 1000)
    assert outcome(*calls) is LINEARIZABLE


def test_kinds_that_exclude_each_other_are_not_tried_in_every_combination():
    class Unknown:
        """A counter whose value is unknown, represented by 0, until a claim shows it, and constant from then on."""

        def step(self, state, *claims):
            values = {claim.call for claim in claims}
            return values if state == 0 and len(values) == 1 else []

    claims = [TimedCall(kind, kind, 100, kind, joins=True, optional=kind > 1) for kind in range(1, 20)]
    certain = [TimedCall(kind, kind, None if kind > 1 else 100, kind, joins=True) for kind in range(1, 20)]
    for operations in (claims, certain):
        assert linearizable.check(operations, Unknown(), [0], bound=5_000).outcome is LINEARIZABLE
    required = [TimedCall(kind, kind, 100, kind, joins=True) for kind in range(1, 20)]
    assert linearizable.check(required, Unknown(), [0], bound=5_000).outcome is VIOLATED


def test_any_initial_state_may_explain_a_history():
    read = timed_call(("read", 5), 0, 10)
    assert linearizable.check([read], Register(), [4, 5]).outcome is LINEARIZABLE
    assert linearizable.check([read], Register(), [3, 4]).outcome is VIOLATED


# --- against brute force ---------------------------------------------------------------------------------------------


def brute_force(operations, initial):
    """Whether some order of the ended operations, and of some open or optional ones, explains all; try every order."""
    must = [operation for operation in operations if operation.ended is not None and not operation.optional]
    may = [operation for operation in operations if operation.ended is None or operation.optional]
    for count in range(len(may) + 1):
        for chosen in itertools.combinations(may, count):
            if any(_explains(order, initial) for order in itertools.permutations([*must, *chosen])):
                return True
    return False


def _explains(order, initial):
    pairs = itertools.combinations(order, 2)
    if any(later.ended is not None and later.ended < earlier.began for earlier, later in pairs):
        return False
    return any(_follows(state, [], order) for state in initial)


def _follows(state, joined, order):
    """Whether the operations can follow each other from this state, which the claims ``joined`` produced together."""
    if not order:
        return True
    first, others = order[0], order[1:]
    alone = [first] if first.joins else []
    if any(_follows(next_state, alone, others) for next_state in Register().step(state, first)):
        return True
    joins = joined and first.joins and all(_overlap(first, other) for other in joined)
    return bool(joins and Register().step(state - 1, first, *joined) and _follows(state, [*joined, first], others))


def _overlap(first, second):
    ends = [operation.ended for operation in (first, second) if operation.ended is not None]
    return not ends or max(first.began, second.began) <= min(ends)


VALUES = st.integers(0, 2)
CALLS = st.one_of(
    st.tuples(st.just("write"), VALUES),
    st.tuples(st.just("read"), VALUES),
    st.tuples(st.just("read"), VALUES),
    st.tuples(st.just("compare"), VALUES, VALUES),
    st.just(("increase",)),
    st.tuples(st.just("either"), VALUES, VALUES),
    st.just(("claim",)),
    st.just(("claim",)),
    st.tuples(st.just("claim"), VALUES),
)


@st.composite
def operations(draw):
    began = draw(st.integers(0, 12))
    ended = draw(st.one_of(st.none(), st.integers(began, began + 8), st.integers(began, began + 3)))
    call = draw(CALLS)
    optional = ended is not None and call[0] != "read" and draw(st.booleans())
    return timed_call(call, began, ended, optional=optional)


def test_the_search_agrees_with_brute_force():
    outcomes = Counter()

    @settings(max_examples=400, deadline=None, derandomize=True)
    @given(st.lists(operations(), min_size=3, max_size=6))
    def agrees(history):
        verdict = linearizable.check(history, Register(), [0])
        assert (verdict.outcome is LINEARIZABLE) == brute_force(history, [0])
        outcomes[verdict.outcome] += 1
        if verdict.outcome is VIOLATED:
            assert_shortest(history, verdict)

    agrees()
    assert min(outcomes[LINEARIZABLE], outcomes[VIOLATED]) > 60


def assert_shortest(history, verdict):
    """Assert that the history up to the impossible return is not linearizable, but is without that return."""
    at = verdict.impossible.ended
    relevant = [
        operation
        for operation in history
        if operation.began <= at and (operation.changes or operation.ended is not None)
    ]
    assert verdict.prefix >= len([operation for operation in relevant if operation.began < at])
    until = [
        operation if operation.ended is not None and operation.ended <= at else _open(operation)
        for operation in relevant
    ]
    assert not brute_force(until, [0])
    simultaneous = [operation for operation in until if operation.ended == at]
    if simultaneous == [verdict.impossible]:
        assert brute_force(
            [_open(operation) if operation is verdict.impossible else operation for operation in until], [0]
        )


def _open(operation):
    return replace(operation, ended=None)


@pytest.mark.parametrize("readers", [4, 8])
def test_effort_grows_with_the_length_of_the_history(readers):
    """A search of all orders of these operations would never end."""
    history = []
    for number in range(2000):
        call = ("write", number) if number % 2 else ("read", max(number - 1, 0))
        history.append(timed_call(call, number * 10, number * 10 + 9))
        history += [timed_call(call, number * 10, number * 10 + 9) for _ in range(readers) if call[0] == "read"]
    verdict = linearizable.check(history, Register(), [0], bound=100_000)
    assert verdict.outcome is LINEARIZABLE
