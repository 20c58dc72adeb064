"""The order of committed transactions: numbers of writers rise, and objects go from one generation to the next."""

from __future__ import annotations

import datetime
import itertools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placement.extensions.v1.history.event_sort import GenerationStep, Numbered, in_order

EPOCH = datetime.datetime(2026, 11, 1)


def at(second):
    return EPOCH + datetime.timedelta(seconds=second)


def history(number, objects, writers, seed):
    """Return what writers have done, in the order of its commits: transactions without a time, as steps by object."""
    chance = random.Random(seed)
    states = {key: chance.choice([None, 0, 5]) for key in range(objects)}
    done = []
    for _ in range(number):
        steps = []
        for key in chance.sample(range(objects), chance.randint(1, min(3, objects))):
            before = states[key]
            after = chance.choice([0, 1]) if before is None else chance.choice([before + 1, before + 1, before, None])
            states[key] = after
            steps.append(GenerationStep(key, before, after))
        done.append((chance.randrange(writers), tuple(steps)))
    return done


def numbered(done, times):
    """Give each transaction its number, and a time."""
    numbers = {}
    found = []
    for (writer, steps), second in zip(done, times, strict=True):
        numbers[writer] = numbers.get(writer, 0) + 1
        found.append(Numbered(writer, numbers[writer], at(second), steps))
    return found


def breaks(order):
    """Return the objects whose chain is broken, each with where."""
    states, found = {}, []
    for transaction in order:
        for step in transaction.steps:
            if step.key in states and states[step.key] != step.before:
                found.append((step.key, states[step.key], step.before))
            states[step.key] = step.after
    return found


def present_of(done):
    """Return what tells the states in which objects are after all of it."""
    last = {step.key: step.after for _, steps in done for step in steps}
    return lambda keys: {key: last[key] for key in keys}


def entries(transactions):
    """Return where the chain of each object begins."""
    found = {}
    for transaction in transactions:
        for step in transaction.steps:
            found.setdefault(step.key, step.before)
    return found


def check_writers(order):
    newest = {}
    for transaction in order:
        assert transaction.seq == newest.get(transaction.writer, 0) + 1
        newest[transaction.writer] = transaction.seq


HISTORIES = st.builds(history, st.integers(1, 40), st.integers(1, 6), st.integers(1, 6), st.integers(0, 10**6))


@given(HISTORIES, st.randoms(use_true_random=False))
def test_generations_follow_each_other_whatever_the_clocks_say(done, chance):
    transactions = numbered(done, [chance.randint(0, 50) for _ in done])
    shuffled = chance.sample(transactions, len(transactions))
    order = in_order(shuffled)
    assert sorted(order, key=lambda one: (one.writer, one.seq)) == sorted(
        transactions, key=lambda one: (one.writer, one.seq)
    )
    check_writers(order)
    assert breaks(order) == []


@given(HISTORIES, st.randoms(use_true_random=False))
def test_a_circle_begins_where_it_ends(done, chance):
    """A creation and a deletion are as well a deletion and a creation, by what they say alone."""
    transactions = numbered(done, [chance.randint(0, 50) for _ in done])
    order = in_order(chance.sample(transactions, len(transactions)), present_of(done))
    check_writers(order)
    assert breaks(order) == []
    assert entries(order) == entries(transactions)


def test_what_is_created_is_deleted_afterwards_although_the_clock_is_behind():
    created = Numbered(1, 1, at(10), (GenerationStep("a", None, 1),))
    released = Numbered(2, 1, at(5), (GenerationStep("a", 1, None),))
    assert in_order([released, created], lambda keys: dict.fromkeys(keys)) == [created, released]
    assert in_order([released, created], lambda keys: dict.fromkeys(keys, 1)) == [released, created]


def test_many_circles_are_put_in_order():
    """Consumers that are claimed and released twice, by processes whose clocks differ, all on one provider."""
    chance, done, generation = random.Random(3), [], 0
    lives = [(key, before, after) for key in range(1000) for before, after in [(None, 1), (1, None)] * 2]
    waiting = {key: [step for step in lives if step[0] == key] for key in range(1000)}
    while waiting:
        key = chance.choice([*itertools.islice(waiting, 8)])
        _, before, after = waiting[key].pop(0)
        if not waiting[key]:
            del waiting[key]
        steps = [GenerationStep(key, before, after)]
        if after:
            steps.append(GenerationStep("provider", generation, generation + 1))
            generation += 1
        done.append((chance.randrange(4), tuple(steps)))
    skew = {0: 0, 1: 0.005, 2: 0.01, 3: 0.02}
    transactions = numbered(done, [number / 1000 + skew[writer] for number, (writer, _) in enumerate(done)])
    order = in_order(transactions, present_of(done))
    check_writers(order)
    assert breaks(order) == []
    assert entries(order) == entries(transactions)


@given(HISTORIES)
def test_clocks_that_are_right_give_the_order_of_the_commits(done):
    transactions = numbered(done, range(len(done)))
    assert in_order(reversed(transactions)) == transactions


@given(HISTORIES, st.randoms(use_true_random=False))
def test_an_order_has_all_transactions_although_some_are_missing(done, chance):
    """Of objects that are never deleted, generations rise over what is missing."""
    kept = [(writer, tuple(step for step in steps if chance.random() < 0.7)) for writer, steps in done]
    transactions = numbered(kept, [chance.randint(0, 50) for _ in kept])
    order = in_order(transactions)
    assert len(order) == len(transactions)
    check_writers(order)


@given(st.lists(st.tuples(st.integers(0, 3), st.booleans()), min_size=1, max_size=30), st.randoms())
def test_generations_rise_over_what_is_missing(done, chance):
    kept = [(writer, (GenerationStep("a", number, number + 1),)) for number, (writer, here) in enumerate(done) if here]
    order = in_order(numbered(kept, [chance.randint(0, 50) for _ in kept]))
    assert [one.steps[0].before for one in order] == sorted(one.steps[0].before for one in order)


def test_an_object_that_comes_again_is_deleted_in_between():
    """The clock of the second writer is an hour behind."""
    first = [
        Numbered(1, 1, at(4000), (GenerationStep("a", None, 0),)),
        Numbered(1, 2, at(4001), (GenerationStep("a", 0, None),)),
    ]
    again = [
        Numbered(2, 1, at(401), (GenerationStep("a", None, 0), GenerationStep("b", 8, 9))),
        Numbered(2, 2, at(402), (GenerationStep("a", 0, 1),)),
    ]
    assert in_order([*again, *first]) == [*first, *again]


def test_what_has_no_generation_comes_by_time():
    late, early = Numbered(1, 1, at(2), ()), Numbered(2, 1, at(1), ())
    assert in_order([late, early]) == [early, late]


@pytest.mark.parametrize("writers", [1, 8])
def test_many_transactions_are_put_in_order(writers):
    """Clocks are far apart, and so the order has to be searched for."""
    chance, states, done = random.Random(1), dict.fromkeys(range(200), 0), []
    for _ in range(3000):
        steps = []
        for key in chance.sample(range(200), 2):
            before, ends = states[key], chance.random() < 0.05
            states[key] = 0 if before is None else None if ends else before + 1
            steps.append(GenerationStep(key, before, states[key]))
        done.append((chance.randrange(writers), tuple(steps)))
    transactions = numbered(done, [second + 20 * (writer % 2) for second, (writer, _) in enumerate(done)])
    order = in_order(transactions)
    check_writers(order)
    assert breaks(order) == []
