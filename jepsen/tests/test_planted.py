"""Each planted fault is found by its run, by the invariant that is meant; the same runs find nothing without it."""

import tempfile

import pytest

from jepsen import catalogue
from jepsen.planted.faults import VARIABLE, faults, plant
from jepsen.planted.runs import RUNS
from jepsen.tests.running import assert_nothing_violated
from tests.run_length import LONG

CHOSEN = [one for one in RUNS if LONG or one.quick]
FAULTLESS = sorted({one.without_fault for one in RUNS}, key=repr)


@pytest.fixture(autouse=True)
def _histories_are_removed(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


@pytest.mark.parametrize("planted", CHOSEN, ids=lambda one: one.fault)
def test_a_planted_fault_is_found(planted):
    found = {violation.invariant for violation in planted.carry_out().violations}
    assert planted.invariants <= found


if LONG:  # other runs have those of test_runs.py

    @pytest.mark.parametrize("faultless", FAULTLESS, ids=lambda one: f"{one.workload}-{one.cluster}-{one.nemesis}")
    def test_nothing_is_found_without_a_fault(faultless, record_property):
        assert_nothing_violated(faultless.carry_out(), record_property)


def test_each_fault_has_its_run():
    assert sorted(faults()) == sorted(one.fault for one in RUNS)
    assert all(plant.__doc__ for plant in faults().values())


def test_each_invariant_of_each_check_has_its_fault():
    assert catalogue.INVARIANTS.keys() == catalogue.CHECKS.keys()
    for check, invariants in catalogue.INVARIANTS.items():
        assert invariants, check
    planted = {invariant for one in RUNS for invariant in one.invariants}
    assert planted == {invariant for invariants in catalogue.INVARIANTS.values() for invariant in invariants}


def test_an_unknown_fault_is_an_error(monkeypatch):
    monkeypatch.setenv(VARIABLE, "none-of-this-name")
    with pytest.raises(KeyError, match="none-of-this-name"):
        plant()
