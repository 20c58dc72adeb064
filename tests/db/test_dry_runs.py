"""A dry run returns the response of the write, shows the free capacity, and changes no table.

The writes are scenarios of requests (tests/db/writes.py), and random sequences like in test_state_machine.py.
"""

from __future__ import annotations

import contextlib
import json
import re
import threading

import jsonschema
import pytest
import sqlalchemy as sa
import webob
from prometheus_client import CollectorRegistry

from placement import deploy, errors
from placement import microversion as mv
from placement.db.dry_run import DryRun
from placement.db.schema.tables import inventories, metadata, projects, resource_classes, resource_providers, traits
from placement.db.writes.transaction import Collision
from placement.http.dry_run import respond
from placement.http.environ import API, REQUEST_ID, VERSION
from placement.metrics.definitions import Metrics
from placement.routes import PLACEMENT
from placement.schemas import dry_run as replies
from tests import apis, caller, servers, web
from tests.db import interleaving, sql_hooks
from tests.db.in_process import placement
from tests.db.scenarios import Call, Names
from tests.db.test_state_machine import Writers, run
from tests.db.writes import ALL, CLAIMED, FULL, HOST, OTHER, VARIANTS, aggregates, claim, holding, provider, stock
from tests.db.writes import traits as has_traits
from tests.made import opened

#: Headers that layers add to any response, and the date of an uncached one.
OF_EVERY_REPLY = {
    "x-content-type-options",
    "content-length",
    "openstack-api-version",
    "vary",
    "x-openstack-request-id",
    "last-modified",
}


#: All routes that may support dry runs, by path.
ROUTES = {api.prefix + path: methods for api in apis.WRITABLE for path, methods in api.routes.items()}


def has_dry_run(method, path):
    """Whether the tables of routes declare a dry run for this request."""
    for template, methods in ROUTES.items():
        if re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", template), path.partition("?")[0]):
            return getattr(methods.get(method), "dry_run", None) is not None
    return False


SCENARIOS = [write for write in (*ALL, *VARIANTS) if has_dry_run(*write.call.target.split())]
each_scenario = pytest.mark.parametrize("write", SCENARIOS, ids=lambda write: write.name)


def rows(database):
    """Return all rows of all tables, in order."""
    with database.reading_engine.connect() as connection:
        return {
            table.name: connection.execute(sa.select(table).order_by(*table.primary_key.columns)).all()
            for table in metadata.sorted_tables
        }


def dry(path):
    return f"{path}{'&' if '?' in path else '?'}dry_run=true"


def comparable(answer):
    """Return the parts of a response that a dry run shows, without those that differ in each response."""
    headers = {name: value for name, value in answer.headers.items() if name not in OF_EVERY_REPLY}
    return answer.status, headers, without_id(answer.body)


def without_id(body):
    """Return the body without values that differ in each response: ids of requests, and dates in the future.

    Refusals in a list of results lose their reasons, which a write reads after its transaction.
    """
    if isinstance(body, list):
        return [without_id(member) for member in body]
    if not isinstance(body, dict):
        return body
    reasons = {"explanation", *(() if "title" in body else ("detail",))}
    return {
        name: value is None if name == "expires_at" else without_id(value)
        for name, value in body.items()
        if name != "request_id" and name not in reasons
    }


def predicted_response(answer):
    """Return the response that a dry run predicts, in the form of ``comparable``."""
    assert answer.status == 200, answer
    jsonschema.validate(answer.body, replies.DRY_RUN.render(mv.LATEST))
    prediction = answer.body["dry_run"]
    return comparable(caller.Answer(prediction["status"], prediction.get("body"), prediction["headers"]))


def room(call, uuids):
    """Return the free capacity of these providers, read from their inventories and usages."""
    room = {}
    for uuid in uuids:
        path = f"/resource_providers/{uuid}"
        inventories, usages = call("GET", f"{path}/inventories").body["inventories"], call("GET", f"{path}/usages").body
        room[uuid] = {}
        for name, record in inventories.items():
            capacity, used = (
                int((record["total"] - record["reserved"]) * record["allocation_ratio"]),
                usages["usages"][name],
            )
            room[uuid][name] = {"capacity": capacity, "used": used, "free": max(capacity - used, 0)}
    return room


def compared_with_dry_runs(call, database):
    """Return a caller that sends each write as a dry run first, where supported, and compares the responses."""

    def first_dry(method, path, minor=None, body=None):
        if not has_dry_run(method, path):
            return call(method, path, minor, body)
        before, writers = rows(database), [(writer.id, writer.seq) for writer in database.writers.idle]
        tried = call(method, dry(path), minor, body)
        assert rows(database) == before
        assert [(writer.id, writer.seq) for writer in database.writers.idle] == writers
        reply = call(method, path, minor, body)
        if tried.status == 200:
            assert predicted_response(tried) == comparable(reply)
            assert tried.body["room"] == room(call, tried.body["room"])
        else:
            assert comparable(tried) == comparable(reply)
        return reply

    return first_dry


# --- every write ------------------------------------------------------------------------------------------------------


@each_scenario
def test_a_dry_run_returns_the_response_of_the_write_and_changes_nothing(database, write):
    scenario, call = Names(), placement(database)
    for before in write.before:
        assert call(*scenario.fill(before)).status < 300
    method, path, minor, body = scenario.fill(write.call)
    shows = call(method, dry(path), minor, body).body["room"].keys()
    assert shows >= {scenario[name] for name in write.changes}
    assert compared_with_dry_runs(call, database)(method, path, minor, body).status == write.status


def test_every_endpoint_with_a_dry_run_has_a_scenario():
    expected = {
        (method, path)
        for path, methods in ROUTES.items()
        for method, declared in methods.items()
        if getattr(declared, "dry_run", None) is not None
    }
    assert {(method, path.rpartition("/")[2]) for method, path in expected if path in PLACEMENT.routes} == {
        *(("PUT", "{consumer_uuid}"), ("POST", "allocations"), ("POST", "reshaper")),
        *(("POST", "inventories"), ("PUT", "inventories"), ("PUT", "{resource_class}")),
        *(("PUT", "traits"), ("PUT", "aggregates")),
    }
    tried_routes = {
        (method, path)
        for method, path in expected
        for write in SCENARIOS
        if write.call.target.split()[0] == method
        and re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", path), write.call.target.split()[1].partition("?")[0])
    }
    assert tried_routes == expected


@pytest.mark.every_database
def test_dry_runs_predict_the_responses_of_random_writes(backend, database):
    conf = web.configuration(placement_database__connection=str(database.engine.url))
    call = compared_with_dry_runs(caller.inside(deploy.loadapp(conf, database)), database)
    # The model's own test compares the state after each write; here the rows are compared.
    unread = {"the_service_agrees_with_the_model": lambda _machine: None}
    run(Writers, call, 15 if backend.kind == servers.SQLite.kind else 5, **unread)


# --- prerequisites of a write ----------------------------------------------------------------------------------------


class Cloud:
    """A service, and the names of one scenario; each write is preceded by its dry run."""

    def __init__(self, database):
        self.database, self.names = database, Names()
        self.ask = placement(database)
        self.both = compared_with_dry_runs(self.ask, database)

    def send(self, *calls):
        """Send requests without a dry run; each must succeed."""
        for call in calls:
            assert self.ask(*self.names.fill(call)).status < 300

    def dry_run(self, call):
        """Send the dry run of a request; return the response."""
        method, path, minor, body = self.names.fill(call)
        return self.ask(method, dry(path), minor, body)

    def try_and_send(self, call):
        """Send the dry run and the write, and compare them; return the response of the write."""
        return self.both(*self.names.fill(call))

    def usage(self, name):
        return self.ask("GET", f"/resource_providers/{self.names[name]}/usages").body["usages"]


@pytest.fixture
def cloud(database):
    return Cloud(database)


@pytest.mark.parametrize("owner", ["\u00e9", "\U0001f600", "x" * 255])
def test_an_owner_that_some_databases_cannot_store_gets_the_response_of_the_write(cloud, owner):
    cloud.send(*HOST)
    body = holding(None, host={"VCPU": 1}) | {"project_id": owner, "user_id": owner}
    cloud.try_and_send(Call("PUT /allocations/$consumer", body))


def test_names_equal_in_one_collation_get_the_response_of_the_write(cloud):
    cloud.send(*HOST)
    claims_of_both = {
        f"$consumer_{name}": holding(None, host={"VCPU": 1}) | {"project_id": name, "user_id": name}
        for name in ("anna", "ANNA")
    }
    assert cloud.try_and_send(Call("POST /allocations", claims_of_both)).status == 204


def delete_standard_names(database):
    with database.engine.begin() as connection:
        for table in (inventories, resource_classes, traits):
            connection.execute(sa.delete(table))


@pytest.mark.parametrize(
    "call", [stock("host", VCPU=8), has_traits("host", 0, "HW_CPU_X86_AVX")], ids=["classes", "traits"]
)
def test_missing_standard_names_are_inserted_for_the_dry_run_only(cloud, database, call):
    cloud.send(provider("host"))
    delete_standard_names(database)
    assert cloud.try_and_send(call).status == 200


def test_standard_names_that_cannot_be_inserted_are_refused_as_by_the_write(cloud, database):
    cloud.send(provider("host"))
    delete_standard_names(database)
    with database.engine.begin() as connection:
        connection.execute(sa.insert(resource_classes).values(id=2, name="CUSTOM_TWO"))
    assert cloud.try_and_send(stock("host", VCPU=8)).status == 400


# --- attempts, locks and other writers --------------------------------------------------------------------------------


def test_an_attempt_that_collides_is_retried(database):
    attempts, looks = [], []

    def work(db):
        attempts.append(db.attempt)
        if db.attempt < 3:
            raise Collision
        return "done"

    assert DryRun(database, looks.append).write(work) == "done"
    assert (attempts, len(looks)) == ([1, 2, 3], 1)


def test_a_dry_run_that_always_collides_has_no_result(database):
    def work(_db):
        raise Collision

    dry_run = DryRun(database, lambda _db: "seen")
    with pytest.raises(errors.AllocationsChanged):
        dry_run.write(work, attempts=2, exhausted=errors.AllocationsChanged)
    assert dry_run.observation is None


def test_a_write_sees_the_writes_before_it_except_refused_ones(database):
    def all_projects(db):
        return sorted(db.execute(sa.select(projects.c.external_id)).scalars())

    def creates(name, refused=None):
        def work(db):
            db.execute(sa.insert(projects).values(external_id=name))
            if refused:
                raise refused
            return all_projects(db)

        return work

    dry_run = DryRun(database, all_projects)
    assert dry_run.write(creates("a")) == ["a"]
    with pytest.raises(errors.AllocationsChanged):
        dry_run.write(creates("b", errors.AllocationsChanged()))
    assert dry_run.observation == []
    assert dry_run.write(creates("c")) == ["a", "c"]
    assert dry_run.observation == ["a", "c"]
    assert database.read(all_projects) == []


@pytest.mark.every_database
def test_rows_of_names_are_not_even_locked(database, cloud):
    """Two clients that wait for a name that is then rolled back would deadlock in MariaDB."""
    cloud.send(*HOST)
    with sql_hooks.writes(database.engine) as written:
        assert cloud.dry_run(claim(host={"VCPU": 1})).body["dry_run"]["status"] == 204
        assert cloud.dry_run(aggregates("host", 1, "$aggregate", "$aggregate_2")).body["dry_run"]["status"] == 200
    named = ("projects", "users", "consumer_types", "placement_aggregates")
    assert written
    assert not [statement for statement in written if any(f"INTO {name} " in statement for name in named)]


@pytest.mark.every_database
@pytest.mark.parametrize("scenario", [(*HOST,), FULL], ids=["accepted", "refused"])
def test_a_dry_run_leaves_no_lock(database, cloud, scenario):
    cloud.send(*scenario)
    assert cloud.dry_run(claim(host={"VCPU": 1})).status == 200
    with opened(database.url) as other, other.engine.connect() as connection:
        lock = sa.select(resource_providers.c.id)
        connection.execute(lock if database.engine.dialect.name == "sqlite" else lock.with_for_update(nowait=True))


@pytest.mark.every_database
@pytest.mark.parametrize("backend", ["mariadb", "postgresql"], indirect=True)
def test_a_change_of_another_client_during_the_dry_run_counts(database, cloud):
    cloud.send(*CLAIMED)
    with opened(database.url) as other:
        elsewhere = placement(other)

        def meanwhile():
            assert elsewhere(*cloud.names.fill(claim(1, other={"VCPU": 5}))).status == 204

        with interleaving.just_before(database, "UPDATE consumers", meanwhile):
            tried = cloud.dry_run(claim(1, host={"VCPU": 2}))
    assert tried.body["dry_run"]["status"] == 409
    assert tried.body["dry_run"]["body"]["errors"][0]["code"] == "placement.concurrent_update"
    assert tried.body["room"] == room(cloud.ask, [cloud.names["host"]])
    assert cloud.usage("other") == {"VCPU": 5}


@pytest.mark.every_database
def test_dry_runs_and_claims_run_concurrently(database, cloud):
    """Dry runs leave nothing, and claims are granted exactly up to the capacity."""
    cloud.send(*HOST)
    answers, tried = [], []

    def client(number):
        for turn in range(4):
            call = claim(consumer=f"consumer_{number}_{turn}", host={"VCPU": 1})
            tried.append(cloud.dry_run(Call(call.target, call.body | {"project_id": "tried"})))
            answers.append(cloud.ask(*cloud.names.fill(call)).status)

    clients = [threading.Thread(target=client, args=(number,)) for number in range(4)]
    for thread in clients:
        thread.start()
    for thread in clients:
        thread.join()
    assert sorted(answers) == [204] * 8 + [409] * 8
    assert {answer.status for answer in tried} == {200}
    assert {answer.body["dry_run"]["status"] for answer in tried} <= {204, 409}
    assert cloud.usage("host")["VCPU"] == 8
    with database.reading_engine.connect() as connection:
        assert "tried" not in connection.execute(sa.select(projects.c.external_id)).scalars().all()


# --- responses and metrics -------------------------------------------------------------------------------------------


@contextlib.contextmanager
def registry_of_metrics():
    registry = CollectorRegistry()
    metrics = Metrics(lambda: None, registry=registry)
    metrics.connect()
    try:
        yield registry
    finally:
        metrics.disconnect()


def test_dry_runs_are_counted_apart_from_claims(cloud):
    cloud.send(*FULL)
    path = "/allocations/{consumer_uuid}?dry_run=true"
    with registry_of_metrics() as registry:
        cloud.dry_run(claim(host={"VCPU": 1}))
        cloud.dry_run(claim(host={"DISK_GB": 1}))
        cloud.dry_run(Call("PUT /allocations/$consumer", {}))

    def count(status):
        labels = {"route": path, "method": "PUT", "status": status}
        return registry.get_sample_value("placement_request_seconds_count", labels)

    assert (count("200"), count("400")) == (2, 1)
    names = {sample.name for metric in registry.collect() for sample in metric.samples if sample.value}
    names -= {name for name in names if name.endswith("_created")}  # when the metric was created
    assert not {name for name in names if name.startswith(("placement_claims", "placement_conflicts"))}


def test_a_refused_write_shows_the_free_capacity_of_the_providers_it_names(cloud):
    """The request changes nothing, so the providers are those that it names."""
    cloud.send(*FULL, *OTHER)
    full, free = {"capacity": 8, "used": 8, "free": 0}, {"capacity": 8, "used": 0, "free": 8}
    refused = (
        (claim(host={"VCPU": 1}, other={"VCPU": 1}), {"host", "other"}),
        (Call("POST /allocations", {"$consumer": holding(None, host={"VCPU": 1})}), {"host"}),
        (stock("other", 99, VCPU=4), {"other"}),
        (has_traits("host", 99, "HW_CPU_X86_AVX"), {"host"}),
        (aggregates("other", 99, "$aggregate"), {"other"}),
    )
    for call, names in refused:
        tried = cloud.dry_run(call).body
        assert tried["dry_run"]["status"] == 409, call
        assert {name: tried["room"][cloud.names[name]]["VCPU"] for name in names} == {
            name: full if name == "host" else free for name in names
        }
        assert len(tried["room"]) == len(names)


@pytest.mark.parametrize("seen", [None, {}], ids=["before the decision", "after it"])
@pytest.mark.parametrize("failure", [errors.AllocationsChanged, errors.DatabaseUnavailable])
def test_a_failure_without_a_decision_about_the_write_is_raised(failure, seen):
    """Such failures are collisions in every attempt, and an unreachable database."""
    run = DryRun(None, lambda _db: {})
    run.observation = seen

    def handler():
        raise failure

    environ = {**webob.Request.blank("/", method="PUT").environ, API: PLACEMENT, VERSION: mv.LATEST, REQUEST_ID: "req"}
    if seen is None or failure is errors.DatabaseUnavailable:
        with pytest.raises(failure):
            respond(run, handler, environ)
    else:
        assert json.loads(respond(run, handler, environ).body)["dry_run"]["status"] == 409


def test_the_free_capacity_of_many_providers_is_read_in_several_statements(cloud, database, monkeypatch):
    monkeypatch.setattr("placement.db.batches.BATCH_SIZE", 2)
    hosts = [f"host_{number}" for number in range(5)]
    for name in hosts:
        cloud.send(provider(name), stock(name, VCPU=8))
    statements = []
    with sql_hooks.statements(database.engine, statements.append):
        tried = cloud.dry_run(claim(**{name: {"VCPU": 1} for name in hosts}))
    assert sum("AS resource_class, inventories.total" in " ".join(statement.split()) for statement in statements) == 3
    assert tried.body["room"] == {cloud.names[name]: {"VCPU": {"capacity": 8, "used": 1, "free": 7}} for name in hosts}


def test_a_capacity_may_exceed_64_bits(cloud):
    cloud.send(provider("host"))
    inventory = {"total": 2**31 - 1, "allocation_ratio": 3.4e38}
    body = {"resource_provider_generation": 0, "inventories": {"VCPU": inventory}}
    tried = cloud.dry_run(Call("PUT /resource_providers/$host/inventories", body))
    capacities = tried.body["room"][cloud.names["host"]]["VCPU"]
    assert capacities["free"] == capacities["capacity"] == pytest.approx((2**31 - 1) * 3.4e38)
