"""The final state of a run: how it is read, and which states are violations."""

from __future__ import annotations

from dataclasses import replace

import pytest
import sqlalchemy as sa

from jepsen import final_state
from jepsen.checker.feed import feed
from jepsen.checker.indices import indices, soundness
from jepsen.history import Event
from jepsen.tests.handwritten_histories import call, history, violations
from tests import running
from tests.load.storm import Storm, claim

UUID = "c1000000-0000-4000-8000-000000000001"


def with_feed(*rows, generation=2, nodes=()):
    """Return a final state with a provider of id 1 and these feed rows."""
    return {"feed": rows, "providers": [[1, UUID, generation, None, 1]], "machines": {"nodes": nodes}}


CREATED, STOCKED, USED = (7, 1, 1, "shape"), (7, 2, 1, "shape"), (9, 1, 1, "usage")
RESHAPE = call(1, 2, "POST", "/reshaper", {"inventories": {UUID: {}}, "allocations": {}}, status=204)


def stock(began, total, provider=UUID):
    body = {"inventories": {"VCPU": {"total": total}}}
    return call(began, began + 1, "PUT", f"/resource_providers/{provider}/inventories", body)


def test_a_feed_with_a_row_for_each_change_violates_nothing():
    assert not violations(feed, final=with_feed((7, 3, 0, "names"), CREATED, STOCKED, USED))
    # Generation 3 after one reshape; a provider that is gone; a node, whose inventory the service writes.
    assert not violations(feed, RESHAPE, final=with_feed(CREATED, STOCKED, generation=3))
    assert not violations(feed, final=with_feed(CREATED, STOCKED, USED, (9, 2, 2, "gone")))
    assert not violations(feed, final=with_feed(CREATED, nodes=[UUID]))
    # Rows deleted by retention, or with their writer, cannot be counted.
    assert not violations(feed, final=with_feed((7, 2, 1, "shape")))
    assert not violations(feed, final=with_feed((-7, 1, 1, "shape")))


@pytest.mark.parametrize(
    ("invariant", "state"),
    [
        ("feed numbers without gaps", with_feed(CREATED, (7, 3, 1, "shape"), USED)),
        ("a feed row for each change", with_feed(CREATED, STOCKED)),
        ("a feed row for each change", with_feed((7, 1, 1, "usage"), (7, 2, 1, "usage"), USED)),
        ("a feed row for each change", with_feed(CREATED, STOCKED, USED, (9, 2, 2, "usage"))),
    ],
)
def test_changes_missing_from_the_feed_are_violations(invariant, state):
    assert violations(feed, final=state) == {invariant}


def test_an_index_that_differs_is_a_violation():
    built = {"providers": {UUID: [1, 2]}}
    matching = {"service": 0, "process": 11, "digest": "d"}
    stale = {"service": 0, "process": 12, "digest": "e", "index": {"providers": {UUID: [1, 1]}}}
    assert not violations(indices, final={"indices": {"database": built, "workers": [matching]}})
    assert violations(indices, final={"indices": {"database": built, "workers": [matching, stale]}}) == {
        "each index matches the database"
    }


def test_only_differing_members_are_named():
    for expected, index, sentence in [
        (["a", "b", "c"], ["a", "d"], "[roots] lacks ['b', 'c'] and additionally contains ['d']"),
        (["a", "b"], ["b", "a"], "[roots] is ['b', 'a'], expected ['a', 'b']"),
        ([1, 2], [1, 3], "[roots] is [1, 3], expected [1, 2]"),
    ]:
        stale = {"service": 0, "process": 12, "index": {"roots": index}}
        [violation] = indices(history(final={"indices": {"database": {"roots": expected}, "workers": [stale]}}))
        assert violation.sentence.endswith(sentence)


def test_inconsistent_rows_are_violations():
    assert not violations(soundness, final={"soundness": {}})
    over = {"soundness": {"usage above the capacity": [UUID]}}
    assert violations(soundness, stock(1, 8), stock(2, 8), final=over) == {"consistent rows"}
    # The reduction of an inventory explains its own overuse, but not the overuse of another provider.
    assert not violations(soundness, stock(1, 8), stock(2, 4), final=over)
    other = [stock(3, 8, "d1000000-0000-4000-8000-000000000001"), stock(4, 4, "d1000000-0000-4000-8000-000000000001")]
    assert violations(soundness, stock(1, 8), *other, final=over) == {"consistent rows"}
    assert violations(soundness, final={"soundness": {"a consumer that holds nothing": ["u"]}}) == {"consistent rows"}


@pytest.mark.parametrize(("nemesis", "expected"), [("database-clock", set()), ("kill-worker", {"consistent rows"})])
def test_an_event_may_be_misplaced_if_the_database_clock_jumped(nemesis, expected):
    untrue = {"soundness": {"an event that contradicts the tables": ["'parent': ['a', 'b']"]}}
    assert violations(soundness, events=[Event(nemesis, 1, 2)], final=untrue) == expected


def test_inconsistencies_of_earlier_runs_do_not_count():
    earlier = {"flaws": {"usage above the capacity": ["7"]}}
    assert not violations(soundness, **earlier, final={"soundness": {"usage above the capacity": ["7"]}})
    assert violations(soundness, **earlier, final={"soundness": {"usage above the capacity": ["7", "8"]}})
    assert violations(soundness, **earlier, final={"soundness": {"an allocation of a missing consumer": ["7"]}})


def test_numbers_lost_in_earlier_runs_are_not_gaps():
    earlier = {"newest": {"7": 1}}
    assert not violations(feed, **earlier, final=with_feed(CREATED, (7, 4, 1, "shape"), (7, 5, 1, "usage")))
    assert not violations(feed, **earlier, final=with_feed(CREATED, (-7, 4, 1, "shape"), (-7, 5, 1, "usage")))
    assert violations(feed, **earlier, final=with_feed(CREATED, (7, 4, 1, "shape"), (7, 6, 1, "usage")))
    assert violations(feed, **earlier, final=with_feed(CREATED, STOCKED, USED, (9, 3, 1, "usage")))


def test_deleted_rows_of_earlier_runs_do_not_excuse_missing_ones():
    creation = call(1, 2, "POST", "/resource_providers", {"uuid": UUID, "name": UUID})
    complete, lacking = (CREATED, STOCKED, USED), (CREATED, STOCKED)
    pruned, ended = (3, 5, 9, "usage"), (-3, 5, 9, "usage")
    assert not violations(feed, creation, final=with_feed(pruned, *complete))
    assert violations(feed, creation, final=with_feed(pruned, *lacking))
    # The writer was ended in an earlier run, or perhaps in this one.
    assert violations(feed, creation, begun={"3": 5}, final=with_feed(ended, *lacking))
    assert not violations(feed, creation, begun={"3": 4}, final=with_feed(ended, *lacking))
    assert not violations(feed, creation, final=with_feed(ended, *lacking))
    # Rows of this run may have been deleted, too.
    late = replace(creation, ended=601 * 10**9)
    assert not violations(feed, late, final=with_feed(pruned, *lacking))
    jump = Event("service-clock", 1, 2)
    assert not violations(feed, creation, events=[jump], final=with_feed(pruned, *lacking))


def test_the_row_of_a_deletion_in_an_earlier_run_may_be_missing():
    creation = call(1, 2, "POST", "/resource_providers", {"uuid": UUID, "name": UUID})
    state = with_feed((3, 5, 9, "usage"), (7, 1, 11, "shape"), (7, 2, 11, "shape"), (9, 1, 11, "usage"))
    state["providers"] = [[10, "d1000000-0000-4000-8000-000000000001", 5, None, 10], [11, UUID, 2, None, 11]]
    assert not violations(feed, creation, final=state)
    deletion = {**state, "feed": [*state["feed"], (9, 2, 12, "usage")]}
    assert violations(feed, creation, final=deletion) == {"a feed row for each change"}


def test_the_state_is_read_from_the_rows_and_from_every_worker(database_url):
    """Changes by another process reach no index, and leave inconsistent rows."""
    with running.uwsgi(database_url, 2, module="jepsen.application") as service:
        storm = Storm(service.url)
        provider = storm.provider(VCPU=8)
        assert storm.ask(*claim([provider])).status == 204
        state = final_state.read(database_url, [service])
        assert {worker["process"] for worker in state["indices"]["workers"]} == set(service.workers)
        for check in (feed, indices, soundness):
            assert not violations(check, final=state)
        engine = sa.create_engine(database_url)
        with engine.begin() as db:
            db.execute(sa.text("UPDATE allocations SET used = 9"))
            db.execute(sa.text("DELETE FROM inventories"))
            db.execute(sa.text("UPDATE resource_providers SET generation = 10"))
        engine.dispose()
        state = final_state.read(database_url, [service])
        assert len(violated_all := [worker for worker in state["indices"]["workers"] if "index" in worker]) == 2, (
            violated_all
        )
        for check in (feed, indices, soundness):
            assert violations(check, final=state)
