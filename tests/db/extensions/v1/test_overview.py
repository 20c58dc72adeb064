"""After any writes, the overview, trees and consumers of /v1 agree with the responses of the Placement API."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import rule

from placement import deploy
from placement.extensions.v1.handlers import overview
from placement.objects.claims import consumer_pages
from tests import caller, servers, web
from tests.db.extensions.v1 import single_requests
from tests.db.extensions.v1.single_requests import get, pages
from tests.db.test_state_machine import Writers, run
from tests.model.strategies import CLASSES

LIMITS = st.sampled_from(("", "limit=1", "limit=2", "limit=3", "limit=999999999"))
AMOUNTS = st.sampled_from(("free", "used", "capacity"))


class WritersAndReaders(Writers):
    """Clients that write, and compare all documents now and then."""

    @rule(limit=LIMITS)
    def reads_the_overview(self, limit):
        providers = self.overview(limit)
        assert {provider["uuid"]: provider for provider in providers} == single_requests.providers(self.call)
        check_order(providers)

    @rule(limit=LIMITS, amount=AMOUNTS, name=st.sampled_from(CLASSES), ascending=st.booleans())
    def sorts(self, limit, amount, name, ascending):
        if name not in self.classes():
            return
        providers = self.overview(limit, f"sort={'-' if ascending else ''}{amount}:{name}")
        check_order(providers)
        sums = {
            root: [provider["inventories"][name][amount] for provider in tree if name in provider["inventories"]]
            for root, tree in trees(self.overview()).items()
        }
        expected = [sum(sums[root]) for root in trees(providers)]
        assert expected == sorted(expected, reverse=not ascending)
        assert trees(providers).keys() == {root for root in sums if sums[root]}

    @rule(limit=LIMITS, data=st.data())
    def filters(self, limit, data):
        providers = [*itertools.chain(*trees(self.overview()).values())]
        kinds = {
            "class": {name for provider in providers for name in provider["inventories"]},
            "trait": {name for provider in providers for name in provider["traits"]},
            "aggregate": {name for provider in providers for name in provider["aggregates"]},
            "over_committed": {"1"},
            "root": {provider["name"] for provider in providers} | {provider["uuid"] for provider in providers},
        }
        conditions = {
            kind: data.draw(st.sampled_from(sorted(names)))
            for kind, names in kinds.items()
            if names and data.draw(st.integers(0, 2)) == 1
        }
        matches = self.overview(limit, *(f"{kind}={value}" for kind, value in conditions.items()))
        root = conditions.pop("root", None)
        root_uuid = next(
            (provider["root"]["uuid"] for provider in providers if root in (provider["uuid"], provider["name"])), None
        )
        assert trees(matches).keys() == {
            top
            for top, tree in trees(providers).items()
            if any(meets(provider, conditions) for provider in tree) and (root is None or top == root_uuid)
        }

    @rule(
        window=st.sampled_from((1, 3, 50_000)),
        max_rows=st.sampled_from((0, 2, 10_000)),
        max_unstreamed=st.sampled_from((0, 1000)),
    )
    def changes_the_limits(self, window, max_rows, max_unstreamed):
        """Set the limits; without unstreamed rows the overview is streamed, and the index counts its consumers."""
        consumer_pages.WINDOW, consumer_pages.MAX_INDEX_ROWS, overview.MAX_UNSTREAMED = window, max_rows, max_unstreamed

    @rule(limit=LIMITS.filter(lambda limit: "99" not in limit))
    def reads_consumers(self, limit):
        consumers = pages(self.call, f"/v1/consumers?{limit}", "consumers")
        assert all(consumer.pop("since") for consumer in consumers)
        assert len(consumers) == len({consumer["uuid"] for consumer in consumers})
        assert {consumer["uuid"]: consumer for consumer in consumers} == single_requests.consumers(self.call)

    @rule(
        index=st.integers(0, 9), name=st.sampled_from(CLASSES), page_size=st.sampled_from(("", "&limit=1", "&limit=2"))
    )
    def filters_consumers(self, index, name, page_size):
        documents = [*single_requests.consumers(self.call).values()]
        providers = sorted({provider for consumer in documents for provider in consumer["allocations"]})
        if not providers:
            return
        provider = providers[index % len(providers)]
        consumers = {consumer["uuid"]: consumer for consumer in documents}

        def uuids_of(query):
            matches = pages(self.call, f"/v1/consumers?{query}{page_size}", "consumers")
            return [consumer["uuid"] for consumer in matches]

        with_provider = {uuid for uuid, consumer in consumers.items() if provider in consumer["allocations"]}
        assert sorted(uuids_of(f"provider={provider}")) == sorted(with_provider)
        chosen = consumers[sorted(with_provider)[0]]
        for field in ("project", "user", "type"):
            expected = sorted(uuid for uuid, consumer in consumers.items() if consumer[field] == chosen[field])
            assert sorted(uuids_of(f"{field}={chosen[field]}")) == expected
        if name in self.classes():
            with_class = {uuid for uuid, consumer in consumers.items() if holds(consumer, name)}
            assert sorted(uuids_of(f"class={name}")) == sorted(with_class)
            with_both = {
                uuid for uuid in with_provider if name in consumers[uuid]["allocations"][provider]["resources"]
            }
            assert sorted(uuids_of(f"class={name}&provider={provider}")) == sorted(with_both)

    @rule(index=st.integers(0, 9), by_name=st.booleans(), limit=st.sampled_from(("", "limit=1", "limit=2")))
    def reads_a_tree(self, index, by_name, limit):
        providers = self.overview()
        if not providers:
            return
        chosen = providers[index % len(providers)]
        path = f"/v1/providers/{chosen['name' if by_name else 'uuid']}?{limit}"
        page = get(self.call, path)
        tree = trees(providers)[chosen["root"]["uuid"]]
        assert (page["provider"], page["tree"]) == (chosen, tree)
        holders = {
            (holder["consumer"], holder["provider"]["uuid"]): holder["resources"]
            for holder in pages(self.call, path, "holders")
        }
        assert holders == {
            (uuid, provider): allocation["resources"]
            for uuid, consumer in single_requests.consumers(self.call).items()
            for provider, allocation in consumer["allocations"].items()
            if provider in {member["uuid"] for member in tree}
        }

    def overview(self, *query):
        return pages(self.call, f"/v1/overview?{'&'.join(filter(None, query))}", "providers")

    def classes(self):
        return {resource_class["name"] for resource_class in get(self.call, "/resource_classes")["resource_classes"]}


def trees(providers):
    """Return the providers of each tree, by the uuid of the root; check that they are consecutive."""
    by_root = {}
    for root, tree in itertools.groupby(providers, lambda provider: provider["root"]["uuid"]):
        assert root not in by_root
        by_root[root] = [*tree]
    return by_root


def check_order(providers):
    """Check that the providers of each tree are in pre-order."""
    for root, tree in trees(providers).items():
        path = []
        for provider in tree:
            if provider["uuid"] == root:
                assert not path
            while path and path[-1] != provider["parent"]["uuid"]:
                path.pop()
            assert path or provider["uuid"] == root
            path.append(provider["uuid"])


def meets(provider, conditions):
    name = conditions.get("class")
    return (
        (name is None or name in provider["inventories"])
        and ("trait" not in conditions or conditions["trait"] in provider["traits"])
        and ("aggregate" not in conditions or conditions["aggregate"] in provider["aggregates"])
        and (
            "over_committed" not in conditions
            or any(
                is_over_committed(inventory)
                for key, inventory in provider["inventories"].items()
                if name in (None, key)
            )
        )
    )


def is_over_committed(inventory):
    return inventory["used"] > (inventory["total"] - inventory["reserved"]) * inventory["allocation_ratio"]


def holds(consumer, name):
    return any(name in allocation["resources"] for allocation in consumer["allocations"].values())


@pytest.mark.every_database
def test_documents_agree_with_the_placement_api(backend, database, monkeypatch):
    for module, name in ((consumer_pages, "WINDOW"), (consumer_pages, "MAX_INDEX_ROWS"), (overview, "MAX_UNSTREAMED")):
        monkeypatch.setattr(module, name, getattr(module, name))  # restores it
    conf = web.configuration(placement_database__connection=str(database.engine.url))
    call = caller.inside(deploy.loadapp(conf, database))
    run(WritersAndReaders, call, 15 if backend.kind == servers.SQLite.kind else 5)
