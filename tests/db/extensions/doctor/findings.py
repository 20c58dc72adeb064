"""Declarations of planted findings, which tests/unit/extensions/doctor/test_checks.py compares with the checks."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from placement.checks.finding import Severity
from placement.extensions.doctor import signals

#: The check and the severity of each planted finding.
PLANTED: set[tuple[str, Severity]] = set()


def plants(check: str, *severities: Severity) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Declare the findings that a test plants; a run of the test fails if the doctor reports none of them."""
    expected = {(check, severity) for severity in severities}
    PLANTED.update(expected)

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(test)
        def run(*arguments: Any, **keywords: Any) -> None:
            reported: set[tuple[str, str]] = set()

            def note(counts: dict[tuple[str, str], int]) -> None:
                reported.update(finding for finding, count in counts.items() if count)

            signals.examined.connect(note)
            try:
                test(*arguments, **keywords)
            finally:
                signals.examined.disconnect(note)
            assert reported & {(check, severity.name.lower()) for severity in severities}

        return run

    return decorate
