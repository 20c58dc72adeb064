"""Reading of usage samples: a period, a limit, one class."""

from __future__ import annotations

import datetime

import pytest
import sqlalchemy as sa

from placement.extensions.v1.history.tables import usage_samples
from placement.extensions.v1.history.usage_samples import UsageSample, last_of_spans

START = datetime.datetime(2026, 11, 1)
STEP = datetime.timedelta(minutes=10)


@pytest.fixture
def month(database):
    """Store samples of two classes, few of them of PGPU; the usage is the number of the interval."""
    rows = [
        {"at": START + number * STEP, "resource_class": name, "capacity": 5000, "used": number}
        for number in range(1000)
        for name in ("VCPU", "PGPU")
        if name == "VCPU" or number < 3
    ]
    database.write(lambda db: db.execute(sa.insert(usage_samples), rows))
    return database


def usage_between(database, since, until, limit, resource_class=None):
    by_class = database.read(
        lambda db: UsageSample.read(db, START + since * STEP, START + until * STEP, limit, resource_class)
    )
    return {name: [sample.used for sample in samples] for name, samples in by_class.items()}


def test_a_period_includes_its_beginning_but_not_its_end(month):
    assert usage_between(month, 2, 5, 100) == {"PGPU": [2], "VCPU": [2, 3, 4]}
    assert usage_between(month, 2, 5, 100, "VCPU") == {"VCPU": [2, 3, 4]}
    assert usage_between(month, 5000, 6000, 100) == {}


def test_the_last_sample_of_each_span_is_read_if_there_are_too_many(month):
    assert usage_between(month, 0, 1000, 4, "VCPU") == {"VCPU": [249, 499, 749, 999]}
    assert usage_between(month, 0, 1000, 1000, "VCPU") == {"VCPU": [*range(1000)]}
    assert usage_between(month, 0, 4000, 4, "VCPU") == {"VCPU": [999]}


def test_spans_without_a_sample_are_left_out():
    timestamps = [START + number * STEP for number in (0, 1, 7)]
    assert last_of_spans(timestamps, START, 3 * STEP) == [timestamps[1], timestamps[2]]
