"""Every finding of the doctor is documented, and planted by a test (docs: doctor)."""

from __future__ import annotations

import functools
import re
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from placement.checks import finding
from placement.checks.finding import Severity
from placement.extensions.doctor import checks, fixes
from tests.db.extensions.doctor import test_doctor
from tests.db.extensions.doctor.findings import PLANTED
from tests.unit.extensions.doctor import test_configuration, test_galera

TEXT = (Path(__file__).parents[4] / "docs/extensions/doctor.rst").read_text()
MAKERS = {finding.error: Severity.ERROR, finding.warning: Severity.WARNING, finding.info: Severity.INFO}
#: The modules that plant findings; ``plants`` records each finding during the import.
PLANTING = (test_doctor, test_configuration, test_galera)


def severities(function: types.FunctionType, visited: set[object]) -> Iterator[Severity]:
    """Yield the severities of the findings that a check, and the functions it calls, can make."""
    visited.add(function)
    for name in global_names(function.__code__):
        value = function.__globals__.get(name)
        assert value is not finding.Finding, f"{function.__name__}: make findings by error, warning and info"
        if isinstance(value, functools.partial) and value in MAKERS:
            yield MAKERS[value]
        if not isinstance(value, types.FunctionType) or value in visited:
            continue
        if value.__module__.startswith("placement.extensions.doctor."):
            yield from severities(value, visited)


def global_names(code: types.CodeType) -> Iterator[str]:
    """Yield the global names in a function and its nested functions."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from global_names(constant)


def severities_of(check: Any) -> set[Severity]:
    possible = set(severities(check.run, set()))
    assert possible
    return possible


def rows() -> Iterator[tuple[str, str, str]]:
    """Yield check, severity and text of each row of the documented tables."""
    name = ""
    severity = "(error|warning|info)  "
    pattern = rf"^(?:``(\w+)``)? +{severity}(.*(?:\n(?! +{severity}) +.*)*)"
    for check, severity, text, _ in re.findall(pattern, TEXT, flags=re.MULTILINE):
        name = check or name
        yield name, severity, text


@pytest.mark.parametrize("check", checks.CHECKS, ids=lambda check: check.name)
def test_every_finding_is_documented_and_planted(check):
    documented = {Severity[severity.upper()] for name, severity, _ in rows() if name == check.name}
    assert documented == severities_of(check)
    assert {severity for name, severity in PLANTED if name == check.name} == severities_of(check)


def test_only_existing_findings_are_documented_and_planted():
    assert {name for name, _, _ in rows()} == {name for name, _ in PLANTED} == {*checks.NAMES}


def test_every_fix_is_documented():
    assert {name for name, _, text in rows() if "``--fix``" in text} == {fix.check for fix in fixes.FIXES}
