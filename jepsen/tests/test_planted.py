"""The run of each planted fault violates the intended invariant; the same runs violate nothing without it."""

import subprocess
import sys
import tempfile

import pytest

from jepsen import catalogue
from jepsen.planted.faults import VARIABLE, faults, plant
from jepsen.planted.runs import RUNS
from jepsen.tests.running import assert_nothing_violated
from tests.run_length import LONG

CHOSEN = [planted for planted in RUNS if LONG or planted.quick]
FAULTLESS = sorted({planted.without_fault for planted in RUNS}, key=repr)


@pytest.fixture(autouse=True)
def _histories_are_removed(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


@pytest.mark.parametrize("planted", CHOSEN, ids=lambda planted: planted.fault)
def test_a_planted_fault_is_found(planted):
    invariants = {violation.invariant for violation in planted.carry_out().violations}
    assert planted.invariants <= invariants


if LONG:  # short test runs rely on test_runs.py

    @pytest.mark.parametrize(
        "faultless", FAULTLESS, ids=lambda planted: f"{planted.workload}-{planted.cluster}-{planted.nemesis}"
    )
    def test_nothing_is_violated_without_a_fault(faultless, record_property):
        assert_nothing_violated(faultless.carry_out(), record_property)


def test_each_fault_has_a_run():
    assert sorted(faults()) == sorted(planted.fault for planted in RUNS)
    assert all(plant.__doc__ for plant in faults().values())


#: Script that prints the faults that replace nothing, or set an attribute that does not exist: their targets have been
#: renamed.
REPLACING = """
import inspect, sys
from jepsen.planted.faults import faults

for name, plant in faults().items():
    modules = [module for name, module in sys.modules.items() if name.split(".")[0] == "placement"]
    owners = [*modules, *(value for module in modules for value in vars(module).values() if inspect.isclass(value))]
    before = [dict(vars(owner)) for owner in owners]
    plant()
    after = [vars(owner) for owner in owners]
    added = [*set().union(*(now.keys() - then.keys() for then, now in zip(before, after)))]
    if added or not any(now[key] is not value for then, now in zip(before, after) for key, value in then.items()):
        print(name, *added)
"""


def test_each_fault_replaces_something_that_exists():
    result = subprocess.run([sys.executable, "-c", REPLACING], capture_output=True, text=True, check=True)
    assert result.stdout == ""


def test_each_invariant_has_a_fault():
    assert catalogue.INVARIANTS.keys() == catalogue.CHECKS.keys()
    for check, invariants in catalogue.INVARIANTS.items():
        assert invariants, check
    planted = {invariant for planted in RUNS for invariant in planted.invariants}
    assert planted == {invariant for invariants in catalogue.INVARIANTS.values() for invariant in invariants}


def test_an_unknown_fault_is_an_error(monkeypatch):
    monkeypatch.setenv(VARIABLE, "none-of-this-name")
    with pytest.raises(KeyError, match="none-of-this-name"):
        plant()
