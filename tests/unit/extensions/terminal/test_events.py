"""placement-ask events: a line for each event, and the requests of --follow."""

from __future__ import annotations

import argparse

import pytest

from placement.extensions.terminal import events
from placement.extensions.terminal.client import ServiceError
from placement.extensions.terminal.style import Style

HOST, OTHER = "c1000000-0000-4000-8000-000000000001", "c2000000-0000-4000-8000-000000000002"
SERVER = "e1000000-0000-4000-8000-000000000001"


def event(number=1, **facts):
    return {
        "position": f"{number}-00000000",
        "at": "2026-11-20T08:11:35.000250Z",
        "kind": "provider",
        "uuid": HOST,
        "name": None,
        "generation": [1, 2],
        "changes": {},
        "project": None,
        "request": {"user": "ann", "route": "PUT /x"},
        "names": {HOST: "host1"},
        **facts,
    }


@pytest.mark.parametrize(
    ("facts", "what", "changes"),
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
def test_an_event_of_a_provider_is_said_in_words(facts, what, changes):
    assert events.row(event(**facts)) == ("2026-11-20T08:11:35Z", "ann", f"provider {what}", changes, "PUT /x")


def test_an_event_of_a_consumer_is_said_in_words():
    changes = {"project": [None, "red"], "allocations": {HOST: {"VCPU": [None, 2], "PGPU": [1, None]}}}
    found = events.row(event(kind="consumer", uuid=SERVER, generation=[None, 1], changes=changes, request=None))
    assert found[1:] == (
        *("unknown", f"consumer {SERVER} created"),
        *("project red, VCPU 2 on host1, PGPU 1 -> none on host1", ""),
    )


def test_what_has_no_known_name_is_named_by_its_uuid():
    changes = {"allocations": {HOST: {"VCPU": [None, 2]}}}
    found = events.row(event(kind="consumer", uuid=SERVER, generation=[None, 1], changes=changes, names={}))
    assert found[3] == f"VCPU 2 on {HOST}"
    assert events.row(event(names={}))[2] == f"provider {HOST} changed"


def test_parent_and_root_are_named():
    moved = event(changes={"parent": [None, OTHER], "root": [HOST, OTHER]}, names={HOST: "host1", OTHER: "rack1"})
    assert events.row(moved)[3] == "parent rack1, root host1 -> rack1"


def test_a_machine_has_the_name_of_its_node():
    """The name of its provider is the uuid."""
    created = event(name=HOST, generation=[None, 0], changes={"name": [None, HOST]}, names={HOST: "node1"})
    assert events.row(created)[2] == "provider node1 created"


def test_a_resource_class_has_a_name_alone():
    found = event(
        kind="resource_class", uuid=None, name="CUSTOM_X", generation=[None, None], changes={"name": [None, "CUSTOM_X"]}
    )
    assert events.row(found)[2] == "resource class CUSTOM_X created"


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
def test_a_node_begins_with_its_driver_and_may_have_no_name(name, changes, verb):
    said = events.row(event(kind="node", name=name, changes=changes, generation=[None, None]))[2]
    assert said == f"node {name or 'host1'} {verb}"


def test_a_provider_that_gets_its_first_name_is_not_created():
    assert events.row(event(name="host1", changes={"name": [None, "host1"]}, generation=[2, 2]))[2].endswith("changed")


def test_a_line_is_safe_in_a_terminal():
    (line,) = events.lines(iter([event(name="\x1b[31mred", changes={"name": [None, "\x1b[31mred"]})]), Style())
    assert "\x1b" not in line
    assert line.startswith("2026-11-20T08:11:35Z  ann  provider \ufffd[31mred")


def test_a_line_that_is_too_long_for_the_terminal_is_folded():
    changes = {"project": [None, "red"], "allocations": {HOST: {"VCPU": [None, 2], "MEMORY_MB": [None, 8192]}}}
    one = event(kind="consumer", uuid=SERVER, generation=[None, 1], changes=changes)
    assert [*events.lines(iter([one]), Style(75))] == [
        f"2026-11-20T08:11:35Z  ann  consumer {SERVER} created:",
        "    project red, VCPU 2 on host1, MEMORY_MB 8192 on host1",
        "    PUT /x",
    ]
    assert [len(line) <= 40 for line in events.lines(iter([one]), Style(40))][1:] == [True] * 3
    wide = f"consumer {SERVER} created:  project red, VCPU 2 on host1, MEMORY_MB 8192 on host1  PUT /x"
    for style in (Style(), Style(200)):
        assert [*events.lines(iter([one]), style)] == [f"2026-11-20T08:11:35Z  ann  {wide}"]


class Service:
    """Answers requests one after another, and is away where there is a ServiceError."""

    def __init__(self, *answers):
        self.answers, self.asked = [*answers], []

    def get(self, _path, query):
        self.asked.append(dict(pair.split("=") for pair in query.split("&")))
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def stories(self, path, query):
        yield self.get(path, "&".join("=".join(pair) for pair in query))


def page(position, *found):
    return {"events": [*found], "position": position}


def arguments(**given):
    names = (*events._CONDITIONS, "after", "limit")
    return argparse.Namespace(**{**dict.fromkeys(names), "follow": False, "timeout": 60, **given})


class Clock:
    """Stands in for the module time: a pause takes none."""

    def __init__(self):
        self.now = 0.0

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(events, "time", clock)
    return clock


def test_events_are_read_to_the_end():
    """A page without events is not the last one while the position moves."""
    service = Service(page("1-a", event()), page("9-b"), page("9-b"))
    assert len([*events.events(service, arguments(project="red"), print)]) == 1
    assert [asked.get("after") for asked in service.asked] == [None, "1-a", "9-b"]
    assert {asked["project"] for asked in service.asked} == {"red"}


def test_a_limit_ends_the_events():
    service = Service(page("2-a", event(1), event(2)))
    assert len([*events.events(service, arguments(limit=1), print)]) == 1
    assert service.asked[0]["limit"] == "1"


def test_a_follower_begins_with_the_next_event_and_waits():
    service = Service(page("4-a"), page("4-a"), page("5-b", event(5)))
    following = events.events(service, arguments(follow=True), print)
    assert next(following)["position"] == "5-00000000"
    assert [asked["after"] for asked in service.asked] == ["now", "4-a", "4-a"]
    assert {asked["wait"] for asked in service.asked} == {"50"}


def test_a_follower_goes_on_after_the_service_was_away():
    notices = []
    away = ServiceError("It cannot be reached."), ServiceError("503 Service Unavailable: x", 503)
    service = Service(page("4-a", event(4)), *away, page("5-b", event(5)), away[0], page("6-c", event(6)))
    following = events.events(service, arguments(follow=True, after="3-z"), notices.append)
    assert [next(following)["position"][0] for _ in range(3)] == ["4", "5", "6"]
    assert [asked["after"] for asked in service.asked] == ["3-z", "4-a", "4-a", "4-a", "5-b", "5-b"]
    assert len(notices) == 2


def test_a_follower_asks_at_most_once_a_second_unless_there_is_more(clock):
    """A service that has no place for a request that waits answers at once; so does one that is away."""
    script = [
        (0, page("1-a")),
        (0, page("2-a", event(1))),
        (0, page("4-a")),
        (0, page("4-a")),
        (0.25, page("4-a")),
        (30, page("4-a")),
        (0, ServiceError("503 Service Unavailable: x", 503)),
        (0, ServiceError("It cannot be reached.")),
        (0, page("5-b", event(5))),
    ]
    begun = []

    class Slow(Service):
        def get(self, path, query):
            seconds, answer = script[len(begun)]
            begun.append(clock.now)
            clock.now += seconds
            self.answers = [answer]
            return super().get(path, query)

    following = events.events(Slow(), arguments(follow=True), lambda _: None)
    assert [next(following)["position"][0] for _ in range(2)] == ["1", "5"]
    assert begun == [0, 1, 1, 1, 2, 3, 33, 34, 35]


@pytest.mark.parametrize("error", [ServiceError("410 Gone: x", 410), ServiceError("403 Forbidden: x", 403)])
def test_a_follower_ends_where_the_service_refuses(error):
    following = events.events(Service(page("4-a", event(4)), error), arguments(follow=True, after="3-z"), print)
    next(following)
    with pytest.raises(ServiceError):
        next(following)


def test_a_follower_ends_if_there_is_no_service_at_all():
    with pytest.raises(ServiceError):
        next(events.events(Service(ServiceError("x")), arguments(follow=True), print))


def test_a_history_without_events_goes_on_from_before_it_was_asked_for():
    """Without an event the kind of the object is not known, so all events are read and filtered by its uuid."""
    others, its = event(5, uuid=SERVER), event(6)
    service = Service(page("4-a"), {"uuid": HOST, "events": []}, page("6-b", others, its), page("7-c", event(7)))
    following = events.history_and_more(service, arguments(follow=True, object="host1", newest=False), print)
    assert [next(following)["position"] for _ in range(2)] == [its["position"], "7-00000000"]
    now, story, *asked = service.asked
    assert (now["after"], story["order"]) == ("now", "oldest")
    assert [(one["after"], one.get("provider"), one.get("consumer")) for one in asked] == [
        ("4-a", None, None),
        ("6-b", None, None),
    ]


@pytest.mark.parametrize(("kind", "condition"), [("provider", "provider"), ("node", "provider"), ("consumer",) * 2])
def test_a_history_goes_on_after_its_last_event(kind, condition):
    story = {"uuid": HOST, "events": [event(2, kind=kind), event(3, kind=kind)]}
    service = Service(page("4-a"), story, page("9-b", event(9, kind=kind)))
    following = events.history_and_more(service, arguments(follow=True, object="host1", newest=False), print)
    assert [next(following)["position"][0] for _ in range(3)] == ["2", "3", "9"]
    assert (service.asked[-1]["after"], service.asked[-1][condition]) == ("3-00000000", HOST)
