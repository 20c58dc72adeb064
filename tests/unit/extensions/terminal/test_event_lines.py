"""Lines that describe events, with the names of objects."""

from __future__ import annotations

import pytest

from placement.extensions.terminal import event_lines
from placement.extensions.terminal.style import Style
from tests.unit.extensions.terminal.test_events import HOST, SERVER, event

OTHER = "c2000000-0000-4000-8000-000000000002"


@pytest.mark.parametrize(
    ("facts", "verb", "changes"),
    [
        (
            {"generation": [None, 0], "name": "host1", "changes": {"name": [None, "host1"]}},
            "host1 created",
            "",
        ),
        (
            {"generation": [3, None], "name": "host1", "changes": {"name": ["host1", None]}},
            "host1 deleted",
            "",
        ),
        (
            {"name": "new", "changes": {"name": ["old", "new"]}},
            "new changed",
            "name old -> new",
        ),
        (
            {
                "changes": {
                    "inventories": {"VCPU": {"total": [8, 16], "reserved": [None, 0]}, "DISK_GB": {"total": [5, None]}}
                }
            },
            "host1 changed",
            "VCPU.total 8 -> 16, VCPU.reserved 0, DISK_GB.total 5 -> none",
        ),
        (
            {"changes": {"allocations": {"c-1": {"VCPU": [None, 2]}}, "consumers": {"added": ["c-1"]}}},
            *("host1 changed", "VCPU 2 for c-1"),
        ),
        ({"changes": {"traits": {"added": ["A"], "removed": ["B"]}}}, "host1 changed", "traits +A, traits -B"),
        ({"changes": {"allocations": {SERVER: {"VCPU": [None, 2]}}}}, "host1 changed", f"VCPU 2 for {SERVER}"),
    ],
)
def test_an_event_of_a_provider_has_a_sentence(facts, verb, changes):
    assert event_lines.row(event(**facts)) == ("2026-11-20T08:11:35Z", "ann", f"provider {verb}", changes, "PUT /x")


def test_an_event_of_a_consumer_has_a_sentence():
    changes = {"project": [None, "red"], "allocations": {HOST: {"VCPU": [None, 2], "PGPU": [1, None]}}}
    row = event_lines.row(event(kind="consumer", uuid=SERVER, generation=[None, 1], changes=changes, request=None))
    assert row[1:] == (
        *("unknown", f"consumer {SERVER} created"),
        *("project red, VCPU 2 on host1, PGPU 1 -> none on host1", ""),
    )


def test_an_object_without_a_known_name_is_shown_by_its_uuid():
    changes = {"allocations": {HOST: {"VCPU": [None, 2]}}}
    row = event_lines.row(event(kind="consumer", uuid=SERVER, generation=[None, 1], changes=changes, names={}))
    assert row[3] == f"VCPU 2 on {HOST}"
    assert event_lines.row(event(names={}))[2] == f"provider {HOST} changed"


def test_parents_and_roots_are_shown_by_name():
    document = event(changes={"parent": [None, OTHER], "root": [HOST, OTHER]}, names={HOST: "host1", OTHER: "rack1"})
    assert event_lines.row(document)[3] == "parent rack1, root host1 -> rack1"


def test_a_machine_in_an_event_has_the_name_of_its_node():
    """The name of its provider is its uuid."""
    created = event(name=HOST, generation=[None, 0], changes={"name": [None, HOST]}, names={HOST: "node1"})
    assert event_lines.row(created)[2] == "provider node1 created"


def test_a_resource_class_is_shown_by_its_name_alone():
    document = event(
        kind="resource_class", uuid=None, name="CUSTOM_X", generation=[None, None], changes={"name": [None, "CUSTOM_X"]}
    )
    assert event_lines.row(document)[2] == "resource class CUSTOM_X created"


@pytest.mark.parametrize(
    ("name", "changes", "verb"),
    [
        ("n1", {"name": [None, "n1"]}, "changed"),
        ("n1", {"name": ["n1", None]}, "changed"),
        (None, {"driver": [None, "fake"]}, "created"),
        ("n1", {"driver": ["fake", None], "name": ["n1", None]}, "deleted"),
        ("n1", {"driver": ["fake", "ipmi"]}, "changed"),
    ],
)
def test_a_node_is_created_with_its_driver_even_if_it_has_no_name(name, changes, verb):
    text = event_lines.row(event(kind="node", name=name, changes=changes, generation=[None, None]))[2]
    assert text == f"node {name or 'host1'} {verb}"


def test_a_provider_that_gets_its_first_name_is_not_created():
    assert event_lines.row(event(name="host1", changes={"name": [None, "host1"]}, generation=[2, 2]))[2].endswith(
        "changed"
    )


def test_a_line_is_safe_in_a_terminal():
    (line,) = event_lines.lines(iter([event(name="\x1b[31mred", changes={"name": [None, "\x1b[31mred"]})]), Style())
    assert "\x1b" not in line
    assert line.startswith("2026-11-20T08:11:35Z  ann  provider \ufffd[31mred")


def test_a_line_that_is_too_long_for_the_terminal_is_folded():
    changes = {"project": [None, "red"], "allocations": {HOST: {"VCPU": [None, 2], "MEMORY_MB": [None, 8192]}}}
    document = event(kind="consumer", uuid=SERVER, generation=[None, 1], changes=changes)
    assert [*event_lines.lines(iter([document]), Style(75))] == [
        f"2026-11-20T08:11:35Z  ann  consumer {SERVER} created:",
        "    project red, VCPU 2 on host1, MEMORY_MB 8192 on host1",
        "    PUT /x",
    ]
    assert [len(line) <= 40 for line in event_lines.lines(iter([document]), Style(40))][1:] == [True] * 3
    wide = f"consumer {SERVER} created:  project red, VCPU 2 on host1, MEMORY_MB 8192 on host1  PUT /x"
    for style in (Style(), Style(200)):
        assert [*event_lines.lines(iter([document]), style)] == [f"2026-11-20T08:11:35Z  ann  {wide}"]
