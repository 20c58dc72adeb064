"""claim, extend and release of placement-ask and of ``openstack``, as processes, against a running service."""

from __future__ import annotations

import json
import uuid

import pytest

from tests import ask_process, clients, preloaded, servers
from tests.ask_process import ASK

# The output of a client does not depend on the kind of database.
pytestmark = pytest.mark.parametrize("backend", [servers.SQLite.kind], indirect=True, scope="session")

OWNER = ("--project", "red", "--user", "ada")
HOSTS = """
providers:
  - name: host[1-4]
    inventories: {MEMORY_MB: 4096}
    children:
      - name: "{parent}-numa"
        inventories: {VCPU: 8}
"""


@pytest.fixture(scope="module")
def service(backend):
    with ask_process.service_with_providers(backend, HOSTS) as loaded:
        yield loaded


@pytest.fixture
def ask(service):
    """Return a function that runs placement-ask with arguments, and returns the completed process."""

    def run(*words, **variables):
        environment = {**ask_process.environment(), "OS_ENDPOINT": service.url, "OS_TOKEN": "admin", **variables}
        return preloaded.service().run([*ASK, *words], environment)

    yield run
    with clients.admin(service) as client:
        client.release(consumer.uuid for consumer in client.consumers())


@pytest.fixture
def openstack(service, openstack_command):
    """Return a function that runs ``openstack``, and returns its exit code, the document that it prints, and stderr."""
    identity = ["--os-auth-type", "admin_token", "--os-endpoint", service.url, "--os-token", "admin"]

    def run(*words):
        done = openstack_command([*identity, *words, "-f", "json"])
        return done.returncode, json.loads(done.stdout or "null"), done.stderr

    return run


def rows(done):
    assert (done.returncode, done.stderr) == (0, "")
    return [line.split() for line in done.stdout.splitlines()]


def allocations(ask):
    """Return the consumer, the provider and the amounts of each allocation."""
    consumers = json.loads(ask("consumers", "--json").stdout)["consumers"]
    return {
        (consumer["uuid"], allocation["name"], *allocation["resources"].items())
        for consumer in consumers
        for allocation in consumer["allocations"].values()
    }


def new():
    return str(uuid.uuid4())


def test_a_claim_prints_its_amounts_and_its_place(ask):
    header, (consumer, outcome, *place) = rows(ask("claim", "resources=VCPU:4", *OWNER))
    assert header == ["consumer", "outcome", "until", "provider", "resources", "why"]
    assert (outcome, place[1:]) == ("claimed", ["4", "VCPU"])
    assert allocations(ask) == {(consumer, place[0], ("VCPU", 4))}


def test_a_repeated_claim_takes_nothing_more(ask):
    consumer = new()
    words = ("claim", "--resource", "VCPU=4", "--consumer", consumer, *OWNER)
    outcomes = [rows(ask(*words))[1][1] for _ in range(2)]
    assert outcomes == ["claimed", "held"]
    assert len(allocations(ask)) == 1


def test_a_count_claims_different_trees_and_a_dry_run_takes_nothing(ask):
    words = ("claim", "resources=VCPU:8", "--count", "4", *OWNER)
    dry_run = ask(*words, "--dry-run")
    assert dry_run.returncode == 0
    assert dry_run.stdout.startswith("Dry run: nothing was written.\n")
    assert dry_run.stdout.count("8 VCPU") == 4
    assert ["host1-numa", "VCPU", "8", "8", "0"] in [line.split() for line in dry_run.stdout.splitlines()]
    assert allocations(ask) == set()
    assert len(rows(ask(*words))) == 5


@pytest.mark.parametrize("options", [[], ["--dry-run"]])
def test_a_request_that_fits_nowhere_exits_with_1_and_the_reason(ask, options):
    done = ask("claim", "resources=VCPU:9", *OWNER, *options)
    assert (done.returncode, done.stderr) == (1, "")
    assert "none of the 8 remaining providers can supply 9 VCPU" in done.stdout
    assert ["with", "resources=VCPU:8", "4", "resources=VCPU:8"] in [line.split() for line in done.stdout.splitlines()]
    assert ask("claim", "resources=VCPU:9", "--json", *OWNER, *options).returncode == 1


def test_a_file_names_the_consumers_of_many_claims(ask, tmp_path):
    consumers = [new() for _ in range(5)]
    (tmp_path / "jobs.json").write_text(json.dumps([{"consumer": consumer} for consumer in consumers]))
    words = ("claim", "resources=VCPU:8", "--file", str(tmp_path / "jobs.json"), *OWNER)
    refused = ask(*words, "--all-or-nothing")
    assert (refused.returncode, refused.stdout.splitlines()[0]) == (1, "0 of 5 claims were granted.")
    assert allocations(ask) == set()
    done = ask(*words, "--json")
    assert (done.returncode, json.loads(done.stdout)["claimed"]) == (1, 4)
    assert {consumer for consumer, *_ in allocations(ask)} < {*consumers}


def test_a_move_takes_a_new_place_and_releases_the_old_one(ask):
    consumer = new()
    first_place = rows(ask("claim", "resources=VCPU:8", "--consumer", consumer, *OWNER))[1][2]
    done = rows(ask("claim", "resources=VCPU:8", "--move", consumer, "--apart-from", consumer))
    assert done[1][:2] == [consumer, "moved"]
    assert done[1][2] != first_place
    assert allocations(ask) == {(consumer, done[1][2], ("VCPU", 8))}
    (row,) = json.loads(ask("consumers", "--json").stdout)["consumers"]
    assert (row["project"], row["user"], row["type"]) == ("red", "ada", "JOB")


def test_the_owner_comes_from_the_environment(ask):
    assert "The owner of the consumer is missing" in ask("claim", "resources=VCPU:1").stderr
    done = ask("claim", "resources=VCPU:1", OS_PROJECT_ID="blue", OS_USER_ID="bob")
    assert done.returncode == 0
    assert len(rows(ask("consumers", "--project", "blue", "--user", "bob"))) == 2


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["claim", *OWNER], "placement-ask: The query is missing"),
        (["claim", "resources=VCPU:x", *OWNER], "placement-ask: 400 Bad Request: requests[0].query: "),
        (["claim", "resources=VCPU:1", "--file", "/nowhere", *OWNER], "placement-ask: /nowhere cannot be read: "),
    ],
)
def test_wrong_arguments_of_a_claim_exit_with_2(ask, words, sentence):
    done = ask(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(sentence)


def test_the_client_of_openstack_claims(openstack, ask):
    words = ("allocation", "claim", "resources=VCPU:4", *OWNER)
    code, (result,), _ = openstack(*words)
    assert (code, result["outcome"], result["resources"], result["why"]) == (0, "claimed", "4 VCPU", "")
    assert {(result["consumer"], result["provider"], ("VCPU", 4))} == allocations(ask)
    code, (result,), _ = openstack(*words, "--resource", "MEMORY_MB=9999")
    assert (code, result["outcome"]) == (1, "refused")
    assert result["why"].startswith("Nothing fits: ")
    code, _, stderr = openstack("allocation", "claim", "resources=VCPU:1")
    assert (code, stderr) == (1, "The owner of the consumer is missing: use --project and --user.\n")


def claim_core(ask, *words):
    """Claim one core; return the uuid of the consumer, and the expiry of the claim."""
    (result,) = json.loads(ask("claim", "resources=VCPU:1", "--json", *OWNER, *words).stdout)["results"]
    return result["consumer"], result["expires_at"]


def test_an_expiry_is_set_changed_and_cleared(ask):
    consumer, expiry = claim_core(ask, "--expires-in", "1h")
    header, consumer_row, *_ = rows(ask("consumers"))
    assert (header[5], consumer_row[5]) == ("until", f"{expiry[:19]}Z")
    assert json.loads(ask("consumers", "--json").stdout)["consumers"][0]["expires_at"] == expiry
    row = rows(ask("extend", consumer, "2d"))[1]
    assert (row[0], row[1], row[2] > expiry) == (consumer, "held", True)
    assert json.loads(ask("extend", consumer, "--forever", "--json").stdout)["expires_at"] is None
    done = ask("extend", new(), "1h")
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.startswith("placement-ask: 404 Not Found: Consumer ")
    assert done.stderr.endswith(" holds nothing, or its lease has expired.\n")
    assert ask("extend", consumer).returncode == 2


def test_named_consumers_are_released(ask):
    consumer, _ = claim_core(ask)
    second, absent = claim_core(ask)[0], new()
    dry_run = ask("release", consumer, absent, "--dry-run")
    assert dry_run.stdout.splitlines()[:2] == ["Dry run: nothing was written.", "1 consumer would be released."]
    assert len(allocations(ask)) == 2
    done = rows(ask("release", consumer, absent))
    assert done == [
        ["1", "consumer", "is", "released."],
        *[["consumer", "outcome"], [consumer, "released"], [absent, "missing"]],
    ]
    assert {holder for holder, *_ in allocations(ask)} == {second}
    assert json.loads(ask("release", second, "--json").stdout) == {
        "released": [second],
        "missing": [],
        "complete": True,
        "dry_run": False,
    }


def test_consumers_that_meet_conditions_are_released(ask):
    red, _ = claim_core(ask)
    blue, _ = claim_core(ask, "--project", "blue", "--type", "VM")
    assert ask("release", "--project", "green", "--yes").stdout == "0 consumers are released.\n"
    assert ask("release", "--project", "red").stderr.startswith(
        "placement-ask: There is no terminal to ask for confirmation"
    )
    assert ask("release", "--type", "VM", "--newer-than", "1h", "--yes").returncode == 0
    assert {holder for holder, *_ in allocations(ask)} == {red}
    assert blue != red
    assert ask("release", "--older-than", "x", "--yes").returncode == 2


@pytest.mark.parametrize("answer", ["y", "n"])
def test_a_terminal_asks_for_the_confirmation_of_a_release(ask, service, answer):
    consumer, _ = claim_core(ask)
    environment = {**ask_process.environment(), "OS_ENDPOINT": service.url, "OS_TOKEN": "admin"}
    code, output = ask_process.in_terminal([*ASK, "release", "--project", "red"], environment, 200, f"{answer}\n")
    assert consumer in output
    assert "Release this consumer? [y/N] " in output
    assert ("1 consumer is released." in output, "placement-ask: Nothing was released." in output) == (
        (True, False) if answer == "y" else (False, True)
    )
    assert (code, len(allocations(ask))) == ((0, 0) if answer == "y" else (1, 1))


def test_the_client_of_openstack_extends_and_releases(openstack, ask):
    consumer, expiry = claim_core(ask, "--expires-in", "1h")
    code, (result,), _ = openstack("allocation", "extend", consumer, "2h")
    assert (code, result["consumer"], result["until"] > expiry, result["resources"]) == (0, consumer, True, "1 VCPU")
    code, _, stderr = openstack("allocation", "extend", new(), "2h")
    assert (code, "holds nothing" in stderr) == (1, True)
    code, _, stderr = openstack("allocation", "release", "--project", "red")
    assert (code, "There is no terminal" in stderr) == (1, True)
    code, result, _ = openstack("allocation", "release", "--project", "red", "--yes")
    assert (code, result) == (0, [{"consumer": consumer, "outcome": "released"}])
    assert allocations(ask) == set()
