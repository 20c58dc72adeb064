"""The output for claims: amounts by provider, refusals with reasons, free capacity, and released consumers."""

from __future__ import annotations

from placement.extensions.terminal import claims
from placement.extensions.terminal.style import Style

HOST, CARD = "5a8b0f0e-31a9-4f6a-9c2e-0d8a9f0f3c11", "6a8b0f0e-31a9-4f6a-9c2e-0d8a9f0f3c11"
OTHER = "7a8b0f0e-31a9-4f6a-9c2e-0d8a9f0f3c11"
CLAIMED = {
    "consumer": "c1",
    "status": 200,
    "outcome": "claimed",
    "allocations": {
        HOST: {"name": "host1", "resources": {"VCPU": 4, "MEMORY_MB": 512}, "generation": 3},
        CARD: {"name": None, "resources": {"PGPU": 1}, "generation": 1},
    },
    "mappings": [{"": [HOST], "_gpu": [CARD]}],
    "consumer_generation": 1,
    "expires_at": "2026-11-22T13:00:00.000250Z",
}


def refusal(consumer, detail="Nothing fits: x.", **fields):
    error = {"code": "placement.v1.no_room", "detail": detail}
    return {"consumer": consumer, "status": 409, "outcome": "refused", "error": error, **fields}


def shown_lines(document):
    return [" ".join(line.split()) for line in claims.lines(document, Style())]


def test_a_claim_is_a_row_for_each_provider():
    document = {"results": [CLAIMED], "claimed": 1}
    assert claims.granted(document)
    assert shown_lines(document) == [
        "consumer outcome until provider resources why",
        "c1 claimed 2026-11-22T13:00:00Z host1 4 VCPU, 512 MEMORY_MB",
        f"{CARD} 1 PGPU",
    ]
    first_cells = ("c1", "claimed", "2026-11-22T13:00:00Z")
    assert list(claims.rows([CLAIMED], everywhere=True)) == [
        (*first_cells, "host1", "4 VCPU, 512 MEMORY_MB", ""),
        (*first_cells, CARD, "1 PGPU", ""),
    ]


def test_refusals_are_shown_with_each_reason_once_and_with_advice():
    explanation = {
        "summary": "x.",
        "obstacle": None,
        "relaxations": [{"text": "without A", "query": "resources=B", "found": 2}],
    }
    results = [CLAIMED, refusal("c2", explanation=explanation), refusal("c3"), refusal("c4", "Held.")]
    document = {"results": results, "claimed": 1}
    assert not claims.granted(document)
    lines = shown_lines(document)
    assert lines[0] == "1 of 4 claims were granted."
    assert lines[4:] == [
        *("c2 refused Nothing fits: x.", "c3 refused", "c4 refused Held."),
        *("", "What would help:", "change candidates query", "without A 2 resources=B"),
    ]
    assert [row[-1] for row in claims.rows(results, everywhere=True)] == [
        *("", "", "Nothing fits: x.", "Nothing fits: x.", "Held.")
    ]


def test_a_dry_run_is_marked_and_shows_the_room():
    body = {"results": [CLAIMED], "claimed": 1}
    room = {
        HOST: {"VCPU": {"capacity": 8, "used": 5, "free": 3}},
        "unknown": {"VGPU": {"capacity": 1, "used": 1, "free": 0}},
    }
    lines = shown_lines({"dry_run": {"status": 200, "headers": {}, "body": body}, "room": room})
    assert lines[0] == "Dry run: nothing was written."
    assert lines[-3:] == ["provider class used capacity free", "host1 VCPU 5 8 3", "unknown VGPU 1 1 0"]
    assert not claims.granted({"dry_run": {"status": 409, "body": {"results": [refusal("c1")]}}, "room": {}})


def test_the_room_after_a_release_is_named_after_the_released_provider():
    body = {"results": [CLAIMED], "claimed": 1}
    room = {OTHER: {"VCPU": {"capacity": 8, "used": 0, "free": 8}}}
    before = [{"allocations": {OTHER: {"name": "host2", "resources": {"VCPU": 4}, "generation": 1}}}]
    document = {"dry_run": {"status": 200, "headers": {}, "body": body}, "room": room}
    *_, last = claims.lines(document, Style(), before)
    assert last.split() == ["host2", "VCPU", "0", "8", "8"]


def test_a_machine_in_a_claim_has_the_name_of_its_node():
    allocations = {HOST: {"name": HOST, "node": "node1", "resources": {"CUSTOM_BM": 1}, "generation": 1}}
    (row,) = claims.rows([{**CLAIMED, "allocations": allocations}])
    assert row[3:5] == ("node1", "1 CUSTOM_BM")


def test_a_single_claim_is_shown():
    (_, first, _) = claims.claim_lines(
        {name: CLAIMED[name] for name in ("consumer", "allocations", "expires_at")}, Style()
    )
    assert first.split()[:4] == ["c1", "held", "2026-11-22T13:00:00Z", "host1"]


def test_released_consumers_are_listed():
    document = {"released": ["c1"], "missing": ["c2"], "complete": True, "dry_run": False}
    lines = [" ".join(line.split()) for line in claims.released_lines(document, Style())]
    assert lines == ["1 consumer is released.", "consumer outcome", "c1 released", "c2 missing"]
    dry_run = {**document, "released": [], "missing": [], "complete": False, "dry_run": True}
    assert list(claims.released_lines(dry_run, Style())) == [
        "Dry run: nothing was written.",
        "0 consumers would be released.",
        "More consumers meet the conditions.",
    ]
