"""The age from which orphans are released, and the numbers that are suspicious."""

from __future__ import annotations

import datetime
from collections import Counter

import pytest

from placement.extensions.orphans.comparison import Review
from placement.extensions.orphans.consumers import AgedHolder
from placement.extensions.orphans.releasing import is_suspicious
from placement.objects.claims.holding import Holding


def orphans(**numbers):
    age = datetime.timedelta(days=2)
    return [AgedHolder(Holding("", type_name=kind), age, {}) for kind, number in numbers.items() for _ in range(number)]


def test_a_consumer_as_old_as_the_bound_is_old_enough():
    (orphan,) = orphans(INSTANCE=1)
    second = datetime.timedelta(seconds=1)
    ages = [orphan.age + difference for difference in (-second, 0 * second, second)]
    assert [orphan.is_older_than(age) for age in ages] == [True, True, False]


@pytest.mark.parametrize(
    ("compared", "chosen", "suspicious"),
    [
        ({"INSTANCE": 4}, {"INSTANCE": 2}, False),
        ({"INSTANCE": 4}, {"INSTANCE": 3}, True),
        # Up to ten consumers of a type do not suggest that the list is wrong.
        ({"INSTANCE": 100, "LEASE": 10}, {"LEASE": 10}, False),
        ({"INSTANCE": 100, "LEASE": 11}, {"LEASE": 11}, True),
        ({"INSTANCE": 100, "LEASE": 22}, {"LEASE": 11}, False),
        ({"INSTANCE": 100, "LEASE": 40}, {"INSTANCE": 11, "LEASE": 20}, False),
        ({"INSTANCE": 100, "LEASE": 40}, {"INSTANCE": 11, "LEASE": 21}, True),
        # At most ten of each type, but more than half of all.
        ({"INSTANCE": 10, "LEASE": 10}, {"INSTANCE": 6, "LEASE": 5}, True),
        ({"INSTANCE": 4}, {}, False),
    ],
)
def test_a_release_of_more_than_half_of_all_or_of_a_type_is_suspicious(compared, chosen, suspicious):
    assert is_suspicious(Review(compared=Counter(compared)), orphans(**chosen)) is suspicious
