"""placement-ask events: the requests of --follow."""

from __future__ import annotations

import argparse

import pytest

from placement.extensions.terminal import events
from placement.extensions.terminal.client import ServiceError

HOST, SERVER = "c1000000-0000-4000-8000-000000000001", "e1000000-0000-4000-8000-000000000001"


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


class Service:
    """A service that returns the replies in order, or raises a reply that is an error."""

    def __init__(self, *answers):
        self.answers, self.queries = [*answers], []

    def get(self, _path, query):
        self.queries.append(dict(pair.split("=") for pair in query.split("&")))
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def history_pages(self, path, query):
        yield self.get(path, "&".join("=".join(pair) for pair in query))


def page(position, *events):
    return {"events": [*events], "position": position}


def arguments(**options):
    names = (*events._CONDITIONS, "after", "limit")
    return argparse.Namespace(**{**dict.fromkeys(names), "follow": False, "timeout": 60, **options})


class Clock:
    """A replacement for the module time, whose pauses take no time."""

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
    """While the position advances, a page without events is not the last one."""
    service = Service(page("1-a", event()), page("9-b"), page("9-b"))
    assert len([*events.events(service, arguments(project="red"), print)]) == 1
    assert [query.get("after") for query in service.queries] == [None, "1-a", "9-b"]
    assert {query["project"] for query in service.queries} == {"red"}


def test_a_limit_ends_the_events():
    service = Service(page("2-a", event(1), event(2)))
    assert len([*events.events(service, arguments(limit=1), print)]) == 1
    assert service.queries[0]["limit"] == "1"


def test_a_follower_begins_with_the_next_event_and_waits():
    service = Service(page("4-a"), page("4-a"), page("5-b", event(5)))
    following = events.events(service, arguments(follow=True), print)
    assert next(following)["position"] == "5-00000000"
    assert [query["after"] for query in service.queries] == ["now", "4-a", "4-a"]
    assert {query["wait"] for query in service.queries} == {"50"}


def test_a_follower_continues_after_an_outage_of_the_service():
    notices = []
    outages = ServiceError("It cannot be reached."), ServiceError("503 Service Unavailable: x", 503)
    service = Service(page("4-a", event(4)), *outages, page("5-b", event(5)), outages[0], page("6-c", event(6)))
    following = events.events(service, arguments(follow=True, after="3-z"), notices.append)
    assert [next(following)["position"][0] for _ in range(3)] == ["4", "5", "6"]
    assert [query["after"] for query in service.queries] == ["3-z", "4-a", "4-a", "4-a", "5-b", "5-b"]
    assert len(notices) == 2


def test_a_follower_sends_at_most_one_request_a_second_unless_there_are_more_events(clock):
    """An overloaded service replies at once instead of waiting; an unavailable one fails at once."""
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
    begin_times = []

    class Slow(Service):
        def get(self, path, query):
            seconds, answer = script[len(begin_times)]
            begin_times.append(clock.now)
            clock.now += seconds
            self.answers = [answer]
            return super().get(path, query)

    following = events.events(Slow(), arguments(follow=True), lambda _: None)
    assert [next(following)["position"][0] for _ in range(2)] == ["1", "5"]
    assert begin_times == [0, 1, 1, 1, 2, 3, 33, 34, 35]


@pytest.mark.parametrize("error", [ServiceError("410 Gone: x", 410), ServiceError("403 Forbidden: x", 403)])
def test_a_follower_ends_where_the_service_refuses(error):
    following = events.events(Service(page("4-a", event(4)), error), arguments(follow=True, after="3-z"), print)
    next(following)
    with pytest.raises(ServiceError):
        next(following)


def test_a_follower_ends_if_the_first_request_fails():
    with pytest.raises(ServiceError):
        next(events.events(Service(ServiceError("x")), arguments(follow=True), print))


def test_a_history_without_events_continues_from_before_its_request():
    """Without an event the kind of the object is unknown, so all events are read and filtered by its uuid."""
    other_event, own_event = event(5, uuid=SERVER), event(6)
    service = Service(
        page("4-a"), {"uuid": HOST, "events": []}, page("6-b", other_event, own_event), page("7-c", event(7))
    )
    following = events.follow_history(service, arguments(follow=True, object="host1", newest=False), print)
    assert [next(following)["position"] for _ in range(2)] == [own_event["position"], "7-00000000"]
    now, history, *queries = service.queries
    assert (now["after"], history["order"]) == ("now", "oldest")
    assert [(query["after"], query.get("provider"), query.get("consumer")) for query in queries] == [
        ("4-a", None, None),
        ("6-b", None, None),
    ]


@pytest.mark.parametrize(("kind", "condition"), [("provider", "provider"), ("node", "provider"), ("consumer",) * 2])
def test_a_history_continues_after_its_last_event(kind, condition):
    history = {"uuid": HOST, "events": [event(2, kind=kind), event(3, kind=kind)]}
    service = Service(page("4-a"), history, page("9-b", event(9, kind=kind)))
    following = events.follow_history(service, arguments(follow=True, object="host1", newest=False), print)
    assert [next(following)["position"][0] for _ in range(3)] == ["2", "3", "9"]
    assert (service.queries[-1]["after"], service.queries[-1][condition]) == ("3-00000000", HOST)
