"""The verbs, lines and names that describe events."""

from __future__ import annotations

import datetime

import pytest

from placement.extensions.console.views import event_text
from placement.extensions.console.views.event_text import ChangeLine, EventFormatter, ObjectLink, ValueChange
from placement.extensions.v1.history.event import Event

NOW = datetime.datetime(2026, 11, 23, 12)
GONE, CLAIMED = "11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"


def text_of(kind, changes, generations=(None, None), *, uuid=GONE, name=None):
    """Return the text of an event; only the provider host has a known name."""
    event = Event(1, "1-00000000", NOW, kind, uuid, name, generations, changes, None, None)
    return EventFormatter({"host": "host"}).entry(event, NOW)


@pytest.mark.parametrize(
    ("kind", "changes", "generations", "verb"),
    [
        ("provider", {"name": [None, "x"]}, (None, 0), "created"),
        ("provider", {"name": ["x", None]}, (4, None), "deleted"),
        ("provider", {"name": ["x", "y"]}, (4, 4), "renamed"),
        ("provider", {"traits": {"added": ["A"]}}, (4, 5), "changed"),
        ("provider", {"allocations": {CLAIMED: {"VCPU": [2, None]}}}, (None, None), "changed"),
        ("consumer", {"project": [None, "p"]}, (None, 1), "claimed"),
        ("consumer", {"project": ["p", None]}, (1, None), "released everything it held"),
        ("consumer", {"reason": [None, "expired"]}, (1, None), "expired"),
        ("consumer", {"lease": [None, "2026-11-23T12:00:00.000000Z"]}, (None, None), "changed"),
        ("node", {"driver": [None, "fake"], "name": [None, "n"]}, (None, None), "created"),
        ("node", {"driver": ["fake", None]}, (None, None), "deleted"),
        ("node", {"name": ["n", "m"]}, (None, None), "renamed"),
        ("node", {"name": [None, "m"]}, (None, None), "changed"),
        ("trait", {"name": [None, "CUSTOM_A"]}, (None, None), "created"),
        ("resource_class", {"name": ["CUSTOM_A", None]}, (None, None), "deleted"),
        ("resource_class", {"name": ["CUSTOM_A", "CUSTOM_B"]}, (None, None), "renamed"),
    ],
)
def test_the_verb_describes_the_event(kind, changes, generations, verb):
    assert text_of(kind, changes, generations).verb == verb


@pytest.mark.parametrize(
    ("kind", "changes", "lines"),
    [
        ("provider", {"name": [None, "x"]}, []),
        ("provider", {"name": ["x", "y"]}, [ChangeLine("Name", pairs=(ValueChange("", "x", "y"),))]),
        (
            "provider",
            {"parent": [None, "host"]},
            [ChangeLine("Parent", pairs=(ValueChange("", None, ObjectLink("providers", "host", "host")),))],
        ),
        (
            "provider",
            {"inventories": {"VCPU": {"total": [8, 16], "max_unit": [8, 16]}}},
            [
                ChangeLine(
                    "Inventory of VCPU",
                    pairs=(ValueChange("total", 8, 16), ValueChange("max unit", 8, 16)),
                    resource_class="VCPU",
                )
            ],
        ),
        (
            "provider",
            {"inventories": {"VCPU": {"total": [None, 16]}, "CUSTOM_A_B": {"total": [16, None]}}},
            [
                ChangeLine("New inventory of VCPU", pairs=(ValueChange("total", None, 16),), resource_class="VCPU"),
                ChangeLine(
                    "Removed inventory of CUSTOM_A_B",
                    pairs=(ValueChange("total", 16, None),),
                    resource_class="CUSTOM_A_B",
                ),
            ],
        ),
        (
            "provider",
            {"traits": {"added": ["A", "B"], "removed": ["C"]}},
            [ChangeLine("Traits added", names=("A", "B")), ChangeLine("Traits removed", names=("C",))],
        ),
        (
            "provider",
            {"allocations": {CLAIMED: {"DISK_GB": [2, 3], "VCPU": [1, None]}}},
            [
                ChangeLine(
                    "Allocation changed for",
                    ObjectLink("consumers", CLAIMED, CLAIMED),
                    (ValueChange("DISK_GB", 2, 3), ValueChange("VCPU", 1, None)),
                )
            ],
        ),
        (
            "consumer",
            {"allocations": {"host": {"VCPU": [None, 2]}, GONE: {"VCPU": [2, None]}}},
            [
                ChangeLine("Allocated from", ObjectLink("providers", "host", "host"), (ValueChange("VCPU", None, 2),)),
                ChangeLine("Released to", ObjectLink("providers", GONE, GONE), (ValueChange("VCPU", 2, None),)),
            ],
        ),
        ("consumer", {"reason": [None, "expired"]}, []),
        (
            "provider",
            {"allocations": {CLAIMED: {"VCPU": [None, 2]}}, "consumers": {"added": [CLAIMED]}},
            [ChangeLine("Allocated to", ObjectLink("consumers", CLAIMED, CLAIMED), (ValueChange("VCPU", None, 2),))],
        ),
        (
            "node",
            {"maintenance": [False, True], "provision_state": ["a", "b"], "details": {"driver_info": ["present", "x"]}},
            [
                ChangeLine("Maintenance", pairs=(ValueChange("", "no", "yes"),)),
                ChangeLine("Provision state", pairs=(ValueChange("", "a", "b"),)),
                ChangeLine("Details changed", names=("driver_info",)),
            ],
        ),
        ("node", {"name": [None, "x"]}, [ChangeLine("Name", pairs=(ValueChange("", None, "x"),))]),
        (
            "provider",
            {"future_field": [[1], {"a": 2}]},
            [ChangeLine("Future field", pairs=(ValueChange("", "[1]", '{"a":2}'),))],
        ),
    ],
)
def test_each_change_has_its_line(kind, changes, lines):
    assert [*text_of(kind, changes).lines] == lines


def test_omitted_lines_are_counted():
    entry = text_of("provider", {"allocations": {str(number): {"VCPU": [None, 1]} for number in range(50)}})
    assert (len(entry.lines), entry.more) == (20, 30)
    entry = text_of("provider", {"allocations": {str(number): {"VCPU": [None, 1]} for number in range(20)}})
    assert (len(entry.lines), entry.more) == (20, 0)


def test_the_name_is_from_the_event_or_else_the_current_name_or_the_uuid():
    assert text_of("provider", {}, uuid="host", name="former").name == "former"
    assert text_of("provider", {}, uuid="host").name == "host"
    assert text_of("provider", {}).name == GONE
    trait = text_of("trait", {"name": [None, "CUSTOM_A"]}, uuid=None, name="CUSTOM_A")
    assert (trait.kind, trait.name, trait.link) == ("Trait", "CUSTOM_A", None)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (-5, "just now"),
        (59, "just now"),
        (60, "1 min ago"),
        (3599, "59 min ago"),
        (3600, "1 h 0 min ago"),
        (86399, "23 h 59 min ago"),
        (86400, "1 day ago"),
        (2 * 86400 - 1, "1 day ago"),
        (30 * 86400, "30 days ago"),
    ],
)
def test_an_age_is_in_minutes_within_a_day(seconds, words):
    assert event_text.ago(NOW - datetime.timedelta(seconds=seconds), NOW) == words
