"""Any sequence of writes gets the responses that a model of a few dictionaries predicts, and reads show its state.

The dictionaries are in tests/model.  The service runs in process on each kind of database; with PLACEMENT_TEST_URL in
the environment the same requests go to that service, of any implementation.  PLACEMENT_TEST_REFERENCE=1 marks the
reference implementation, and omits requests that leave consumers without allocations there (docs: api-consumers).
"""

from __future__ import annotations

import os

import hypothesis
from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule, run_state_machine_as_test

from placement import deploy
from tests import caller, extension_modules, history_checks, servers, web
from tests.db import lease
from tests.db.feed_audit import audit
from tests.model.clients import Clients, body_of, clear, copy_of, record, records, when
from tests.model.records import UNSAID, Inventory
from tests.model.strategies import (
    AMOUNTS,
    BELIEF,
    CLASSES,
    CONSUMER,
    CUSTOM_CLASSES,
    INVENTORIES,
    INVENTORY,
    NOT_THERE,
    NUMBER,
    OFF,
    OWNERS,
    TRAITS,
    WHICH,
    claims,
    minors,
)
from tests.run_length import LONG
from tests.strategies import scale

URL = os.environ.get("PLACEMENT_TEST_URL")
REFERENCE = bool(os.environ.get("PLACEMENT_TEST_REFERENCE"))

OWNER_AND_TYPE = {"owner": st.sampled_from(OWNERS), "type_": st.sampled_from(("INSTANCE", "MIGRATION"))}
NEW = {True: 201, False: 204}


class Writers(Clients):
    """The well-formed writes of all clients."""

    # --- providers ---

    @initialize(inventory=INVENTORY, amount=st.integers(1, 4), minor=minors(0, 28, 39), **OWNER_AND_TYPE)
    def begin(self, inventory, amount, minor, **owner_and_type):
        """Create a root with a child, another root, and a consumer."""
        self.name_class("ensure", "", "CUSTOM_A")
        self.create_provider(0, None, None, 39)
        self.create_provider(1, None, 0, 39)
        self.create_provider(2, None, None, 39)
        self.set_inventories(0, {"VCPU": Inventory(8)}, 0, 39)
        self.add_inventory(0, "CUSTOM_A", inventory, 39)
        self.set_inventories(1, {"VCPU": Inventory(4), "DISK_GB": Inventory(8, allocation_ratio=1.5)}, 0, 39)
        self.set_inventories(2, {"VCPU": Inventory(2)}, 0, 39)
        self.claim_alone(0, [(0, 1, amount), (1, 0, 1)], "right", minor, **owner_and_type)

    @rule(number=NUMBER, name=st.none() | NUMBER, parent=st.none() | WHICH, minor=minors(0, 14, 20, 39))
    def create_provider(self, number, name, parent, minor):
        uuid, name = self.uuid("a", number), f"name{number if name is None else name}"
        parent = None if parent is None or minor < 14 else self.provider(parent)
        body = {"name": name, "uuid": uuid} | ({"parent_provider_uuid": parent} if minor >= 14 else {})
        self.does(
            *(200 if minor >= 20 else 201, "POST", "/resource_providers", minor, body),
            lambda: self.model.create_provider(uuid, name, parent),
        )

    @rule(which=WHICH, name=NUMBER, minor=minors(0, 14, 39))
    def rename_provider(self, which, name, minor):
        uuid, name = self.provider(which), f"name{name}"
        self.does(
            *(200, "PUT", f"/resource_providers/{uuid}", minor, {"name": name}),
            lambda: self.model.save_provider(uuid, name),
        )

    @rule(which=WHICH, parent=st.none() | WHICH, rename=st.none() | NUMBER, minor=minors(14, 36, 37, 39))
    def move_provider(self, which, parent, rename, minor):
        uuid = self.provider(which)
        parent = None if parent is None else self.provider(parent)
        provider = self.model.providers.get(uuid)
        name = provider.name if provider and rename is None else f"name{rename}"
        self.does(
            *(200, "PUT", f"/resource_providers/{uuid}", minor, {"name": name, "parent_provider_uuid": parent}),
            lambda: self.model.save_provider(uuid, name, parent, may_reparent=minor >= 37),
        )

    @rule(which=WHICH, minor=minors(0, 39))
    @when(lambda self: len(self.model.providers) > 2)
    def delete_provider(self, which, minor):
        uuid = self.provider(which)
        path = f"/resource_providers/{uuid}"
        self.does(204, "DELETE", path, minor, None, lambda: self.model.delete_provider(uuid))

    # --- inventories ---

    @rule(which=WHICH, inventories=INVENTORIES, off=OFF, minor=minors(0, 25, 26, 39))
    def set_inventories(self, which, inventories, off, minor):
        uuid = self.provider(which)
        generation = self.generation(uuid, off)
        self.does(
            *(200, "PUT", f"/resource_providers/{uuid}/inventories", minor, records(inventories, generation)),
            lambda: self.model.replace_inventories(uuid, generation, inventories, may_be_full=minor >= 26),
        )

    @rule(which=WHICH, off=OFF, minor=minors(0, 39))
    def set_the_same_inventories(self, which, off, minor):
        """Repeat the current inventories, like the periodic reports of agents."""
        provider = self.model.providers.get(self.provider(which))
        self.set_inventories(which, dict(provider.inventories) if provider else {}, off, minor)

    @rule(which=WHICH, name=st.sampled_from(CLASSES), inventory=INVENTORY, minor=minors(0, 25, 26, 39))
    def add_inventory(self, which, name, inventory, minor):
        uuid = self.provider(which)
        body = {"resource_class": name, **record(inventory)}
        self.does(
            *(201, "POST", f"/resource_providers/{uuid}/inventories", minor, body),
            lambda: self.model.add_inventory(uuid, name, inventory, may_be_full=minor >= 26),
        )

    @rule(which=WHICH, which_class=WHICH, inventory=INVENTORY, off=OFF, minor=minors(0, 25, 26, 39))
    def update_inventory(self, which, which_class, inventory, off, minor):
        uuid = self.provider(which)
        name, generation = self.class_of(uuid, which_class), self.generation(uuid, off)
        body = {"resource_provider_generation": generation, **record(inventory)}
        self.does(
            *(200, "PUT", f"/resource_providers/{uuid}/inventories/{name}", minor, body),
            lambda: self.model.update_inventory(uuid, name, generation, inventory, may_be_full=minor >= 26),
        )

    @rule(which=WHICH, index=WHICH, amount=st.integers(1, 3), minor=minors(0, 39))
    @when(lambda self: self.model.consumers)
    def shrinks(self, which, index, amount, minor):
        """Shrink an inventory, mostly below the usage, as when a device breaks."""
        _, allocations = self.holder(which)
        uuid, name = allocation_at(allocations, index)
        generation = self.generation(uuid)
        self.does(
            *(200, "PUT", f"/resource_providers/{uuid}/inventories/{name}", minor),
            {"resource_provider_generation": generation, "total": amount},
            lambda: self.model.update_inventory(uuid, name, generation, Inventory(amount), may_be_full=False),
        )

    @rule(which=WHICH, which_class=st.none() | WHICH, minor=minors(5, 39))
    def remove_inventory(self, which, which_class, minor):
        """Delete one inventory, or all."""
        uuid = self.provider(which)
        path = f"/resource_providers/{uuid}/inventories"
        if which_class is None:
            self.does(204, "DELETE", path, minor, None, lambda: self.model.remove_inventories(uuid))
        else:
            name = self.class_of(uuid, which_class)
            path = f"{path}/{name}"
            self.does(204, "DELETE", path, minor, None, lambda: self.model.remove_inventory(uuid, name))

    # --- traits, aggregates, classes ---

    @rule(which=WHICH, names=st.none() | st.sets(st.sampled_from(TRAITS), max_size=2), off=OFF, minor=minors(6, 39))
    def set_traits(self, which, names, off, minor):
        uuid = self.provider(which)
        generation = self.generation(uuid, off)
        path = f"/resource_providers/{uuid}/traits"
        if names is None:
            self.does(204, "DELETE", path, minor, None, lambda: self.model.clear_traits(uuid))
            return
        self.does(
            *(200, "PUT", path, minor, {"resource_provider_generation": generation, "traits": sorted(names)}),
            lambda: self.model.replace_traits(uuid, generation, names),
        )

    @rule(which=WHICH, numbers=st.sets(NUMBER, max_size=3), off=OFF, minor=minors(1, 18, 19, 39))
    def set_aggregates(self, which, numbers, off, minor):
        uuid = self.provider(which)
        aggregates = [self.uuid("d", number) for number in sorted(numbers)]
        generation = self.generation(uuid, off) if minor >= 19 else UNSAID
        body = {"resource_provider_generation": generation, "aggregates": aggregates} if minor >= 19 else aggregates
        self.does(
            *(200, "PUT", f"/resource_providers/{uuid}/aggregates", minor, body),
            lambda: self.model.replace_aggregates(uuid, generation, aggregates),
        )

    @rule(name=st.sampled_from(TRAITS), delete=st.booleans())
    def name_trait(self, name, delete):
        path = f"/traits/{name}"
        if delete:
            self.does(204, "DELETE", path, 39, None, lambda: self.model.delete_trait(name))
        else:
            self.does(NEW, "PUT", path, 39, None, lambda: self.model.ensure_trait(name))

    @rule(
        action=st.sampled_from(("create", "ensure", "rename", "delete")),
        name=st.sampled_from(CLASSES),
        custom=st.sampled_from(CUSTOM_CLASSES),
    )
    def name_class(self, action, name, custom):
        path = "/resource_classes"
        if action == "create":
            self.does(201, "POST", path, 39, {"name": custom}, lambda: self.model.create_class(custom))
        elif action == "ensure":
            self.does(NEW, "PUT", f"{path}/{custom}", 39, None, lambda: self.model.ensure_class(custom))
        elif action == "rename":
            self.does(
                *(200, "PUT", f"{path}/{name}", 2, {"name": custom}), lambda: self.model.rename_class(name, custom)
            )
        else:
            self.does(204, "DELETE", f"{path}/{name}", 39, None, lambda: self.model.delete_class(name))

    # --- claims ---

    @rule(number=CONSUMER, amounts=AMOUNTS, belief=BELIEF, minor=minors(0, 8, 12, 28, 34, 38, 39), **OWNER_AND_TYPE)
    def claim_alone(self, number, amounts, belief, minor, **owner_and_type):
        self.put(
            self.claim(self.uuid("c", number), self.allocations_of(amounts), minor, belief=belief, **owner_and_type),
            minor,
        )

    @rule(
        number=CONSUMER,
        which=WHICH,
        which_class=WHICH,
        amount=st.integers(0, 2),
        minor=minors(28, 39),
        **OWNER_AND_TYPE,
    )
    def claim_a_little(self, number, which, which_class, amount, minor, **owner_and_type):
        """Make a small claim, which mostly fits, or an empty one."""
        resources = self.allocations_of([(which % NOT_THERE, which_class % NOT_THERE, amount)]) if amount else {}
        self.put(self.claim(self.uuid("c", number), resources, minor, **owner_and_type), minor)

    @rule(which=WHICH, index=WHICH, by=st.sampled_from((-1, 0, 0, 1)), minor=minors(1, 12, 28, 39), **OWNER_AND_TYPE)
    @when(lambda self: self.model.consumers)
    def resizes(self, which, index, by, minor, **owner_and_type):
        """Change one allocation of a consumer by a small amount."""
        consumer, allocations = self.holder(which)
        provider, name = allocation_at(allocations, index)
        allocations[provider][name] = max(1, allocations[provider][name] + by)
        self.put(self.claim(consumer, allocations, minor, **owner_and_type), minor)

    @rule(claims=claims(2, 3), minor=minors(13, 28, 34, 38), **OWNER_AND_TYPE)
    def claim_together(self, claims, minor, **owner_and_type):
        self.post(self.all_of(claims, minor, owner_and_type), minor)

    @rule(which=WHICH, number=CONSUMER, to=st.none() | WHICH, minor=minors(13, 28, 39), **OWNER_AND_TYPE)
    @when(lambda self: self.model.consumers)
    def moves(self, which, number, to, minor, **owner_and_type):
        """Migrate a server: another consumer takes over its allocations, and it claims the same elsewhere."""
        consumer, allocations = self.holder(which)
        other = self.uuid("c", number)
        amounts = {name: amount for resources in allocations.values() for name, amount in resources.items()}
        new_allocations = {} if to is None else {self.provider(to): amounts}
        claims = [self.claim(consumer, new_allocations, minor, **owner_and_type)]
        if other != consumer:
            claims.append(self.claim(other, allocations, minor, **owner_and_type))
        self.post(claims, minor)

    @rule(which=WHICH, minor=minors(0, 28, 39))
    def releases(self, which, minor):
        consumer = self.uuid("c", 15) if which == NOT_THERE or not self.model.consumers else self.holder(which)[0]
        self.does(204, "DELETE", f"/allocations/{consumer}", minor, None, lambda: self.model.release(consumer))

    def all_of(self, claims, minor, owner_and_type):
        return [
            self.claim(self.uuid("c", number), self.allocations_of(amounts), minor, belief=belief, **owner_and_type)
            for number, amounts, belief in claims
        ]

    def put(self, claim, minor):
        if not self.leaves_ghosts([claim]):
            body = body_of(claim, minor)
            self.does(204, "PUT", f"/allocations/{claim.consumer}", minor, body, lambda: self.model.place([claim]))

    def post(self, claims, minor):
        if not self.leaves_ghosts(claims):
            body = {claim.consumer: body_of(claim, minor) for claim in claims}
            self.does(204, "POST", "/allocations", minor, body, lambda: self.model.place(claims))

    def leaves_ghosts(self, claims):
        """Whether the reference would keep consumers that it should delete."""
        new = [claim for claim in claims if claim.consumer not in self.model.consumers]
        unknown_provider = any(uuid not in self.model.providers for claim in claims for uuid in claim.allocations)
        return REFERENCE and any(unknown_provider or not claim.allocations for claim in new)

    # --- reshapes ---

    @rule(
        inventories=st.lists(st.tuples(WHICH, INVENTORIES, OFF), min_size=1, max_size=2),
        claims=claims(0, 2),
        minor=minors(30, 34, 38, 39),
        **OWNER_AND_TYPE,
    )
    def reshapes(self, inventories, claims, minor, **owner_and_type):
        new = {
            self.provider(which): (self.generation(self.provider(which), off), stock)
            for which, stock, off in inventories
        }
        self.reshape(new, self.all_of(claims, minor, owner_and_type), minor)

    @rule(which=WHICH, which_class=WHICH, to=WHICH, inventory=INVENTORY, minor=minors(30, 39), **OWNER_AND_TYPE)
    def moves_a_class(self, which, which_class, to, inventory, minor, **owner_and_type):
        """Move an inventory and all claims on it to another provider, as when a device becomes a provider."""
        source, target = self.provider(which), self.provider(to)
        if source == target or not {source, target} <= self.model.providers.keys():
            return
        name = self.class_of(source, which_class)
        remaining = {other: stock for other, stock in self.model.providers[source].inventories.items() if other != name}
        extended = {**self.model.providers[target].inventories, name: inventory}
        claims = []
        for consumer, holding in sorted(self.model.consumers.items()):
            if name in holding.allocations.get(source, {}):
                resources = copy_of(holding.allocations)
                resources.setdefault(target, {})[name] = resources[source].pop(name)
                resources = {uuid: amounts for uuid, amounts in resources.items() if amounts}
                claims.append(self.claim(consumer, resources, minor, **owner_and_type))
        self.reshape(
            {source: (self.generation(source), remaining), target: (self.generation(target), extended)}, claims, minor
        )

    def reshape(self, new, claims, minor):
        if not self.leaves_ghosts(claims):
            body = {
                "inventories": {
                    uuid: records(inventories, generation) for uuid, (generation, inventories) in new.items()
                },
                "allocations": {claim.consumer: body_of(claim, minor) for claim in claims},
            }
            self.does(204, "POST", "/reshaper", minor, body, lambda: self.model.reshape(new, claims))


def allocation_at(allocations, index):
    """Return a provider and a class with an allocation."""
    pairs = [(uuid, name) for uuid in sorted(allocations) for name in sorted(allocations[uuid])]
    return pairs[index % len(pairs)]


#: Clients of Placement's routes, together with clients of extensions.
Everyone = type("Everyone", (*(module.Pickers for module in extension_modules.load("model", "picking")), Writers), {})


def run(machine, call, percentage, **members):
    """Run the state machine on a percentage of the profile's examples; ``members`` replace methods of the machine."""
    settings = hypothesis.settings(
        max_examples=scale(percentage),
        stateful_step_count=25,
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    clear(call)
    run_state_machine_as_test(type("Machine", (machine,), {"call": staticmethod(call), **members}), settings=settings)


if URL:

    def test_service_at_url_agrees_with_the_model():
        run(Writers, caller.over_http(URL), 100)

else:

    def test_service_agrees_with_the_model(backend, database):
        conf = web.configuration(placement_database__connection=str(database.engine.url))
        call = caller.inside(deploy.loadapp(conf, database))
        with audit(database) as commits:

            def audited_call(*request):
                answer = call(*request)
                assert not [commit.omissions for commit in commits if commit.omissions], "the feed is incomplete"
                commits.clear()
                return answer

            percentage = 10 if LONG and backend.kind != servers.SQLite.kind else 30
            expire = staticmethod(lambda consumer: lease.expire(database, consumer))
            follow = history_checks.follower(database)
            run(Everyone, audited_call, percentage, expire=expire, at_end=staticmethod(follow))
