"""What a check has found."""

from __future__ import annotations

import enum
import functools
from dataclasses import dataclass


class Severity(enum.IntEnum):
    """How bad a finding is; the worst one decides the exit code."""

    #: Worth knowing; nothing has to be done.
    INFO = 0
    #: The service works; something is lost, wrong or soon too little.
    WARNING = 1
    #: The service cannot work as it should.
    ERROR = 2


def counted(number: int, one: str, several: str) -> str:
    """Return a number with its noun and verb, in the singular or the plural: "1 provider has", "2 providers have"."""
    return f"{number} {one if number == 1 else several}"


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding, about any number of places."""

    severity: Severity
    #: What is wrong: a sentence.
    what: str
    #: Where: files, tables, providers, consumers ...
    where: tuple[str, ...] = ()
    #: The command that fixes it, or else a sentence that says what to do and ends with a full stop.
    fix: str = ""
    #: Whether ``doctor --fix`` fixes it.
    fixable: bool = False


error = functools.partial(Finding, Severity.ERROR)
warning = functools.partial(Finding, Severity.WARNING)
info = functools.partial(Finding, Severity.INFO)
