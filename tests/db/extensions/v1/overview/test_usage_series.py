"""Samples of the usage as they are read: a period, few of many, one class."""

from __future__ import annotations

import datetime

import pytest
import sqlalchemy as sa

from placement.extensions.v1.history.tables import usage_samples
from placement.extensions.v1.history.usage_samples import UsageSample, spread

START = datetime.datetime(2026, 11, 1)
STEP = datetime.timedelta(minutes=10)


@pytest.fixture
def month(database):
    """Samples of two classes, of which one has few; the amount used is the number of the interval."""
    rows = [
        {"at": START + number * STEP, "resource_class": name, "capacity": 5000, "used": number}
        for number in range(1000)
        for name in ("VCPU", "PGPU")
        if name == "VCPU" or number < 3
    ]
    database.write(lambda db: db.execute(sa.insert(usage_samples), rows))
    return database


def used(database, since, until, most, resource_class=None):
    found = database.read(
        lambda db: UsageSample.between(db, START + since * STEP, START + until * STEP, most, resource_class)
    )
    return {name: [sample.used for sample in samples] for name, samples in found.items()}


def test_a_period_has_its_beginning_and_not_its_end(month):
    assert used(month, 2, 5, 100) == {"PGPU": [2], "VCPU": [2, 3, 4]}
    assert used(month, 2, 5, 100, "VCPU") == {"VCPU": [2, 3, 4]}
    assert used(month, 5000, 6000, 100) == {}


def test_of_many_samples_the_last_of_each_span_is_shown(month):
    assert used(month, 0, 1000, 4, "VCPU") == {"VCPU": [249, 499, 749, 999]}
    assert used(month, 0, 1000, 1000, "VCPU") == {"VCPU": [*range(1000)]}
    assert used(month, 0, 4000, 4, "VCPU") == {"VCPU": [999]}


def test_spans_without_a_sample_are_left_out():
    moments = [START + number * STEP for number in (0, 1, 7)]
    assert spread(moments, START, 3 * STEP) == [moments[1], moments[2]]
