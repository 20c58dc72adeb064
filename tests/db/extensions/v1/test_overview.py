"""The overview, the trees and the consumers of /v1 are what the single calls of Placement say, after any writes."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import rule

from placement import deploy
from placement.extensions.v1.handlers import overview
from placement.objects.claims import consumer_pages
from tests import caller, servers, web
from tests.db.extensions.v1 import single_calls
from tests.db.extensions.v1.single_calls import get, pages
from tests.db.test_state_machine import Writers, run
from tests.model.strategies import CLASSES

LIMITS = st.sampled_from(("", "limit=1", "limit=2", "limit=3", "limit=999999999"))
AMOUNTS = st.sampled_from(("free", "used", "capacity"))


class Lookers(Writers):
    """Clients that write, and look at everything now and then."""

    @rule(limit=LIMITS)
    def looks_at_all(self, limit):
        shown = self.overview(limit)
        assert {each["uuid"]: each for each in shown} == single_calls.providers(self.call)
        check_order(shown)

    @rule(limit=LIMITS, amount=AMOUNTS, name=st.sampled_from(CLASSES), least=st.booleans())
    def sorts(self, limit, amount, name, least):
        if name not in self.classes():
            return
        shown = self.overview(limit, f"sort={'-' if least else ''}{amount}:{name}")
        check_order(shown)
        sums = {
            root: [each["inventories"][name][amount] for each in tree if name in each["inventories"]]
            for root, tree in trees(self.overview()).items()
        }
        expected = [sum(sums[root]) for root in trees(shown)]
        assert expected == sorted(expected, reverse=not least)
        assert trees(shown).keys() == {root for root in sums if sums[root]}

    @rule(limit=LIMITS, data=st.data())
    def filters(self, limit, data):
        known = [*itertools.chain(*trees(self.overview()).values())]
        kinds = {
            "class": {name for each in known for name in each["inventories"]},
            "trait": {name for each in known for name in each["traits"]},
            "aggregate": {name for each in known for name in each["aggregates"]},
            "over_committed": {"1"},
            "root": {each["name"] for each in known} | {each["uuid"] for each in known},
        }
        wanted = {
            kind: data.draw(st.sampled_from(sorted(names)))
            for kind, names in kinds.items()
            if names and data.draw(st.integers(0, 2)) == 1
        }
        shown = self.overview(limit, *(f"{kind}={value}" for kind, value in wanted.items()))
        root = wanted.pop("root", None)
        of_root = next((each["root"]["uuid"] for each in known if root in (each["uuid"], each["name"])), None)
        assert trees(shown).keys() == {
            top
            for top, tree in trees(known).items()
            if any(meets(each, wanted) for each in tree) and (root is None or top == of_root)
        }

    @rule(window=st.sampled_from((1, 3, 50_000)), few=st.sampled_from((0, 2, 10_000)), many=st.sampled_from((0, 1000)))
    def looks_at_more_or_fewer_at_once(self, window, few, many):
        """With ``many`` 0 the overview is a stream, and its numbers of consumers are kept from one to the next."""
        consumer_pages.WINDOW, consumer_pages.MAX_INDEX_ROWS, overview.MAX_UNSTREAMED = window, few, many

    @rule(limit=LIMITS.filter(lambda limit: "99" not in limit))
    def looks_at_consumers(self, limit):
        shown = pages(self.call, f"/v1/consumers?{limit}", "consumers")
        assert all(each.pop("since") for each in shown)
        assert len(shown) == len({each["uuid"] for each in shown})
        assert {each["uuid"]: each for each in shown} == single_calls.consumers(self.call)

    @rule(which=st.integers(0, 9), name=st.sampled_from(CLASSES), more=st.sampled_from(("", "&limit=1", "&limit=2")))
    def filters_consumers(self, which, name, more):
        known = [*single_calls.consumers(self.call).values()]
        held = sorted({provider for each in known for provider in each["allocations"]})
        if not held:
            return
        provider = held[which % len(held)]
        every = {each["uuid"]: each for each in known}

        def listed(query):
            found = pages(self.call, f"/v1/consumers?{query}{more}", "consumers")
            return [each["uuid"] for each in found]

        on = {uuid for uuid, each in every.items() if provider in each["allocations"]}
        assert sorted(listed(f"provider={provider}")) == sorted(on)
        one = every[sorted(on)[0]]
        for field in ("project", "user", "type"):
            expected = sorted(uuid for uuid, each in every.items() if each[field] == one[field])
            assert sorted(listed(f"{field}={one[field]}")) == expected
        if name in self.classes():
            having = {uuid for uuid, each in every.items() if holds(each, name)}
            assert sorted(listed(f"class={name}")) == sorted(having)
            here = {uuid for uuid in on if name in every[uuid]["allocations"][provider]["resources"]}
            assert sorted(listed(f"class={name}&provider={provider}")) == sorted(here)

    @rule(which=st.integers(0, 9), by_name=st.booleans(), limit=st.sampled_from(("", "limit=1", "limit=2")))
    def looks_at_a_tree(self, which, by_name, limit):
        known = self.overview()
        if not known:
            return
        chosen = known[which % len(known)]
        path = f"/v1/providers/{chosen['name' if by_name else 'uuid']}?{limit}"
        shown = get(self.call, path)
        tree = trees(known)[chosen["root"]["uuid"]]
        assert (shown["provider"], shown["tree"]) == (chosen, tree)
        holders = {
            (each["consumer"], each["provider"]["uuid"]): each["resources"]
            for each in pages(self.call, path, "holders")
        }
        assert holders == {
            (uuid, provider): held["resources"]
            for uuid, each in single_calls.consumers(self.call).items()
            for provider, held in each["allocations"].items()
            if provider in {member["uuid"] for member in tree}
        }

    def overview(self, *query):
        return pages(self.call, f"/v1/overview?{'&'.join(filter(None, query))}", "providers")

    def classes(self):
        return {each["name"] for each in get(self.call, "/resource_classes")["resource_classes"]}


def trees(shown):
    """The providers by the uuid of their root; trees that are not together raise."""
    found = {}
    for root, tree in itertools.groupby(shown, lambda each: each["root"]["uuid"]):
        assert root not in found
        found[root] = [*tree]
    return found


def check_order(shown):
    """Every provider comes after its parent, and after all that is below its elder siblings."""
    for root, tree in trees(shown).items():
        path = []
        for each in tree:
            if each["uuid"] == root:
                assert not path
            while path and path[-1] != each["parent"]["uuid"]:
                path.pop()
            assert path or each["uuid"] == root
            path.append(each["uuid"])


def meets(each, wanted):
    name = wanted.get("class")
    return (
        (name is None or name in each["inventories"])
        and ("trait" not in wanted or wanted["trait"] in each["traits"])
        and ("aggregate" not in wanted or wanted["aggregate"] in each["aggregates"])
        and (
            "over_committed" not in wanted
            or any(over(of) for key, of in each["inventories"].items() if name in (None, key))
        )
    )


def over(inventory):
    return inventory["used"] > (inventory["total"] - inventory["reserved"]) * inventory["allocation_ratio"]


def holds(consumer, name):
    return any(name in held["resources"] for held in consumer["allocations"].values())


@pytest.mark.every_database
def test_the_answers_are_those_of_the_single_calls(backend, database, monkeypatch):
    for module, name in ((consumer_pages, "WINDOW"), (consumer_pages, "MAX_INDEX_ROWS"), (overview, "MAX_UNSTREAMED")):
        monkeypatch.setattr(module, name, getattr(module, name))  # restores it
    conf = web.configuration(placement_database__connection=str(database.engine.url))
    call = caller.inside(deploy.loadapp(conf, database))
    run(Lookers, call, 15 if backend.kind == servers.SQLite.kind else 5)
