"""The order of committed transactions: it respects the numbers of each writer and the generations of each object."""

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
    """Return random transactions in the order of their commits, as pairs of a writer and steps.

    Some objects exist from the beginning.  Each creation of an object uses a new row id.
    """
    chance = random.Random(seed)
    rows = itertools.count(1)
    states = {key: chance.choice([None, 0, 5]) for key in range(objects)}
    ids = {key: next(rows) for key in range(objects)}
    commits = []
    for _ in range(number):
        steps = []
        for key in chance.sample(range(objects), chance.randint(1, min(3, objects))):
            before = states[key]
            if before is None:
                ids[key] = next(rows)
            after = chance.choice([0, 1]) if before is None else chance.choice([before + 1, before + 1, before, None])
            states[key] = after
            steps.append(GenerationStep(key, ids[key], before, after))
        commits.append((chance.randrange(writers), tuple(steps)))
    return commits


def number_transactions(commits, times):
    """Return the commits as transactions, numbered by their writers, at the given times in seconds."""
    numbers = {}
    transactions = []
    for (writer, steps), second in zip(commits, times, strict=True):
        numbers[writer] = numbers.get(writer, 0) + 1
        transactions.append(UnorderedTransaction(writer, numbers[writer], at(second), steps))
    return transactions


def is_possible(order):
    """Whether the transactions can have been committed in this order: apply their steps one by one."""
    newest, states = {}, {}
    for transaction in order:
        if transaction.seq != newest.get(transaction.writer, 0) + 1:
            return False
        newest[transaction.writer] = transaction.seq
        for step in transaction.steps:
            row, generation = states.get(step.object, (0, step.before))
            # Each creation of an object inserts a row with a larger id; 0 is an object without an earlier step.
            is_new = step.before is None or row == 0
            is_its_row = step.row > row if is_new else step.row == row
            if generation != step.before or not is_its_row:
                return False
            states[step.object] = (step.row, step.after)
    return True


def check_writers(order, transactions):
    """Check that an order contains all transactions and respects the numbers of each writer."""
    newest = {}
    for transaction in order:
        assert transaction.seq == newest.get(transaction.writer, 0) + 1
        newest[transaction.writer] = transaction.seq
    assert len(order) == len(transactions)


def without_rows(commits):
    """Return the commits as earlier releases recorded them: without row ids."""
    return [(writer, tuple(step._replace(row=None) for step in steps)) for writer, steps in commits]


def mismatched_steps(order):
    """Return the steps that do not continue the generations of their object, as (object, expected, actual)."""
    states, mismatches = {}, []
    for transaction in order:
        for step in transaction.steps:
            if states.get(step.object, step.before) != step.before:
                mismatches.append((step.object, states[step.object], step.before))
            states[step.object] = step.after
    return mismatches


HISTORIES = st.builds(history, st.integers(1, 40), st.integers(1, 6), st.integers(1, 6), st.integers(0, 10**6))
SHORT_HISTORIES = st.builds(history, st.integers(1, 6), st.integers(1, 3), st.integers(1, 3), st.integers(0, 10**6))


@given(SHORT_HISTORIES, st.randoms(use_true_random=False))
def test_the_order_is_the_possible_one_nearest_to_the_times(commits, chance):
    """Try all orders: permutations of the order by time come in lexicographic order, so the nearest comes first."""
    transactions = number_transactions(commits, [chance.randint(0, 5) for _ in commits])
    by_time = sorted(transactions, key=lambda transaction: (transaction.at, transaction.writer, transaction.seq))
    possible = (list(order) for order in itertools.permutations(by_time) if is_possible(order))
    assert topological_order(chance.sample(transactions, len(transactions))) == next(possible)


@given(HISTORIES, st.randoms(use_true_random=False))
def test_the_order_is_possible_with_any_clocks(commits, chance):
    transactions = number_transactions(commits, [chance.randint(0, 50) for _ in commits])
    order = topological_order(chance.sample(transactions, len(transactions)))
    check_writers(order, transactions)
    assert is_possible(order)


@given(HISTORIES)
def test_with_correct_clocks_the_order_is_the_order_of_the_commits(commits):
    transactions = number_transactions(commits, range(len(commits)))
    assert topological_order(reversed(transactions)) == transactions


@given(HISTORIES)
def test_with_correct_clocks_row_ids_are_not_needed(commits):
    """Earlier releases recorded no row ids."""
    transactions = number_transactions(without_rows(commits), range(len(commits)))
    assert topological_order(reversed(transactions)) == transactions


@given(HISTORIES, st.randoms(use_true_random=False))
def test_without_row_ids_objects_that_are_never_deleted_need_no_clock(commits, chance):
    deleted = {step.object for _, steps in commits for step in steps if step.after is None}
    recorded = [
        (writer, tuple(step for step in steps if step.object not in deleted)) for writer, steps in without_rows(commits)
    ]
    transactions = number_transactions(recorded, [chance.randint(0, 50) for _ in recorded])
    order = topological_order(chance.sample(transactions, len(transactions)))
    check_writers(order, transactions)
    assert mismatched_steps(order) == []


@given(HISTORIES, st.randoms(use_true_random=False))
def test_with_correct_clocks_some_steps_may_lack_row_ids(commits, chance):
    pairs = zip(commits, without_rows(commits), strict=True)
    mixed = [new if chance.random() < 0.5 else old for new, old in pairs]
    transactions = number_transactions(mixed, range(len(mixed)))
    assert topological_order(chance.sample(transactions, len(transactions))) == transactions


@given(HISTORIES, st.randoms(use_true_random=False))
def test_the_order_contains_all_transactions_even_if_chains_contradict_each_other(commits, chance):
    """Other implementations may write any rows."""
    all_steps = [step for _, steps in commits for step in steps]
    contradictory = [
        (writer, tuple(chance.choice(all_steps)._replace(row=chance.choice([None, 1, 2])) for _ in steps))
        for writer, steps in commits
    ]
    transactions = number_transactions(contradictory, [chance.randint(0, 50) for _ in contradictory])
    check_writers(topological_order(transactions), transactions)


@given(HISTORIES, st.randoms(use_true_random=False))
def test_generations_increase_across_unrecorded_steps(commits, chance):
    """Some writers record no steps, but every deletion is recorded: without it, the order depends on the clocks."""
    recorded = [
        (writer, tuple(step for step in steps if step.after is None or chance.random() < 0.7))
        for writer, steps in commits
    ]
    transactions = number_transactions(recorded, [chance.randint(0, 50) for _ in recorded])
    order = topological_order(transactions)
    check_writers(order, transactions)
    newest = {}
    for step in (step for transaction in order for step in transaction.steps):
        state = step.row, -1 if step.before is None else step.before
        assert newest.get(step.object, state) <= state
        newest[step.object] = state


def test_a_deletion_follows_its_creation_even_if_its_clock_is_behind():
    created = UnorderedTransaction(1, 1, at(10), (GenerationStep("a", 7, None, 1),))
    released = UnorderedTransaction(2, 1, at(5), (GenerationStep("a", 7, 1, None),))
    assert topological_order([released, created]) == [created, released]
    later = UnorderedTransaction(1, 1, at(10), (GenerationStep("a", 8, None, 1),))
    assert topological_order([released, later]) == [released, later]


def test_many_lifetimes_are_ordered():
    """Processes whose clocks differ claim and release each consumer twice, all on one provider."""
    chance, commits, generation = random.Random(3), [], 0
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
        commits.append((chance.randrange(4), tuple(steps)))
    skew = {0: 0, 1: 0.005, 2: 0.01, 3: 0.02}
    transactions = number_transactions(
        commits, [number / 1000 + skew[writer] for number, (writer, _) in enumerate(commits)]
    )
    assert is_possible(topological_order(transactions))


def test_an_object_is_deleted_before_it_is_created_again():
    """The clock of the second writer is an hour behind."""
    first_lifetime = [
        UnorderedTransaction(1, 1, at(4000), (GenerationStep("a", 1, None, 0),)),
        UnorderedTransaction(1, 2, at(4001), (GenerationStep("a", 1, 0, None),)),
    ]
    second_lifetime = [
        UnorderedTransaction(2, 1, at(401), (GenerationStep("a", 2, None, 0), GenerationStep("b", 1, 8, 9))),
        UnorderedTransaction(2, 2, at(402), (GenerationStep("a", 2, 0, 1),)),
    ]
    assert topological_order([*second_lifetime, *first_lifetime]) == [*first_lifetime, *second_lifetime]


@given(HISTORIES, st.randoms(use_true_random=False))
def test_with_correct_clocks_unrecorded_steps_do_not_change_the_order(commits, chance):
    recorded = [(writer, tuple(step for step in steps if chance.random() < 0.7)) for writer, steps in commits]
    transactions = number_transactions(recorded, range(len(recorded)))
    assert topological_order(chance.sample(transactions, len(transactions))) == transactions


def test_the_present_lifetime_is_the_last_even_if_an_earlier_one_has_a_higher_row_id():
    """After the database assigned a claim's row id, and before it inserted the row, others claimed and released."""
    earlier_lifetime = [
        UnorderedTransaction(1, 1, at(1), (GenerationStep("a", 11, None, 1),)),
        UnorderedTransaction(2, 1, at(2), (GenerationStep("a", 11, 1, None),)),
    ]
    claimed = UnorderedTransaction(3, 1, at(3), (GenerationStep("a", 10, None, 1),))
    grown = UnorderedTransaction(1, 2, at(4), (GenerationStep("a", 10, 1, 2),))
    assert topological_order([grown, claimed, *earlier_lifetime]) == [*earlier_lifetime, claimed, grown]
    assert topological_order([claimed, *earlier_lifetime]) == [*earlier_lifetime, claimed]


def test_transactions_without_steps_are_ordered_by_time():
    late, early = UnorderedTransaction(1, 1, at(2)), UnorderedTransaction(2, 1, at(1))
    assert topological_order([late, early]) == [early, late]


def test_rowids_decide_the_order_on_sqlite():
    late, early = UnorderedTransaction(1, 1, at(2), rowid=1), UnorderedTransaction(2, 1, at(1), rowid=2)
    assert topological_order([early, late]) == [late, early]


@pytest.mark.parametrize("writers", [1, 8])
def test_many_transactions_are_ordered(writers):
    """The clocks of every other writer are far ahead."""
    commits = history(3000, 200, writers, 1)
    transactions = number_transactions(
        commits, [second + 20 * (writer % 2) for second, (writer, _) in enumerate(commits)]
    )
    assert is_possible(topological_order(transactions))
