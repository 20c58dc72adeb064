"""The lines of an explanation."""

from __future__ import annotations

from placement.extensions.terminal import explain
from placement.extensions.terminal.style import Style

HOST1, HOST2 = ({"uuid": f"00000000-0000-4000-8000-00000000000{n}", "name": f"host{n}"} for n in (1, 2))
DOCUMENT = {
    "query": "resources=VCPU:8&required=HW_NUMA_ROOT",
    "found": 0,
    "limited": False,
    "complete": True,
    "summary": "No provider has room for VCPU:8; 4 would fit.",
    "obstacle": {"rule": "resources", "group": ""},
    "steps": [
        {
            "rule": "required",
            "parameter": "required=HW_NUMA_ROOT",
            "group": "",
            "before": {"providers": 3, "trees": 2},
            "after": {"providers": 2, "trees": 2},
            "removed": [HOST1],
            "amounts": None,
        },
        {
            "rule": "resources",
            "parameter": "resources=VCPU:8",
            "group": "",
            "before": {"providers": 2, "trees": 2},
            "after": {"providers": 0, "trees": 0},
            "removed": [HOST1, HOST2],
            "amounts": {
                "resource_class": "VCPU",
                "amount": 8,
                "blocked_by": {"total": 0, "reserved": 0, "used": 2, "max_unit": 1, "min_unit": 0, "step_size": 0},
                "most": 4,
            },
        },
        {
            "rule": "group",
            "parameter": "resources=VCPU:8",
            "group": "",
            "before": {"providers": 3, "trees": 2},
            "after": {"providers": 0, "trees": 0},
            "removed": [HOST2],
            "amounts": None,
        },
    ],
    "combinations": [{"rule": "same_subtree", "parameter": "same_subtree=1,2", "trees": 1, "examples": [HOST2]}],
    "near_misses": [
        {"root": HOST2, "missing": [{"parameter": "resources=VCPU:8", "provider": HOST2, "text": "4 more VCPU"}]}
    ],
    "relaxations": [
        {"kind": "amount", "text": "lower VCPU to 4", "query": "resources=VCPU:4", "found": 9, "limited": True}
    ],
    "mistakes": [{"kind": "trait", "text": "No provider has HW_NUMA_ROOTS.", "suggestion": "HW_NUMA_ROOT"}],
}
EMPTY = {**DOCUMENT, "found": 3, "summary": "3 candidates.", "steps": [], "combinations": [], "near_misses": []}
EMPTY |= {"relaxations": [], "mistakes": []}


def test_all_that_an_explanation_says():
    assert "\n".join(explain.lines(DOCUMENT, Style())) == (
        """\
No provider has room for VCPU:8; 4 would fit.

Rules, in the order in which they narrow:
rule                         providers  left  trees  left  removed
required=HW_NUMA_ROOT                3     2      2     2  host1
resources=VCPU:8                     2     0      2     0  host1, host2
trees with resources=VCPU:8          3     0      2     0  host2

Amounts:
rule              in the way of           the most of any
resources=VCPU:8  used (2), max_unit (1)                4

Combinations:
rule              trees  such as
same_subtree=1,2      1  host2

Nearest misses:
tree   missing
host2  4 more VCPU

What would help:
change           candidates  query
lower VCPU to 4  9+          resources=VCPU:4

Mistake in the query:
No provider has HW_NUMA_ROOTS.  Suggested: HW_NUMA_ROOT"""
    )


def test_what_there_is_none_of_has_no_section():
    assert next(explain.lines(EMPTY, Style())) == "3 candidates."
    assert not any("Nearest" in line or "help" in line for line in explain.lines(EMPTY, Style()))
    assert (explain.fits(EMPTY), explain.fits(DOCUMENT)) == (True, False)


def test_as_one_table_it_says_the_same():
    rows = list(explain.facts(DOCUMENT))
    assert {len(row) for row in rows} == {len(explain.FACTS)}
    assert [row[0] for row in rows] == [
        *("rule", "rule", "rule", "combination", "near miss", "relaxation", "mistake", "summary"),
    ]
