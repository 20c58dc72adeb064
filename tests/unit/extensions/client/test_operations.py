"""Operations of the client without I/O: the requests that they repeat, and the pauses between them (docs: client)."""

from __future__ import annotations

import dataclasses
import itertools
import json
import uuid

import pytest
from placement_client import (
    Candidate,
    Claim,
    NoReply,
    NoRoom,
    NothingPlaced,
    Refused,
    Request,
    Unavailable,
    Undecided,
    operations,
)
from placement_client.operations import Operations
from placement_client.steps import Call, Pause, Reply

from tests.clock import Clock

JOB = "2f1f9b0a-0000-5000-8000-000000000001"
OWNER = {"project_id": "p", "user_id": "u", "consumer_type": "JOB"}
CODES = {
    "collided": "placement.concurrent_update",
    "no room": "placement.v1.no_room",
    "undecided": "placement.v1.undecided",
    "nothing": "placement.v1.nothing_placed",
}


@pytest.fixture
def clock(monkeypatch):
    stopped = Clock()
    monkeypatch.setattr(operations, "time", stopped)
    return stopped


def reply(status=200, document=None, **headers):
    content = b"" if document is None else json.dumps(document).encode()
    header_values = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply(status, header_values, content, sent=0.0)


def perform(operation, replies, clock):
    """Return the result of an operation and its steps; a reply may be a function of the call or an exception."""
    steps, answers = [], iter(replies)
    try:
        step = next(operation)
        while True:
            steps.append(step)
            if isinstance(step, Pause):
                clock.sleep(step.seconds)
                step = operation.send(None)
                continue
            sent, answer = clock.now, next(answers)
            answer = answer(step) if callable(answer) else answer
            if isinstance(answer, Exception):
                step = operation.throw(answer)
            else:
                step = operation.send(dataclasses.replace(answer, sent=sent))
    except StopIteration as done:
        return done.value, steps


def slow_reply(clock, seconds, answer):
    """Return a function that replies after ``seconds``, by the clock."""

    def respond(call):
        clock.now += seconds
        return answer(call) if callable(answer) else answer

    return respond


def claim_replies(**outcomes):
    """Return a function that replies to POST /v1/claims with the outcomes, by consumer."""

    def answer(call):
        consumers = [request["consumer"] for request in call.body["requests"]]
        results = [result(consumer, outcomes[consumer]) for consumer in consumers]
        status = 200 if any(document["status"] == 200 for document in results) else 409
        return reply(status, {"results": results, "claimed": 0, "added": 1})

    return answer


def result(consumer, outcome):
    if outcome in CODES:
        error = {"code": CODES[outcome], "detail": "..."}
        return {"consumer": consumer, "status": 409, "outcome": "refused", "error": error}
    claim_fields = {"allocations": {}, "mappings": [], "consumer_generation": 1, "expires_at": None, "added": 1}
    return {"consumer": consumer, "status": 200, "outcome": outcome, **claim_fields}


def claims(names, replies, clock, patience=60.0, **options):
    """Claim for consumers; return the outcome of each, and the consumers of each call."""
    requests = [Request(name, "resources=VCPU:1", **OWNER) for name in names]
    outcomes, steps = perform(Operations(patience).claims(requests, **options), replies, clock)
    calls = [[request["consumer"] for request in step.body["requests"]] for step in steps if isinstance(step, Call)]
    return [type(outcome) for outcome in outcomes], calls


def test_only_collided_claims_are_repeated(clock):
    replies = [
        claim_replies(a="claimed", b="collided", c="no room"),
        claim_replies(b="collided"),
        claim_replies(b="held"),
    ]
    assert claims("abc", replies, clock) == ([Claim, Claim, NoRoom], [["a", "b", "c"], ["b"], ["b"]])
    assert len(clock.pauses) == 2


def test_a_claim_that_always_collides_is_finally_refused(clock):
    outcomes, calls = claims("ab", itertools.repeat(claim_replies(a="claimed", b="collided")), clock)
    assert outcomes == [Claim, Refused]
    assert len(calls) > 5
    assert clock.now <= 60


def test_a_move_with_an_outdated_generation_is_not_repeated(clock):
    move = Request("a", "resources=VCPU:1", **OWNER, keep=False, consumer_generation=3)
    [outcome], steps = perform(Operations(60).claims([move]), [claim_replies(a="collided")], clock)
    assert (type(outcome), len(steps)) == (Refused, 1)
    assert steps[0].body["requests"][0]["consumer_generation"] == 3


def test_undecided_claims_are_sent_again_while_that_makes_progress(clock):
    replies = [
        claim_replies(a="claimed", b="undecided", c="undecided"),
        claim_replies(b="undecided", c="no room"),
        claim_replies(b="undecided"),
    ]
    assert claims("abc", replies, clock) == ([Claim, Undecided, NoRoom], [["a", "b", "c"], ["b", "c"], ["b"]])
    assert claims("ab", [claim_replies(a="undecided", b="undecided")], clock)[1] == [["a", "b"]]


def test_all_or_nothing_is_repeated_as_a_whole(clock):
    replies = [claim_replies(a="nothing", b="collided"), claim_replies(a="nothing", b="undecided")]
    observed = claims("ab", replies, clock, all_or_nothing=True)
    assert observed == ([NothingPlaced, Undecided], [["a", "b"]] * 2)


def test_a_request_is_repeated_with_its_id_until_it_gets_a_reply(clock):
    refusals = [reply(503, {}, retry_after="7"), reply(429, {}), reply(502), reply(503, retry_after="tomorrow")]
    answers = [NoReply("away"), *refusals, reply(200, {"position": "3"})]
    position, steps = perform(Operations(60).position(), answers, clock)
    assert position == "3"
    calls = [step for step in steps if isinstance(step, Call)]
    assert len({call.request_id for call in calls}) == 1
    assert calls[0].headers["X-Openstack-Request-Id"] == calls[0].request_id
    assert clock.pauses[1] == 7
    assert all(0 < pause <= 1.6 for pause in (clock.pauses[0], *clock.pauses[2:]))


@pytest.mark.parametrize(("answer", "raised"), [(NoReply("away"), NoReply), (reply(503, {}), Unavailable)])
def test_retries_end_with_the_patience(clock, answer, raised):
    with pytest.raises(raised):
        perform(Operations(60).position(), itertools.repeat(answer), clock)
    assert 50 < clock.now <= 60
    assert max(clock.pauses) <= 5


def test_a_retry_after_longer_than_the_patience_is_not_awaited(clock):
    with pytest.raises(Unavailable):
        perform(Operations(3).position(), [reply(503, {}, retry_after="4")], clock)
    assert clock.pauses == []


def event(position):
    names = ("kind", "uuid", "name", "project", "request")
    return {
        **dict.fromkeys(names),
        "position": position,
        "at": "2026-11-28T15:00:00.000250Z",
        "generation": [None, 1],
        "changes": {},
        "names": {},
        "added": 1,
    }


def page(*positions, reached):
    return reply(200, {"events": [event(position) for position in positions], "position": reached})


def test_a_follower_continues_after_events_that_do_not_match(clock):
    """A service that cannot wait returns an empty page at once; the client then pauses, longer each time."""
    follower = Operations(60).follow("1", kind="node")
    pages = [
        *[slow_reply(clock, 60, page(reached="1")), page(reached="1"), page(reached="1"), page(reached="5")],
        *[page("6", "7", reached="9"), page("10", reached="10")],
    ]
    answers = iter(pages)
    first, steps = perform(follower.next(), answers, clock)
    assert (first.position, follower.position) == ("6", "6")
    assert [call.path.partition("?")[2] for call in steps if isinstance(call, Call)] == [
        *["kind=node&after=1&wait=60"] * 4,
        "kind=node&after=5&wait=60",
    ]
    assert len(clock.pauses) == 3
    assert clock.pauses[0] < clock.pauses[1]
    second, steps = perform(follower.next(), answers, clock)
    assert (second.position, follower.position, steps) == ("7", "9", [])
    third, [call] = perform(follower.next(), answers, clock)
    assert (third.position, call.path) == ("10", "/v1/events?kind=node&after=9&wait=60")


def test_all_pages_of_consumers_are_read(clock):
    """The URL of the next page may contain an internal address of the service."""
    consumer = dict.fromkeys(["uuid", "type", "project", "user", "generation", "since", "expires_at"])
    allocations = {"allocations": {"1": {"name": "host1", "resources": {"VCPU": 1}}}, "added": 1}
    next_page = "http://internal/x/v1/consumers?project=p&after="
    pages = [
        reply(200, {"consumers": [{**consumer, **allocations, "uuid": "a"}], "next": f"{next_page}7"}),
        reply(200, {"consumers": [], "next": f"{next_page}8"}),
        reply(200, {"consumers": [{**consumer, **allocations, "uuid": "b"}], "next": None}),
    ]
    consumers, calls = perform(Operations(60).consumers(project="p"), pages, clock)
    assert [holder.uuid for holder in consumers] == ["a", "b"]
    assert [call.path for call in calls] == [
        "/v1/consumers?limit=1000&project=p",
        "/v1/consumers?project=p&after=7",
        "/v1/consumers?project=p&after=8",
    ]


def test_a_single_uuid_in_place_of_a_list_is_refused(clock):
    client, uuid = Operations(60), JOB
    for operation in (
        client.release(uuid),
        client.claims([], apart_from=uuid),
        client.claim(uuid, "resources=VCPU:1", **OWNER, together_with=uuid),
    ):
        with pytest.raises(TypeError, match="uuids"):
            perform(operation, [], clock)


#: Spellings of one uuid that the service accepts.
SPELLINGS = [JOB, uuid.UUID(JOB), JOB.upper(), JOB.replace("-", "")]


@pytest.mark.parametrize("consumer", SPELLINGS, ids=["text", "uuid", "upper", "hex"])
def test_a_consumer_is_named_in_the_spelling_of_the_caller(clock, consumer):
    """``POST /allocations`` stores a uuid in its spelling, and only the same spelling finds it on every database."""
    client, holding = Operations(60), reply(200, result(JOB, "held"))
    for operation in (client.show(consumer), client.extend(consumer, 60)):
        _, [call] = perform(operation, [holding], clock)
        assert call.path.removesuffix("/extend") == f"/v1/claims/{consumer}"


@pytest.mark.parametrize("consumer", SPELLINGS, ids=["text", "uuid", "upper", "hex"])
def test_a_claim_of_an_earlier_attempt_is_found_in_any_spelling(clock, consumer):
    """``PUT /allocations`` stores the canonical form, and ``GET`` searches for the given spelling."""
    candidate = Candidate({"1": {"VCPU": 1}}, {})
    holding = reply(200, {"allocations": {"1": {"resources": {"VCPU": 1}}}})
    operation = Operations(60).take(candidate, consumer, **OWNER)
    _, calls = perform(operation, [reply(409, {}), holding], clock)
    assert [call.path for call in calls] == [f"/allocations/{JOB}"] * 2


@pytest.mark.parametrize("consumer", ["../../traits/CUSTOM_X", "job-1", "", f"{JOB}?a=b", f"{JOB}/..", f"{JOB}%2f"])
def test_an_invalid_uuid_is_in_no_path(clock, consumer):
    client = Operations(60)
    candidate = Candidate({"1": {"VCPU": 1}}, {})
    for operation in (client.show(consumer), client.extend(consumer, 60), client.take(candidate, consumer, **OWNER)):
        with pytest.raises(ValueError, match="UUID"):
            perform(operation, [], clock)
