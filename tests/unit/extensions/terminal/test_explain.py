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


def test_an_explanation_is_shown_completely():
    assert "\n".join(explain.lines(DOCUMENT, Style())) == (
        """\
No provider has room for VCPU:8; 4 would fit.

about        subject                      before  after  detail
rule         required=HW_NUMA_ROOT             2      2  2 of 3 providers left; removed: host1
rule         resources=VCPU:8                  2      0  0 of 2 providers left; removed: host1, host2
amount       resources=VCPU:8                         4  in the way: used (2), max_unit (1)
rule         trees with resources=VCPU:8       2      0  0 of 3 providers left; removed: host2
combination  same_subtree=1,2                  1      0  such as host2
near miss    host2                                       4 more VCPU
relaxation   resources=VCPU:4                  0      9  lower VCPU to 4, or more
mistake                                                  No provider has HW_NUMA_ROOTS.  Suggested: HW_NUMA_ROOT"""
    )


def test_an_explanation_without_rows_shows_the_summary():
    assert [*explain.lines(EMPTY, Style())] == ["3 candidates."]
    assert (explain.fits(EMPTY), explain.fits(DOCUMENT)) == (True, False)


def test_machine_readable_output_has_the_summary_as_a_row():
    assert [*explain.rows(EMPTY, everywhere=True)] == [("summary", "", None, 3, "3 candidates.")]
