"""Amounts in human-readable units: 2 859 008 MEMORY_MB is 2.73 TiB."""

from __future__ import annotations

import re

#: Units, smallest first, and the factor between them; the first is the unit of the resource class.
_BYTES = ("MiB", "GiB", "TiB", "PiB", "EiB", "ZiB"), 1024
_BITS = ("kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"), 1000
_PACKETS = ("kpacket/s", "Mpacket/s", "Gpacket/s"), 1000
_UNITS = (
    (re.compile(r"(.*_)?MEMORY_MB"), _BYTES),
    (re.compile(r"(.*_)?DISK_GB"), (_BYTES[0][1:], 1024)),
    (re.compile(r"NET_BW_.*_KILOBIT_PER_SEC"), _BITS),
    (re.compile(r"NET_PACKET_RATE_.*KILOPACKET_PER_SEC"), _PACKETS),
)
#: Nouns shown instead of the names of classes that contain a unit.
_WORDS = {"MEMORY_MB": "memory", "DISK_GB": "disk"}
_SPACE = "\N{NARROW NO-BREAK SPACE}"


def number(amount: int) -> str:
    """Return a number with its digits grouped in threes."""
    return f"{amount:,}".replace(",", _SPACE)


def scale(resource_class: str) -> tuple[int, int]:
    """Return the number of units of a class and the factor between them; (1, 1) without units."""
    units = _units_of(resource_class)
    return (1, 1) if units is None else (len(units[0]), units[1])


def _units_of(resource_class: str) -> tuple[tuple[str, ...], int] | None:
    return next((units for name, units in _UNITS if name.fullmatch(resource_class)), None)


def in_units(amount: int, resource_class: str) -> str:
    """Return an amount, rounded to an integer or three digits, with the unit if the class has one."""
    units = _units_of(resource_class)
    if units is None or not amount:
        return number(amount)
    names, step = units
    value, index = float(amount), 0
    while abs(value) >= step and index < len(names) - 1:
        value, index = value / step, index + 1
    is_whole = value.is_integer() or abs(value) >= 100
    digits = 0 if is_whole else 1 if abs(value) >= 10 else 2
    return f"{number(round(value)) if is_whole else f'{value:.{digits}f}'}{_SPACE}{names[index]}"


def amount_of(amount: int, resource_class: str) -> str:
    """Return an amount with unit and noun, for a sentence: "4 VCPU", "500 GiB disk"."""
    return f"{in_units(amount, resource_class)} {_WORDS.get(resource_class, resource_class)}"
