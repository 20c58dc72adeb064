"""The output of placement-ask for the doctor's document (docs: ask)."""

from __future__ import annotations

import pytest

from placement.extensions.terminal import doctor
from placement.extensions.terminal.style import Style

FINDING = {
    "severity": "warning",
    "check": "lost_allocations",
    "what": "Allocations of providers that do not exist.",
    "count": 25,
    "where": [f"consumer {number}" for number in range(25)],
    "fix": "placement-manage doctor --fix --yes",
    "fixable": True,
}
MADE = {"name": "roots", "seconds": 0.1, "not_made": None}
SKIPPED = {"name": "keystone", "seconds": 0, "not_made": "It asks the Identity service."}


def shown_lines(findings, checks=(MADE,)):
    return list(doctor.lines({"findings": findings, "checks": list(checks)}, Style()))


def test_a_finding_is_shown_with_its_fix():
    lines = shown_lines([FINDING])
    assert lines[:3] == ["warning: lost_allocations", f"  {FINDING['what']}", "    consumer 0"]
    assert lines[22:24] == [
        "    and 5 more: placement-manage doctor --json prints all",
        "  fix: placement-manage doctor --fix --yes",
    ]
    assert lines[-1] == "1 check, 1 finding."


def test_the_absence_of_findings_is_reported():
    assert shown_lines([], [MADE, SKIPPED]) == [
        "1 check, 0 findings.",
        "skipped: keystone: It asks the Identity service.",
    ]


def test_control_characters_of_names_do_not_reach_the_terminal():
    lines = shown_lines([FINDING | {"where": ["\x1b[31mred"], "count": 1}])
    assert not any("\x1b" in line for line in lines)


@pytest.mark.parametrize(("severity", "well"), [("info", True), ("warning", False), ("error", False)])
def test_information_alone_is_a_success(severity, well):
    assert doctor.is_well({"findings": [FINDING | {"severity": severity}]}) is well
