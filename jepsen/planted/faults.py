"""The registry of faults."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Mapping

#: Environment variable with the name of the fault to plant in a service.
VARIABLE = "PLACEMENT_PLANTED"
_MODULES = ("claims", "providers", "places", "leases", "machines", "feeds", "outcomes")

#: Seconds by which a fault widens a race window.
PAUSE = 0.02

Plant = Callable[[], None]
_FAULTS: dict[str, Plant] = {}


def fault(plant: Plant) -> Plant:
    """Register a function that plants a fault in this process; its docstring describes the fault."""
    _FAULTS[plant.__name__.replace("_", "-")] = plant
    return plant


def faults() -> Mapping[str, Plant]:
    """Return all faults by name."""
    for module in _MODULES:
        importlib.import_module(f"jepsen.planted.{module}")
    return _FAULTS


def plant() -> None:
    """Plant the fault named in the environment, if any; raise KeyError for an unknown name."""
    if name := os.environ.get(VARIABLE):
        faults()[name]()
