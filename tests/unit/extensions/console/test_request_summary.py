"""One-sentence summaries of requests that changed something."""

from __future__ import annotations

import datetime

import pytest

from placement.extensions.console.views.event_text import ObjectLink
from placement.extensions.console.views.request_summary import summaries
from placement.extensions.v1.history.event import Event
from tests.world import World

NOW = datetime.datetime(2026, 11, 23, 12)
CONSUMER, OTHER = "11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"
REQUEST = {"request_id": "req-1", "user": "ann"}
NAMES = {"numa": "the node", "h1": "h1"}


@pytest.fixture(scope="module")
def snapshot():
    world = World()
    for name in ("h1", "h2", "h3"):
        world.host(name)
    world.host("numa", parent="h1")
    return world.snapshot()


def event(kind, uuid, changes, generations=(None, None), *, number=7, name=None, request=REQUEST):
    return Event(number, f"{number}-00000000", NOW, kind, uuid, name, generations, changes, None, request)


def consumer(allocations, generations=(1, 2), *, uuid=CONSUMER, type_=(None, None), **changes):
    """Return the event of a consumer whose allocations changed: amounts before and after by provider and class."""
    return event("consumer", uuid, {"allocations": allocations, "type": type_, **changes}, generations)


def provider(changes, generations=(3, 4), uuid="h1"):
    return event("provider", uuid, changes, generations)


def words(summary):
    """Return the sentence as text with ordinary spaces."""
    parts = (part.name if isinstance(part, ObjectLink) else part for part in summary.sentence)
    return "".join(parts).replace("\N{NARROW NO-BREAK SPACE}", " ")


def summarize(snapshot, *events):
    [summary] = summaries(events, NAMES, snapshot, NOW)
    return summary


NEW, GONE = (None, 1), (1, None)
INSTANCE = {"type_": (None, "INSTANCE")}
ON_THREE_TREES = {
    "h1": {"VCPU": [None, 1]},
    "numa": {"VCPU": [None, 1]},
    "h2": {"VCPU": [None, 1]},
    "h3": {"VCPU": [None, 1]},
}
RELEASED = {"numa": {"VCPU": [4, None]}}
EXPIRED = {"reason": (None, "expired")}


@pytest.mark.parametrize(
    ("events", "sentence"),
    [
        # A claim, with the events of the consumer and its providers.
        (
            [
                consumer({"numa": {"VCPU": [None, 4], "MEMORY_MB": [None, 2048]}}, NEW, **INSTANCE),
                provider({"allocations": {CONSUMER: {"VCPU": [None, 4], "MEMORY_MB": [None, 2048]}}}, uuid="numa"),
            ],
            "Instance 11111111 claimed 2 GiB memory, 4 VCPU on h1",
        ),
        ([consumer({"h1": {"VCPU": [None, 4]}}, NEW)], "Consumer 11111111 claimed 4 VCPU on h1"),
        # Only the events of providers, as if a filter left out consumers.
        (
            [provider({"allocations": {CONSUMER: {"VCPU": [None, 4]}}, "consumers": {"added": [CONSUMER]}})],
            "Consumer 11111111 claimed 4 VCPU on h1",
        ),
        # The change of a node by a claim adds nothing to the sentence.
        (
            [
                consumer({"h1": {"VCPU": [None, 4]}}, NEW),
                event("node", "h1", {"details": {"instance": [None, CONSUMER]}}),
            ],
            "Consumer 11111111 claimed 4 VCPU on h1",
        ),
        # A release.
        ([consumer(RELEASED, GONE, type_=("INSTANCE", None))], "Instance 11111111 released 4 VCPU on h1"),
        # Expiry of all consumers, or only of some.
        ([consumer(RELEASED, GONE, **EXPIRED)], "Consumer 11111111 released 4 VCPU on h1 when the lease expired"),
        (
            [consumer(RELEASED, GONE, **EXPIRED), consumer(RELEASED, GONE, uuid=OTHER, **EXPIRED)],
            "2 consumers released 8 VCPU on h1 when the lease expired",
        ),
        (
            [consumer(RELEASED, GONE, **EXPIRED), consumer(RELEASED, GONE, uuid=OTHER)],
            "2 consumers released 8 VCPU on h1",
        ),
        # A move.
        (
            [consumer({"h1": {"VCPU": [4, None]}, "h2": {"VCPU": [None, 6]}}, type_=("INSTANCE", "INSTANCE"))],
            "Instance 11111111 now holds 6 VCPU on h1 and h2 instead of 4 VCPU",
        ),
        ([consumer({"h1": {"VCPU": [4, 0]}})], "Consumer 11111111 now holds nothing on h1 instead of 4 VCPU"),
        (
            [consumer({"h1": {"VCPU": [4, 6]}}), consumer({"h1": {"VCPU": [1, 2]}}, uuid=OTHER)],
            "2 consumers now hold 8 VCPU on h1 instead of 5 VCPU",
        ),
        # Several consumers.
        (
            [
                consumer({"h1": {"VCPU": [None, 1]}}, NEW, **INSTANCE),
                consumer({"h2": {"VCPU": [None, 2]}}, NEW, uuid=OTHER),
            ],
            "2 consumers claimed 3 VCPU on h1 and h2",
        ),
        # Three trees; the claim uses two providers of the first.
        ([consumer(ON_THREE_TREES, NEW)], "Consumer 11111111 claimed 4 VCPU on h1, h2 and 1 more"),
        # A deleted provider is in no tree.
        ([consumer({"away": {"VCPU": [None, 1]}}, NEW)], "Consumer 11111111 claimed 1 VCPU on away"),
        # Not a claim.
        ([provider({"traits": {"added": ["A"]}})], "Provider h1 changed: traits added A"),
        ([provider({"traits": {"added": ["A", "B", "C"]}})], "Provider h1 changed: traits added A, B"),
        (
            [provider({"traits": {"added": ["A"], "removed": ["B"]}, "aggregates": {"added": ["x"]}})],
            "Provider h1 changed: traits added A and 2 more",
        ),
        ([provider({})], "Provider h1 changed: only its generation"),
        ([provider({"name": [None, "h1"]}, (None, 0))], "Provider h1 created"),
        ([event("trait", None, {"name": [None, "CUSTOM_A"]}, name="CUSTOM_A")], "Trait CUSTOM_A created"),
        ([provider({"parent": ["h2", None]})], "Provider h1 changed: parent h2 removed"),
        ([provider({"parent": ["h2", "numa"]})], "Provider h1 changed: parent h2 → the node"),
        ([provider({"parent": [None, "h2"]})], "Provider h1 changed: parent h2"),
        # Inventories, with units.
        (
            [
                provider(
                    {"inventories": {"MEMORY_MB": {"total": [1024, 2048], "reserved": [0, 512], "min_unit": [1, 2]}}}
                )
            ],
            "Provider h1 changed: inventory of MEMORY_MB total 1 GiB → 2 GiB, reserved 0 → 512 MiB",
        ),
        (
            [provider({"inventories": {"DISK_GB": {"allocation_ratio": [1.0, 1.5]}}})],
            "Provider h1 changed: inventory of DISK_GB allocation ratio 1.0 → 1.5",
        ),
        (
            [provider({"inventories": {"DISK_GB": {"total": [2048, None]}}})],
            "Provider h1 changed: removed inventory of DISK_GB total 2 TiB",
        ),
        # A claim and another change: the sentence is about the other change.
        (
            [
                consumer({"h1": {"VCPU": [None, 4]}}, NEW),
                event("node", "h2", {"provision_state": ["available", "active"]}, name="h2"),
            ],
            "Node h2 changed: provision state available → active",
        ),
        # A provider changed by a claim and in another way; a removed lease.
        (
            [provider({"allocations": {CONSUMER: {"VCPU": [None, 4]}}, "traits": {"added": ["A"]}})],
            f"Provider h1 changed: allocated to {CONSUMER} VCPU 4 and 1 more",
        ),
        (
            [event("consumer", CONSUMER, {"lease": ["2026-11-23T12:00:00Z", None]})],
            f"Consumer {CONSUMER} changed: lease 2026-11-23T12:00:00Z removed",
        ),
    ],
)
def test_a_request_is_summarized_in_one_sentence(snapshot, events, sentence):
    assert words(summarize(snapshot, *events)) == sentence


def test_objects_with_a_page_are_linked(snapshot):
    summary = summarize(snapshot, consumer({"numa": {"VCPU": [4, None]}}, GONE, type_=("INSTANCE", None)))
    assert [part for part in summary.sentence if isinstance(part, ObjectLink)] == [
        ObjectLink("consumers", CONSUMER, "Instance 11111111"),
        ObjectLink("providers", "h1", "h1"),
    ]


def test_a_caller_who_may_not_see_trees_sees_the_provider_of_the_event():
    summary = summarize(None, consumer({"numa": {"VCPU": [None, 4]}}, NEW))
    assert words(summary) == "Consumer 11111111 claimed 4 VCPU on the node"
    assert summary.sentence[-1] == ObjectLink("providers", "numa", "the node")


def test_the_key_is_the_request_id_or_else_the_number_of_the_event(snapshot):
    trait = {"name": [None, "CUSTOM_A"]}
    result = summaries(
        [
            event("trait", None, trait, number=1, request=None),
            event("trait", None, trait, number=2, request={"user": "ann"}),
            event("trait", None, trait, number=3),
            event("trait", None, trait, number=4),
            event("trait", None, trait, number=5, request={"request_id": "req-2"}),
        ],
        NAMES,
        snapshot,
        NOW,
    )
    assert [(summary.key, len(summary.entries)) for summary in result] == [
        *(("event-1", 1), ("event-2", 1), ("req-1", 2), ("req-2", 1))
    ]
    assert [summary.request for summary in result[:3]] == [None, {"user": "ann"}, REQUEST]


@pytest.mark.parametrize(
    ("events", "folds_events"),
    [
        ([consumer(ON_THREE_TREES, NEW)], True),
        ([provider({"traits": {"added": ["A"]}})], True),
        ([provider({"traits": {"added": ["A"], "removed": ["B"]}})], False),
        ([provider({})], True),
    ],
)
def test_events_are_folded_unless_the_sentence_leaves_out_lines(snapshot, events, folds_events):
    assert summarize(snapshot, *events).folds_events is folds_events
