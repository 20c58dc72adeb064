"""Any sequence of writes to nodes and allocations, beside Placement clients, is as a model predicts.

The model is tests/model/extensions/baremetal/bare_metal.py.  After each write: a node has one holder at most, an active
allocation is on the node that carries its uuid, and a holder that this API has made has its record, unless a Placement
client has moved it.
"""

from __future__ import annotations

import random
import uuid as uuid_module

import hypothesis
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from placement import deploy
from placement.extensions.baremetal.objects import candidates
from tests import caller, servers, web
from tests.db.extensions import replay
from tests.db.feed_audit import audited
from tests.model.clients import outcome, when
from tests.model.extensions.baremetal.bare_metal import ACTIVE, AVAILABLE, MANAGEABLE, Model, Record
from tests.model.records import Refused
from tests.run_length import LONG
from tests.strategies import scaled

NODES, ALLOCATIONS = "/baremetal/v1/nodes", "/baremetal/v1/allocations"

NUMBER = st.integers(0, 3)
CONSUMER = st.integers(0, 4)
#: ``gold`` and ``go.ld`` or ``go-ld`` are different classes; the last two have one name in Placement.
CLASS = st.sampled_from(("gold", "gold", "gold", "go.ld", "go-ld"))
NAME = st.sampled_from((None, None, "a", "b", "A"))
OWNER = st.sampled_from((None, None, None, "mine", "yours"))
TRAITS = st.lists(st.sampled_from(("CUSTOM_T", "CUSTOM_U")), max_size=2, unique=True)
FEW_TRAITS = st.sampled_from(([], [], [], ["CUSTOM_T"], ["CUSTOM_U", "CUSTOM_T"]))


class DrawnChoice(random.Random):
    """Chooses what Hypothesis has drawn: a failure can be repeated only if the same node is given away again."""

    number = 0

    def choice(self, seq):
        return sorted(seq)[self.number % len(seq)]


class Clients(RuleBasedStateMachine):
    """Clients of both APIs."""

    def __init__(self) -> None:
        super().__init__()
        self.model = Model()
        self.run = str(uuid_module.uuid4())[8:]
        self.made = 0

    # --- names ---

    def uuid(self, kind, number):
        return f"{kind}000000{number:x}{self.run}"

    def new_uuid(self):
        self.made += 1
        return f"b{self.made:07x}{self.run}"

    def node(self, number):
        return self.uuid("a", number)

    def consumer(self, number):
        return self.uuid("c", number)

    def some_consumer(self, number):
        """Mostly one that holds something, or that an allocation is named by."""
        # Not in the order of uuids that the service has made, which differs when Hypothesis repeats the steps.
        known = [*dict.fromkeys((*self.model.consumers, *self.model.records))]
        return known[number] if number < len(known) else self.consumer(number)

    # --- sending ---

    def does(self, status, method, path, body, predict):
        """Send the request; check that the model has the same outcome, and return the body of a success."""
        answer = self.call(method, path, None, body)
        hypothesis.event(f"{method} {path.split('/')[1:4:2]}: {answer.status}")
        refused = outcome(predict)
        if isinstance(refused, Refused):
            assert answer.status == refused.status, (method, path, body, answer, refused)
            assert refused.phrases[0].lower() in str(answer.body).lower(), (answer, refused)
            return None
        assert answer.status == status, (method, path, body, answer)
        return answer.body

    def get(self, path, status=200):
        answer = self.call("GET", path)
        assert answer.status == status, (path, answer)
        return answer.body

    # --- nodes ---

    @initialize(several=st.lists(st.tuples(CLASS, TRAITS), min_size=2, max_size=4))
    def begin(self, several):
        """Nodes that can be given away."""
        for number, (resource_class, traits) in enumerate(several):
            self.create_node(number, None, resource_class, None, None)
            self.set_traits(number, traits)
            self.power(number, "power off")
            self.provision(number, "manage")
            self.provision(number, "provide")

    @rule(number=NUMBER, name=NAME, resource_class=st.none() | CLASS, owner=OWNER, lessee=OWNER)
    def create_node(self, number, name, resource_class, owner, lessee):
        node = self.node(number)
        columns = {"name": name, "resource_class": resource_class, "owner": owner, "lessee": lessee}
        body = {name: value for name, value in columns.items() if value is not None}
        body |= {"uuid": node, "driver": "fake-hardware"}
        self.does(201, "POST", NODES, body, lambda: self.model.create_node(node, **columns))

    @rule(number=NUMBER)
    def delete_node(self, number):
        node = self.node(number)
        self.does(204, "DELETE", f"{NODES}/{node}", None, lambda: self.model.delete_node(node))

    @rule(number=NUMBER, verb=st.sampled_from(("manage", "provide", "provide", "active", "active", "deleted")))
    def provision(self, number, verb):
        node, body = self.node(number), {"target": verb}
        path = f"{NODES}/{node}/states/provision"
        self.does(202, "PUT", path, body, lambda: self.model.provision(node, verb))

    @rule(which=CONSUMER)
    @when(lambda self: self.model.nodes)
    def makes_it_available(self, which):
        """All steps from wherever the node is, so that there is an available node."""
        nodes = sorted(self.model.nodes)
        node = nodes[which % len(nodes)]
        number = int(node[7], 16)
        self.maintain(number, on=False)
        self.power(number, "power on")
        for state, target in ((ACTIVE, "deleted"), ("enroll", "manage"), (MANAGEABLE, "provide")):
            if self.model.nodes[node].provision_state == state:
                self.provision(number, target)
        assert self.model.nodes[node].provision_state == AVAILABLE

    @rule(number=NUMBER, state=st.sampled_from(("power on", "power off")))
    def power(self, number, state):
        node, path = self.node(number), f"{NODES}/{self.node(number)}/states/power"
        self.does(202, "PUT", path, {"target": state}, lambda: self.model.set(node, power_state=state))

    @rule(number=NUMBER, on=st.booleans())
    def maintain(self, number, on):
        node, path = self.node(number), f"{NODES}/{self.node(number)}/maintenance"
        method, body = ("PUT", {"reason": "disk"}) if on else ("DELETE", None)
        self.does(202, method, path, body, lambda: self.model.set(node, maintenance=on))

    def patch(self, number, name, value, predict):
        operation = {"op": "add", "value": value} if value is not None else {"op": "remove"}
        operation["path"] = f"/{name}"
        self.does(200, "PATCH", f"{NODES}/{self.node(number)}", [operation], predict)

    @rule(number=NUMBER, resource_class=CLASS)
    def set_class(self, number, resource_class):
        node = self.node(number)
        self.patch(number, "resource_class", resource_class, lambda: self.model.set_class(node, resource_class))

    @rule(number=NUMBER, name=st.sampled_from("abA"))
    def rename_node(self, number, name):
        node = self.node(number)
        self.patch(number, "name", name, lambda: self.model.rename_node(node, name))

    @rule(number=NUMBER, which=st.sampled_from(("owner", "lessee")), project=st.sampled_from(("mine", "yours")))
    def set_owner(self, number, which, project):
        node = self.node(number)
        self.patch(number, which, project, lambda: self.model.set(node, **{which: project}))

    @rule(number=NUMBER, consumer=CONSUMER)
    def set_instance(self, number, consumer):
        node, instance = self.node(number), self.some_consumer(consumer)
        self.patch(number, "instance_uuid", instance, lambda: self.model.set_instance(node, instance))

    @rule(which=CONSUMER)
    @when(lambda self: self.model.consumers)
    def remove_instance(self, which):
        held = sorted(node for node in self.model.nodes if self.model.holder(node))
        if held:
            node = held[which % len(held)]
            number = int(node[7], 16)
            self.patch(number, "instance_uuid", None, lambda: self.model.set_instance(node, None))

    @rule(number=NUMBER, traits=TRAITS)
    def set_traits(self, number, traits):
        node, path = self.node(number), f"{NODES}/{self.node(number)}/traits"
        self.does(204, "PUT", path, {"traits": traits}, lambda: self.model.set_traits(node, traits))

    # --- allocations ---

    @rule(
        uuid=st.none() | st.none() | CONSUMER,
        name=NAME,
        resource_class=CLASS,
        owner=OWNER,
        traits=FEW_TRAITS,
        candidate_nodes=st.just([]) | st.lists(NUMBER, min_size=1, max_size=3),
        chosen=NUMBER,
    )
    def allocate(self, uuid, name, resource_class, owner, traits, candidate_nodes, chosen):
        self.choice.number = chosen
        uuid = self.new_uuid() if uuid is None else self.some_consumer(uuid)
        record = Record(name, resource_class, owner, traits, [self.node(number) for number in candidate_nodes])
        body = {"uuid": uuid, "name": name, "resource_class": resource_class, "owner": owner, "traits": traits}
        body["candidate_nodes"] = record.candidates
        fitting = set()
        made = self.does(
            *(201, "POST", ALLOCATIONS, body),
            lambda: fitting.update(self.model.create_allocation(uuid, record)),
        )
        if made is not None:
            assert (made["state"], made["node_uuid"], made["updated_at"]) == ("allocating", None, None)
            now = self.get(f"{ALLOCATIONS}/{uuid}")
            hypothesis.event(f"allocation: {now['state']}")
            if fitting:
                assert now["state"] == "active", (now, fitting)
                assert now["node_uuid"] in fitting
                self.model.got(uuid, now["node_uuid"])

    @rule(
        uuid=st.none() | st.none() | CONSUMER,
        number=NUMBER,
        name=NAME,
        resource_class=st.none() | st.none() | CLASS,
        traits=FEW_TRAITS,
    )
    def backfill(self, uuid, number, name, resource_class, traits):
        uuid, node = uuid if uuid is None else self.some_consumer(uuid), self.node(number)
        record = Record(name, resource_class, None, traits, [])
        body = {"node": node, "name": name, "traits": traits}
        body |= {"uuid": uuid} if uuid else {}
        body |= {"resource_class": resource_class} if resource_class else {}
        chosen = []
        made = self.does(
            *(201, "POST", ALLOCATIONS, body),
            lambda: chosen.append(self.model.backfill(uuid, node, record)),
        )
        if made is not None:
            assert (made["state"], made["node_uuid"]) == ("active", node)
            if chosen == ["new"]:
                for known in (self.model.records, self.model.consumers):
                    known[made["uuid"]] = known.pop("new")

    @rule(number=CONSUMER, name=NAME)
    @when(lambda self: self.model.nodes)
    def deploys_by_hand_and_records_it(self, number, name):
        """Mostly a backfill that succeeds."""
        self.makes_it_available(number)
        node = sorted(self.model.nodes)[number % len(self.model.nodes)]
        self.provision(int(node[7], 16), "active")
        self.backfill(None, int(node[7], 16), name, None, [])

    @rule(which=CONSUMER, name=NAME)
    def rename_allocation(self, which, name):
        uuid = self.some_consumer(which)
        operation = {"op": "add", "path": "/name", "value": name}
        path = f"{ALLOCATIONS}/{uuid}"
        self.does(200, "PATCH", path, [operation], lambda: self.model.rename_allocation(uuid, name))

    @rule(which=CONSUMER, by_name=st.booleans())
    def delete_allocation(self, which, by_name):
        uuid = self.some_consumer(which)
        name = self.model.records[uuid].name if by_name and uuid in self.model.live() else None
        path = f"{ALLOCATIONS}/{name or uuid}"
        self.does(204, "DELETE", path, None, lambda: self.model.delete_allocation(uuid))

    @rule(number=NUMBER)
    def delete_allocation_of_node(self, number):
        node, path = self.node(number), f"{NODES}/{self.node(number)}/allocation"
        self.does(204, "DELETE", path, None, lambda: self.model.delete_allocation_of_node(node))

    # --- clients of Placement ---

    @rule(which=CONSUMER, numbers=st.lists(NUMBER, min_size=1, max_size=2, unique=True))
    def claim(self, which, numbers):
        """A new consumer, or one that holds something, which it exchanges for this."""
        consumer, nodes = self.some_consumer(which), [self.node(number) for number in numbers]
        held = {}
        for node in nodes:
            inventories = self.model.providers[node].inventories if node in self.model.providers else {}
            if not inventories:
                return
            held[node] = {min(inventories): 1}
        path = f"/allocations/{consumer}"
        body = {
            "allocations": {node: {"resources": amounts} for node, amounts in held.items()},
            "project_id": "project",
            "user_id": "user",
            "consumer_generation": self.get(path).get("consumer_generation"),
            "consumer_type": "INSTANCE",
        }
        self.does(204, "PUT", path, body, lambda: self.model.claim(consumer, held))

    @rule(which=CONSUMER)
    @when(lambda self: self.model.consumers)
    def release(self, which):
        consumer = [*self.model.consumers][which % len(self.model.consumers)]
        self.does(204, "DELETE", f"/allocations/{consumer}", None, lambda: self.model.release(consumer))

    @rule(which=CONSUMER, traits=TRAITS)
    @when(lambda self: self.model.providers)
    def sets_traits_of_the_provider(self, which, traits):
        provider, body = self.provider(which), {"traits": traits}
        body["resource_provider_generation"] = self.generation(provider)
        path = f"/resource_providers/{provider}/traits"
        self.does(200, "PUT", path, body, lambda: self.model.providers[provider].traits.clear())
        self.model.providers[provider].traits.update(traits)

    @rule(which=CONSUMER, reserved=st.sampled_from((0, 1, None)))
    @when(lambda self: self.model.providers)
    def changes_the_unit(self, which, reserved):
        provider = self.provider(which)
        units = sorted(self.model.providers[provider].inventories)
        if not units:
            return
        path = f"/resource_providers/{provider}/inventories/{units[0]}"
        if reserved is None:
            method, status, body = "DELETE", 204, None
        else:
            method, status, body = "PUT", 200, {"total": 1, "reserved": reserved, "max_unit": 1}
            body["resource_provider_generation"] = self.generation(provider)
        self.does(status, method, path, body, lambda: self.model.change_inventory(provider, units[0], reserved))

    @rule(which=CONSUMER)
    @when(lambda self: self.model.providers)
    def deletes_a_provider(self, which):
        provider = self.provider(which)
        path = f"/resource_providers/{provider}"
        self.does(204, "DELETE", path, None, lambda: self.model.delete_provider(provider))

    @rule(number=NUMBER, traits=TRAITS)
    def creates_a_provider(self, number, traits):
        provider = self.node(number)
        body = {"uuid": provider, "name": provider}
        made = self.does(200, "POST", "/resource_providers", body, lambda: self.model.create_provider(provider, []))
        if made is not None:
            self.model.providers[provider].changed = True
            self.sets_traits_of_the_provider(sorted(self.model.providers).index(provider), traits)

    def provider(self, which):
        return sorted(self.model.providers)[which % len(self.model.providers)]

    def generation(self, provider):
        return self.get(f"/resource_providers/{provider}")["generation"]

    # --- what is shown ---

    @invariant()
    def providers_and_claims_are_as_the_model_says(self):
        self.look_at_the_providers()
        for provider in self.model.providers:
            shown = self.get(f"/resource_providers/{provider}/allocations")["allocations"]
            held = {consumer: of[provider] for consumer, of in self.model.consumers.items() if provider in of}
            assert {consumer: of["resources"] for consumer, of in shown.items()} == held
            assert len(shown) <= 1, "a node has two holders"
            shown = self.get(f"/resource_providers/{provider}/traits")["traits"]
            assert set(shown) == self.model.providers[provider].traits

    def look_at_the_providers(self):
        """Accept what a write of the node may do, refused or not.

        It makes a provider again that a Placement client has deleted, and writes an inventory that one has changed.
        """
        shown = {row["uuid"] for row in self.get("/resource_providers")["resource_providers"]}
        for uuid in shown - self.model.providers.keys():
            self.model.make_provider_again(uuid)
        assert shown == {*self.model.providers}
        for uuid, known in self.model.providers.items():
            inventories = self.get(f"/resource_providers/{uuid}/inventories")["inventories"]
            assert all(inventory["total"] == inventory["max_unit"] == 1 for inventory in inventories.values())
            reserved = {name: inventory["reserved"] for name, inventory in inventories.items()}
            node = self.model.nodes.get(uuid)
            if known.changed and node is not None and reserved != known.inventories:
                assert reserved == {**known.inventories, node.unit: int(not node.available)}
                known.inventories, known.changed = reserved, False
            assert reserved == known.inventories, (uuid, node)

    @invariant()
    def nodes_and_allocations_are_as_the_model_says(self):
        shown = {allocation["uuid"]: allocation for allocation in self.get(ALLOCATIONS)["allocations"]}
        for uuid in [*self.model.may_return()]:
            self.model.records[uuid].ended = uuid not in shown
        assert shown.keys() == self.model.live().keys()
        for uuid, record in self.model.live().items():
            self.check_allocation(shown[uuid], record)
        nodes = {node["uuid"]: node for node in self.get(f"{NODES}/detail")["nodes"]}
        assert nodes.keys() == self.model.nodes.keys()
        for uuid, node in self.model.nodes.items():
            shown_node = nodes[uuid]
            assert {name: shown_node[name] for name in vars(node)} == vars(node)
            assert shown_node["instance_uuid"] == self.model.holder(uuid)
            assert shown_node["allocation_uuid"] == self.model.record_of(uuid)
            known = self.model.providers.get(uuid)
            assert set(shown_node["traits"]) == (known.traits if known else set())
            record = self.model.record_of(uuid)
            document = self.get(f"{NODES}/{uuid}/allocation", 200 if record else 404)
            assert record is None or document["uuid"] == record

    def check_allocation(self, document, record):
        assert (document["node_uuid"], document["name"], document["owner"]) == (record.node, record.name, record.owner)
        assert (document["resource_class"], document["traits"]) == (record.resource_class, record.traits)
        assert document["state"] == ("error" if record.node is None else "active"), "nothing hangs in allocating"
        if record.node is None:
            assert document["last_error"].startswith(record.last_error)
            return
        assert document["last_error"] is None
        assert self.get(f"{NODES}/{record.node}")["instance_uuid"] == document["uuid"]
        assert self.get(f"/allocations/{document['uuid']}")["allocations"].keys() >= {record.node}

    @invariant()
    def every_holder_by_an_allocation_has_its_record(self):
        for consumer, held in self.model.consumers.items():
            if consumer in self.model.live():
                continue
            shown = self.get(f"/allocations/{consumer}")
            # A Placement client that moves a consumer gives it another type here.
            assert shown["consumer_type"] != "BAREMETAL", (consumer, held)

    def teardown(self):
        self.at_end()
        clear(self.call)


def clear(call):
    """Delete everything, even after a failure."""
    for provider in call("GET", "/resource_providers").body["resource_providers"]:
        for consumer in call("GET", f"/resource_providers/{provider['uuid']}/allocations").body["allocations"]:
            call("DELETE", f"/allocations/{consumer}")
    for allocation in call("GET", ALLOCATIONS).body["allocations"]:
        call("DELETE", f"{ALLOCATIONS}/{allocation['uuid']}")
    for node in call("GET", NODES).body["nodes"]:
        call("PUT", f"{NODES}/{node['uuid']}/maintenance", None, {})
        call("DELETE", f"{NODES}/{node['uuid']}")
    for provider in call("GET", "/resource_providers").body["resource_providers"]:
        call("DELETE", f"/resource_providers/{provider['uuid']}")


def run(call, choice, percentage, at_end):
    """Run the state machine on a percentage of the profile's examples.

    Args:
        choice: By which the service chooses among the nodes that fit.
        at_end: Called at the end of each example.
    """
    settings = hypothesis.settings(
        max_examples=scaled(percentage),
        stateful_step_count=20,
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    clear(call)
    for trait in ("CUSTOM_T", "CUSTOM_U"):  # clients of Placement name only traits that exist
        assert call("PUT", f"/traits/{trait}").status in (201, 204)
    members = {"call": staticmethod(call), "choice": choice, "at_end": staticmethod(at_end)}
    run_state_machine_as_test(type("Run", (Clients,), members), settings=settings)


def test_nodes_and_allocations_agree_with_the_model(backend, database, monkeypatch):
    choice = DrawnChoice()
    monkeypatch.setattr(candidates, "_random", lambda: choice)
    conf = web.configuration(placement_database__connection=str(database.engine.url), baremetal__enabled=True)
    call = caller.inside(deploy.loadapp(conf, database))
    with audited(database) as commits:

        def audited_call(*request):
            answer = call(*request)
            assert answer.status < 500, (request, answer)
            assert not [commit.omissions for commit in commits if commit.omissions], "the feed is incomplete"
            commits.clear()
            return answer

        percentage = 10 if LONG and backend.kind != servers.SQLite.kind else 30
        run(audited_call, choice, percentage, replay.Follower(database).check)
