"""What a flavor of nova has a server claim, as far as the flavor decides it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

VCPU, PCPU, MEMORY_MB, DISK_GB = "VCPU", "PCPU", "MEMORY_MB", "DISK_GB"
#: Processors are compared as one sum: an image may ask for dedicated ones, too, and a host without PCPU gives VCPU.
PROCESSORS = f"{VCPU}+{PCPU}"
_MB_OF_A_GB = 1024

_UNNUMBERED = re.compile(r"resources:([A-Z0-9_]+)")
_GROUPED = re.compile(r"resources[A-Za-z0-9_-]+:([A-Z0-9_]+)")


@dataclass(frozen=True, slots=True)
class FlavorDemand:
    """Amounts that a server should hold, over all providers together; processors under ``PROCESSORS``."""

    #: Exactly so much.
    exact: Mapping[str, int]
    #: So much or more: ports and device profiles may add to these.
    least: Mapping[str, int]

    def differences(self, held: Mapping[str, int]) -> Iterator[tuple[str, int, int]]:
        """Yield classes, what should be held of them, and what is.

        Args:
            held: Amounts by class.
        """
        has = summed(held)
        for name, amount in self.exact.items():
            if has.get(name, 0) != amount:
                yield name, amount, has.get(name, 0)
        for name, amount in self.least.items():
            if has.get(name, 0) < amount:
                yield name, amount, has.get(name, 0)


def summed(amounts: Mapping[str, int]) -> dict[str, int]:
    """Return the amounts with VCPU and PCPU as one."""
    rest = {name: amount for name, amount in amounts.items() if name not in (VCPU, PCPU)}
    return {PROCESSORS: amounts.get(VCPU, 0) + amounts.get(PCPU, 0), **rest}


def demand(flavor: Mapping[str, Any], *, boots_from_volume: bool) -> FlavorDemand | None:
    """Return what a server of a flavor should hold.

    Args:
        flavor: As nova shows it in a server since 2.47: ``vcpus``, ``ram`` and ``swap`` in MB, ``disk`` and
            ``ephemeral`` in GB, and ``extra_specs``.
        boots_from_volume: Whether the root disk is a volume, so that it takes no room on the host.

    Returns:
        None if nova hides the extra specs, which may decide otherwise.
    """
    specs = flavor.get("extra_specs")
    if specs is None:
        return None
    root = 0 if boots_from_volume else int(flavor["disk"])
    exact = {
        PROCESSORS: _processors(flavor, specs),
        MEMORY_MB: int(flavor["ram"]),
        DISK_GB: root + int(flavor["ephemeral"]) + -(-int(flavor["swap"] or 0) // _MB_OF_A_GB),
    }
    stated = _stated(specs)
    if VCPU in stated or PCPU in stated:
        exact[PROCESSORS] = stated.pop(VCPU, 0) + stated.pop(PCPU, 0)
    exact |= {name: stated.pop(name) for name in (MEMORY_MB, DISK_GB) if name in stated}
    # Of classes in numbered groups this is not the only amount.
    grouped = {found[1] for found in map(_GROUPED.fullmatch, specs) if found}
    if grouped & {VCPU, PCPU}:
        del exact[PROCESSORS]
    return FlavorDemand({name: amount for name, amount in exact.items() if name not in grouped}, stated)


def _processors(flavor: Mapping[str, Any], specs: Mapping[str, str]) -> int:
    # The threads of the emulator have a dedicated processor of their own.
    isolated = specs.get("hw:emulator_threads_policy") == "isolate"
    return int(flavor["vcpus"]) + isolated


def _stated(specs: Mapping[str, str]) -> dict[str, int]:
    """Return the amounts of ``resources:CLASS``, which stand for what the flavor says otherwise."""
    named = ((_UNNUMBERED.fullmatch(key), value) for key, value in specs.items())
    return {found[1]: int(value) for found, value in named if found and value.strip().isdecimal()}
