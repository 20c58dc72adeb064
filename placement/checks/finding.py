"""Findings, the results of checks."""

from __future__ import annotations

import enum
import functools
from dataclasses import dataclass


class Severity(enum.IntEnum):
    """The severity of a finding; the highest one decides the exit code."""

    #: Information; no action is needed.
    INFO = 0
    #: The service works, but something is wrong, lost or about to run out.
    WARNING = 1
    #: The service does not work properly.
    ERROR = 2


def count_phrase(number: int, singular: str, plural: str) -> str:
    """Return a number with a phrase in the singular or the plural: "1 provider has", "2 providers have"."""
    return f"{number} {singular if number == 1 else plural}"


@dataclass(frozen=True, slots=True)
class Finding:
    """A problem, with all places where it occurs."""

    severity: Severity
    #: The problem, in a sentence.
    what: str
    #: The places: files, tables, providers, consumers ...
    where: tuple[str, ...] = ()
    #: The command that fixes it, or else a sentence with advice, which ends with a full stop.
    fix: str = ""
    #: Whether ``doctor --fix`` fixes it.
    fixable: bool = False


error = functools.partial(Finding, Severity.ERROR)
warning = functools.partial(Finding, Severity.WARNING)
info = functools.partial(Finding, Severity.INFO)
