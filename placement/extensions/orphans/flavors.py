"""Amounts that a server should hold according to its flavor in nova."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

VCPU, PCPU, MEMORY_MB, DISK_GB = "VCPU", "PCPU", "MEMORY_MB", "DISK_GB"
#: VCPU and PCPU are compared as one sum: images can also request dedicated processors, and hosts without PCPU provide
#: VCPU instead.
PROCESSORS = f"{VCPU}+{PCPU}"
_MB_PER_GB = 1024

_UNNUMBERED = re.compile(r"resources:([A-Z0-9_]+)")
_GROUPED = re.compile(r"resources[A-Za-z0-9_-]+:([A-Z0-9_]+)")


@dataclass(frozen=True, slots=True)
class FlavorDemand:
    """Amounts that a server should hold, over all providers together; processors under ``PROCESSORS``."""

    #: Exact amounts.
    exact: Mapping[str, int]
    #: Minimum amounts, to which ports and device profiles may add.
    minimum: Mapping[str, int]

    def differences(self, allocated: Mapping[str, int]) -> Iterator[tuple[str, int, int]]:
        """Yield the class, the demanded amount and the held amount of each difference.

        Args:
            allocated: Amounts by class.
        """
        allocated = sum_processors(allocated)
        for name, amount in self.exact.items():
            if allocated.get(name, 0) != amount:
                yield name, amount, allocated.get(name, 0)
        for name, amount in self.minimum.items():
            if allocated.get(name, 0) < amount:
                yield name, amount, allocated.get(name, 0)


def sum_processors(amounts: Mapping[str, int]) -> dict[str, int]:
    """Return the amounts with VCPU and PCPU summed as ``PROCESSORS``."""
    unchanged = {name: amount for name, amount in amounts.items() if name not in (VCPU, PCPU)}
    return {PROCESSORS: amounts.get(VCPU, 0) + amounts.get(PCPU, 0), **unchanged}


def demand(flavor: Mapping[str, Any], *, boots_from_volume: bool) -> FlavorDemand | None:
    """Return the amounts that a server of a flavor should hold; None if nova hides the extra specs.

    Args:
        flavor: The flavor in a server since 2.47: ``vcpus``, ``ram`` and ``swap`` in MB, ``disk`` and ``ephemeral`` in
            GB, and ``extra_specs``.
        boots_from_volume: Whether the root disk is a volume, which uses no disk of the host.
    """
    specs = flavor.get("extra_specs")
    if specs is None:
        return None
    root = 0 if boots_from_volume else int(flavor["disk"])
    exact = {
        PROCESSORS: _processors(flavor, specs),
        MEMORY_MB: int(flavor["ram"]),
        DISK_GB: root + int(flavor["ephemeral"]) + -(-int(flavor["swap"] or 0) // _MB_PER_GB),
    }
    class_amounts = _stated_amounts(specs)
    if VCPU in class_amounts or PCPU in class_amounts:
        exact[PROCESSORS] = class_amounts.pop(VCPU, 0) + class_amounts.pop(PCPU, 0)
    exact |= {name: class_amounts.pop(name) for name in (MEMORY_MB, DISK_GB) if name in class_amounts}
    # Numbered groups add amounts of these classes.
    grouped = {match[1] for match in map(_GROUPED.fullmatch, specs) if match}
    if grouped & {VCPU, PCPU}:
        del exact[PROCESSORS]
    return FlavorDemand({name: amount for name, amount in exact.items() if name not in grouped}, class_amounts)


def _processors(flavor: Mapping[str, Any], specs: Mapping[str, str]) -> int:
    # The emulator threads run on a dedicated processor.
    isolated = specs.get("hw:emulator_threads_policy") == "isolate"
    return int(flavor["vcpus"]) + isolated


def _stated_amounts(specs: Mapping[str, str]) -> dict[str, int]:
    """Return the amounts of ``resources:CLASS``, which replace the flavor's own amounts."""
    matches = ((_UNNUMBERED.fullmatch(key), value) for key, value in specs.items())
    return {match[1]: int(value) for match, value in matches if match and value.strip().isdecimal()}
