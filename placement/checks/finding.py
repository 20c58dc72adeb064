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


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding, about any number of places."""

    severity: Severity
    #: What is wrong: a sentence.
    what: str
    #: Where: files, tables, providers, consumers ...
    where: tuple[str, ...] = ()
    #: The command that mends it, or what to do where there is none.
    mend: str = ""
    #: Whether ``doctor --fix`` mends it.
    fixable: bool = False


error = functools.partial(Finding, Severity.ERROR)
warning = functools.partial(Finding, Severity.WARNING)
info = functools.partial(Finding, Severity.INFO)
