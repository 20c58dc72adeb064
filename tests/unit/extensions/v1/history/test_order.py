"""The order of committed transactions: numbers of writers rise, and objects go from one generation to the next."""

from __future__ import annotations

import datetime
import itertools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placement.extensions.v1.history.order import GenerationStep, UnorderedTransaction, topological_order

EPOCH = datetime.datetime(2026, 11, 1)


def at(second):
    return EPOCH + datetime.timedelta(seconds=second)


def history(number, objects, writers, seed):
    """Return what writers have done, in the order of its commits, as pairs of writer and steps.

    Some objects are there already, and each that is created has another row.
    """
    chance = random.Random(seed)
    rows = itertools.count(1)
    states = {key: chance.choice([None, 0, 5]) for key in range(objects)}
    ids = {key: next(rows) for key in range(objects)}
    done = []
    for _ in range(number):
        steps = []
        for key in chance.sample(range(objects), chance.randint(1, min(3, objects))):
            before = states[key]
            if before is None:
                ids[key] = next(rows)
            after = chance.choice([0, 1]) if before is None else chance.choice([before + 1, before + 1, before, None])
            states[key] = after
            steps.append(GenerationStep(key, ids[key], before, after))
        done.append((chance.randrange(writers), tuple(steps)))
    return done


def numbered(done, times):
    """Give each transaction its number, and a time."""
    numbers = {}
    found = []
    for (writer, steps), second in zip(done, times, strict=True):
        numbers[writer] = numbers.get(writer, 0) + 1
        found.append(UnorderedTransaction(writer, numbers[writer], at(second), steps))
    return found


def is_possible(order):
    """Return whether transactions can have been committed in this order, by doing what they say."""
    newest, states = {}, {}
    for one in order:
        if one.seq != newest.get(one.writer, 0) + 1:
            return False
        newest[one.writer] = one.seq
        for step in one.steps:
            row, generation = states.get(step.object, (0, step.before))
            # Each creation of an object inserts a row with a larger id; 0 stands for an object not seen yet.
            is_new = step.before is None or row == 0
            has_its_row = step.row > row if is_new else step.row == row
            if generation != step.before or not has_its_row:
                return False
            states[step.object] = (step.row, step.after)
    return True


def check_writers(order, transactions):
    newest = {}
    for transaction in order:
        assert transaction.seq == newest.get(transaction.writer, 0) + 1
        newest[transaction.writer] = transaction.seq
    assert len(order) == len(transactions)


def without_rows(done):
    """Return what earlier releases have recorded of it."""
    return [(writer, tuple(step._replace(row=None) for step in steps)) for writer, steps in done]


def breaks(order):
    """Return the objects whose generations do not follow each other, each with where."""
    states, found = {}, []
    for transaction in order:
        for step in transaction.steps:
            if states.get(step.object, step.before) != step.before:
                found.append((step.object, states[step.object], step.before))
            states[step.object] = step.after
    return found


HISTORIES = st.builds(history, st.integers(1, 40), st.integers(1, 6), st.integers(1, 6), st.integers(0, 10**6))
FEW = st.builds(history, st.integers(1, 6), st.integers(1, 3), st.integers(1, 3), st.integers(0, 10**6))


@given(FEW, st.randoms(use_true_random=False))
def test_of_all_orders_that_are_possible_it_is_the_one_nearest_to_the_times(done, chance):
    """All orders of few transactions are tried; the nearest one has the earliest as the first, and so on."""
    transactions = numbered(done, [chance.randint(0, 5) for _ in done])
    by_time = sorted(transactions, key=lambda one: (one.at, one.writer, one.seq))
    possible = (list(order) for order in itertools.permutations(by_time) if is_possible(order))
    assert topological_order(chance.sample(transactions, len(transactions))) == next(possible)


@given(HISTORIES, st.randoms(use_true_random=False))
def test_generations_follow_each_other_whatever_the_clocks_say(done, chance):
    transactions = numbered(done, [chance.randint(0, 50) for _ in done])
    order = topological_order(chance.sample(transactions, len(transactions)))
    check_writers(order, transactions)
    assert is_possible(order)


@given(HISTORIES)
def test_clocks_that_are_right_give_the_order_of_the_commits(done):
    transactions = numbered(done, range(len(done)))
    assert topological_order(reversed(transactions)) == transactions


@given(HISTORIES)
def test_without_ids_clocks_that_are_right_do_so_too(done):
    """Earlier releases have recorded none."""
    transactions = numbered(without_rows(done), range(len(done)))
    assert topological_order(reversed(transactions)) == transactions


@given(HISTORIES, st.randoms(use_true_random=False))
def test_without_ids_objects_that_are_not_deleted_need_no_clock(done, chance):
    gone = {step.object for _, steps in done for step in steps if step.after is None}
    kept = [(writer, tuple(step for step in steps if step.object not in gone)) for writer, steps in without_rows(done)]
    transactions = numbered(kept, [chance.randint(0, 50) for _ in kept])
    order = topological_order(chance.sample(transactions, len(transactions)))
    check_writers(order, transactions)
    assert breaks(order) == []


@given(HISTORIES, st.randoms(use_true_random=False))
def test_some_have_ids_while_processes_of_two_releases_write(done, chance):
    mixed = [one if chance.random() < 0.5 else other for one, other in zip(done, without_rows(done), strict=True)]
    transactions = numbered(mixed, range(len(mixed)))
    assert topological_order(chance.sample(transactions, len(transactions))) == transactions


@given(HISTORIES, st.randoms(use_true_random=False))
def test_an_order_has_all_transactions_although_lines_contradict_each_other(done, chance):
    """Other programs may write anything."""
    steps = [step for _, of in done for step in of]
    wrong = [
        (writer, tuple(chance.choice(steps)._replace(row=chance.choice([None, 1, 2])) for _ in of))
        for writer, of in done
    ]
    transactions = numbered(wrong, [chance.randint(0, 50) for _ in wrong])
    check_writers(topological_order(transactions), transactions)


@given(HISTORIES, st.randoms(use_true_random=False))
def test_generations_rise_over_what_is_missing(done, chance):
    """Some writers record nothing; where they delete something, the clocks have to be right."""
    kept = [
        (writer, tuple(step for step in steps if step.after is None or chance.random() < 0.7)) for writer, steps in done
    ]
    transactions = numbered(kept, [chance.randint(0, 50) for _ in kept])
    order = topological_order(transactions)
    check_writers(order, transactions)
    reached = {}
    for step in (step for one in order for step in one.steps):
        place = step.row, -1 if step.before is None else step.before
        assert reached.get(step.object, place) <= place
        reached[step.object] = place


def test_what_is_created_is_deleted_afterwards_although_the_clock_is_behind():
    created = UnorderedTransaction(1, 1, at(10), (GenerationStep("a", 7, None, 1),))
    released = UnorderedTransaction(2, 1, at(5), (GenerationStep("a", 7, 1, None),))
    assert topological_order([released, created]) == [created, released]
    again = UnorderedTransaction(1, 1, at(10), (GenerationStep("a", 8, None, 1),))
    assert topological_order([released, again]) == [released, again]


def test_many_lives_are_put_in_order():
    """Consumers that are claimed and released twice, by processes whose clocks differ, all on one provider."""
    chance, done, generation = random.Random(3), [], 0
    rows = itertools.count(1)
    waiting = {key: [(None, 1), (1, None)] * 2 for key in range(1000)}
    ids = {}
    while waiting:
        key = chance.choice([*itertools.islice(waiting, 8)])
        before, after = waiting[key].pop(0)
        if not waiting[key]:
            del waiting[key]
        if after:
            ids[key] = next(rows)
        steps = [GenerationStep(key, ids[key], before, after)]
        if after:
            steps.append(GenerationStep("provider", 1, generation, generation + 1))
            generation += 1
        done.append((chance.randrange(4), tuple(steps)))
    skew = {0: 0, 1: 0.005, 2: 0.01, 3: 0.02}
    transactions = numbered(done, [number / 1000 + skew[writer] for number, (writer, _) in enumerate(done)])
    assert is_possible(topological_order(transactions))


def test_an_object_that_comes_again_is_deleted_in_between():
    """The clock of the second writer is an hour behind."""
    first = [
        UnorderedTransaction(1, 1, at(4000), (GenerationStep("a", 1, None, 0),)),
        UnorderedTransaction(1, 2, at(4001), (GenerationStep("a", 1, 0, None),)),
    ]
    again = [
        UnorderedTransaction(2, 1, at(401), (GenerationStep("a", 2, None, 0), GenerationStep("b", 1, 8, 9))),
        UnorderedTransaction(2, 2, at(402), (GenerationStep("a", 2, 0, 1),)),
    ]
    assert topological_order([*again, *first]) == [*first, *again]


@given(HISTORIES, st.randoms(use_true_random=False))
def test_clocks_that_are_right_give_the_order_of_what_is_left(done, chance):
    kept = [(writer, tuple(step for step in steps if chance.random() < 0.7)) for writer, steps in done]
    transactions = numbered(kept, range(len(kept)))
    assert topological_order(chance.sample(transactions, len(transactions))) == transactions


def test_a_life_that_goes_on_is_the_last_although_another_one_drew_its_id_later():
    """Between the id and the row of one claim, others have claimed and released the consumer."""
    other = [
        UnorderedTransaction(1, 1, at(1), (GenerationStep("a", 11, None, 1),)),
        UnorderedTransaction(2, 1, at(2), (GenerationStep("a", 11, 1, None),)),
    ]
    claimed = UnorderedTransaction(3, 1, at(3), (GenerationStep("a", 10, None, 1),))
    grown = UnorderedTransaction(1, 2, at(4), (GenerationStep("a", 10, 1, 2),))
    assert topological_order([grown, claimed, *other]) == [*other, claimed, grown]
    assert topological_order([claimed, *other]) == [*other, claimed]


def test_what_has_no_generation_comes_by_time():
    late, early = UnorderedTransaction(1, 1, at(2)), UnorderedTransaction(2, 1, at(1))
    assert topological_order([late, early]) == [early, late]


def test_the_only_writer_at_a_time_says_the_order():
    late, early = UnorderedTransaction(1, 1, at(2), rowid=1), UnorderedTransaction(2, 1, at(1), rowid=2)
    assert topological_order([early, late]) == [late, early]


@pytest.mark.parametrize("writers", [1, 8])
def test_many_transactions_are_put_in_order(writers):
    """Clocks are far apart."""
    done = history(3000, 200, writers, 1)
    transactions = numbered(done, [second + 20 * (writer % 2) for second, (writer, _) in enumerate(done)])
    assert is_possible(topological_order(transactions))
