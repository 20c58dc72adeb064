"""placement-ask and its commands of ``openstack``, as processes, against a running service (docs: ask)."""

from __future__ import annotations

import configparser
import json
import subprocess
from importlib import metadata

import bcrypt
import pytest
from placement_client import Candidate

from tests import ask_process, clients, closed, preloaded, running, servers
from tests.ask_process import ASK
from tests.docs.blocks import ROOT

# The output of a client does not depend on the kind of database.
pytestmark = pytest.mark.parametrize("backend", [servers.SQLite.kind], indirect=True, scope="session")

RACK = "5a8b0f0e-31a9-4f6a-9c2e-0d8a9f0f3c11"
SERVER = "7c1f0a52-0b5e-4a0f-8f6b-2d3e4f5a6b7c"
CLOUD = f"""
providers:
  - name: host[1-2]
    inventories: {{MEMORY_MB: 4096}}
    aggregates: [{RACK}]
    children:
      - name: "{{parent}}-numa[0-1]"
        inventories: {{VCPU: {{total: 8, allocation_ratio: 2}}}}
        traits: [HW_NUMA_ROOT]
  - name: "\\e[31mred"
    inventories: {{DISK_GB: 10}}
"""


@pytest.fixture(scope="module")
def service(backend):
    """A service with the providers above, and one consumer of host1-numa0."""
    with ask_process.service_with_providers(backend, CLOUD) as loaded:
        _claim(loaded)
        yield loaded


def _claim(service):
    with clients.admin(service) as client:
        (provider,) = client.request("GET", "/resource_providers?name=host1-numa0")["resource_providers"]
        place = Candidate({provider["uuid"]: {"VCPU": 4}}, {})
        client.take(place, SERVER, project_id="red", user_id="ada", consumer_type="INSTANCE")


@pytest.fixture
def environment():
    """Return an environment without settings of a client."""
    return ask_process.environment()


@pytest.fixture
def ask(service, environment):
    """Return a function that runs placement-ask with arguments, and returns the completed process."""

    def run(*words, **variables):
        process_environment = {**environment, "OS_ENDPOINT": service.url, "OS_TOKEN": "admin", **variables}
        return preloaded.service().run([*ASK, *words], process_environment)

    return run


def rows(done):
    assert done.returncode == 0, done.stderr
    return [line.split() for line in done.stdout.splitlines()]


def test_a_capacity_is_printed_with_its_breakdown(ask):
    done = ask("capacity", "resources=VCPU:4")
    assert done.returncode == 0, done.stderr
    first_line, *_, last_line = done.stdout.splitlines()
    assert first_line == "This fits exactly 15 times."
    assert last_line.split() == ["aggregate", RACK, "15"]
    assert ["tree", "host2", "8", "VCPU"] in rows(done)


def test_an_explanation_is_printed_for_a_query(ask):
    done = ask("explain", "resources=VCPU:8&required=HW_NUMA_ROOT")
    assert done.returncode == 0, done.stderr
    refused = ask("explain", "resources=VCPU:400")
    assert (refused.returncode, refused.stderr) == (1, "")
    assert "VCPU" in refused.stdout.splitlines()[0]
    assert ["amount", "resources=VCPU:400", "16", "in", "the", "way:"] in [
        line.split()[:6] for line in refused.stdout.splitlines()
    ]
    document = json.loads(ask("explain", "resources=VCPU:400", "--json").stdout)
    assert document["found"] == 0
    assert document["summary"] == refused.stdout.splitlines()[0]


def test_the_checks_of_the_doctor_are_printed(ask):
    done = ask("doctor", "--check", "roots", "--check", "over_commitment")
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "2 checks, 0 findings.\n")
    document = json.loads(ask("doctor", "--json").stdout)
    assert {"roots", "keystone"} <= {check["name"] for check in document["checks"]}
    refused = ask("doctor", "--check", "nothing")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "nothing" in refused.stderr


def test_options_are_equivalent_to_a_query(ask):
    by_options = ask("capacity", "--group", "a", "--resource", "VCPU=4", "--required", "HW_NUMA_ROOT", "--json")
    by_text = ask("capacity", "resources_a=VCPU:4&required_a=HW_NUMA_ROOT", "--json")
    assert json.loads(by_options.stdout) == json.loads(by_text.stdout)
    assert json.loads(by_text.stdout)["count"] == 15


def test_a_request_that_fits_nowhere_exits_with_1(ask):
    done = ask("capacity", "--resource", "VCPU=400")
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.startswith("This fits nowhere.\n")
    assert ask("capacity", "--resource", "VCPU=400", "--json").returncode == 1


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["capacity"], "placement-ask: The query is missing"),
        (["capacity", "--resource", "VCPU"], "'VCPU' is invalid: use <class>=<amount>"),
        (
            ["capacity", "resources=VCPU:x"],
            'placement-ask: 400 Bad Request: resources has "x" as the amount of VCPU',
        ),
        (["capacity", "resources=VCPU:1", "--until", "0"], "'0' is invalid: use an integer of at least 1"),
        (["overview", "--root", "nothing"], "placement-ask: 400 Bad Request"),
        (["overview", "--root", "\udcff"], "placement-ask: 400 Bad Request"),
        (["consumers", "--older-than", "x"], "placement-ask: 400 Bad Request"),
        (["nonsense"], "invalid choice: 'nonsense'"),
        ([], "the following arguments are required"),
        (["overview", "--url", "x"], "placement-ask: x is not the URL of a service"),
    ],
)
def test_wrong_arguments_of_a_query_exit_with_2(ask, words, sentence):
    done = ask(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr


def test_without_a_service_it_exits_with_2(service, environment, tmp_path):
    done = preloaded.service().run([*ASK, "overview"], environment, tmp_path)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "The URL of the service is missing" in done.stderr


def test_noauth2_needs_no_token(ask):
    done = ask("overview", OS_TOKEN="")
    assert (done.returncode, done.stderr) == (0, "")


def test_a_service_that_refuses_exits_with_3(ask):
    assert ask("overview", OS_TOKEN="user").stderr.startswith("placement-ask: 403 Forbidden: ")
    assert ask("overview", OS_TOKEN="user").returncode == 3
    done = ask("overview", OS_ENDPOINT=closed.URL)
    assert (done.returncode, done.stderr.count("\n")) == (3, 1)
    assert "cannot be reached" in done.stderr


def test_an_overview_shows_trees(ask):
    printed = rows(ask("overview"))
    assert printed[0] == ["provider", "class", "used", "capacity", "free", "state", "traits"]
    assert printed[1] == ["host1", "MEMORY_MB", "0", "4096", "4096"]
    assert printed[2] == ["host1-numa0", "VCPU", "4", "16", "12", "HW_NUMA_ROOT"]
    assert ask("overview").stdout.splitlines()[2].startswith("  host1-numa0 ")
    assert [row[0] for row in rows(ask("overview", "--root", "host2"))[1:]] == ["host2", "host2-numa0", "host2-numa1"]
    assert [row[0] for row in rows(ask("overview", "--sort", "used:VCPU", "--limit", "1"))[1:2]] == ["host1"]
    assert ask("overview", "--over-committed").stdout == "No providers.\n"
    assert "410 Gone" in ask("overview", "--at", "1980-01-01").stderr


def test_an_over_committed_inventory_is_marked(backend, environment):
    """In every overview, with and without colours."""
    with ask_process.service_with_providers(
        backend, "providers: [{name: 'host[1-2]', inventories: {VCPU: 8}}]"
    ) as service:
        with clients.admin(service) as client:
            query = "resources=VCPU:4&in_tree=host1"
            claim = client.claim(SERVER, query, project_id="red", user_id="ada", consumer_type="JOB")
            [(host, allocation)] = claim.allocations.items()
            inventory = {"resource_provider_generation": allocation.generation, "inventories": {"VCPU": {"total": 2}}}
            client.request("PUT", f"/resource_providers/{host}/inventories", inventory)
        environment |= {"OS_ENDPOINT": service.url, "OS_TOKEN": "admin", "TERM": "xterm"}
        environment.pop("NO_COLOR", None)
        row = "host1     VCPU      4         2     0  over"
        for option in ([], ["--over-committed"]):
            done = preloaded.service().run([*ASK, "overview", *option], environment)
            assert [line for line in done.stdout.splitlines() if "over" in line] == [row]
            _, output = ask_process.in_terminal([*ASK, "overview", *option], environment, 100)
            assert f"\x1b[31m{row}\x1b[0m\n" in output
        assert (
            "host2     VCPU      0         8     8" in preloaded.service().run([*ASK, "overview"], environment).stdout
        )


def test_consumers_are_printed_with_their_allocations(ask):
    _, (uuid, kind, project, user, _since, provider, *resources) = rows(ask("consumers"))
    assert (uuid, kind, project, user, provider) == (SERVER, "INSTANCE", "red", "ada", "host1-numa0")
    assert resources == ["4", "VCPU"]
    assert ask("consumers", "--project", "blue").stdout == "No consumers.\n"
    assert len(rows(ask("consumers", "--provider", "host1-numa0", "--class", "VCPU", "--newer-than", "1d"))) == 2


def test_json_is_the_response_of_the_service(ask, service):
    document = clients.request(service, "GET", "/v1/overview")
    assert json.loads(ask("overview", "--json").stdout) == {"providers": document["providers"]}


def test_names_do_not_control_the_terminal(ask):
    done = ask("overview", "--class", "DISK_GB")
    assert "\x1b" not in done.stdout
    assert "\ufffd[31mred" in done.stdout


def test_a_terminal_gets_colours_and_its_width(service, environment):
    environment |= {"OS_ENDPOINT": service.url, "OS_TOKEN": "admin", "TERM": "xterm"}
    for name in ("COLUMNS", "NO_COLOR"):
        environment.pop(name, None)
    words = [*ASK, "overview"]
    for columns, first_line in (
        (40, "provider: host1"),
        (63, "provider    class      used  capacity  free  state  traits"),
    ):
        code, output = ask_process.in_terminal(words, environment, columns)
        plain = output.replace("\x1b[1m", "").replace("\x1b[0m", "")
        assert (code, plain.splitlines()[0]) == (0, first_line), output
        assert max(map(len, plain.splitlines())) <= columns
    assert output.startswith("\x1b[1mprovider")
    _, wide = ask_process.in_terminal(words, {**environment, "NO_COLOR": "1"}, 300)
    assert "\x1b" not in wide
    assert wide == subprocess.run(words, env=environment, capture_output=True, text=True, check=False).stdout


class TestOpenStack:
    """The commands of ``openstack``."""

    @pytest.fixture
    def openstack(self, service, openstack_command):
        """Return a function that runs a command, and returns its exit code and the document that it prints."""
        identity = ["--os-auth-type", "admin_token", "--os-endpoint", service.url, "--os-token", "admin"]

        def run(command, refused=None):
            done = openstack_command([*identity, *command.split(), "-f", "json"])
            if "is not an openstack command" in done.stderr:
                raise servers.Missing("the entry points are not installed: pip install -e .")
            if refused is not None:
                assert (done.returncode, refused in done.stderr) == (1, True), done.stderr
                return None
            return done.returncode, json.loads(done.stdout)

        return run

    @pytest.mark.parametrize(
        ("words", "output"),
        [
            (
                "-f csv --quote minimal",
                "provider,class,used,capacity,free,state,traits\nhost1,MEMORY_MB,0,4096,4096,,\n"
                "host1-numa0,VCPU,4,16,12,,HW_NUMA_ROOT\nhost1-numa1,VCPU,0,16,16,,HW_NUMA_ROOT\n",
            ),
            ("-f value -c provider -c free", "host1 4096\nhost1-numa0 12\nhost1-numa1 16\n"),
            ("-f value -c free --sort-column free --sort-descending", "4096\n16\n12\n"),
            ("-f yaml -c provider", "- provider: host1\n- provider: host1-numa0\n- provider: host1-numa1\n"),
        ],
    )
    def test_the_client_prints_each_of_its_formats(self, service, openstack_command, words, output):
        """Without a token, which noauth2 accepts."""
        identity = ["--os-auth-type", "none", "--os-endpoint", service.url]
        done = openstack_command([*identity, *["resource", "provider", "overview", "--root", "host1"], *words.split()])
        assert (done.returncode, done.stdout.replace("\r\n", "\n")) == (0, output), done.stderr

    def test_command_names_are_unique(self, backend):
        """The client would run only one of two commands with the same name."""
        commands = list(metadata.entry_points(group="openstack.placement.v1"))
        names = {
            point.name for point in commands if point.module.startswith("placement.extensions.terminal.openstack.")
        }
        other_names = {
            point.name for point in commands if not point.module.startswith("placement.extensions.terminal.openstack.")
        }
        setup = configparser.ConfigParser()
        setup.read(ROOT / "setup.cfg")
        declared = setup["options.entry_points"]["openstack.placement.v1"].split("\n")
        if names != {line.partition(" = ")[0] for line in declared if line}:
            raise servers.Missing("the entry points are not installed: pip install -e .")
        assert "allocation_candidate_list" in other_names
        assert not names & other_names

    def test_count(self, openstack):
        code, document = openstack("allocation candidate count --resource VCPU=4")
        assert code == 0
        assert (document[0]["of"], document[0]["count"]) == ("total", 15)
        assert {"of": "aggregate", "name": RACK, "count": 15} in [
            {name: row[name] for name in ("of", "name", "count")} for row in document
        ]
        assert openstack("allocation candidate count --resource VCPU=400")[0] == 1
        openstack("allocation candidate count resources=VCPU:x", refused="as the amount of VCPU")
        openstack("allocation candidate count", refused="The query is missing")

    def test_explain(self, openstack):
        code, document = openstack("allocation candidate explain --resource VCPU=400")
        assert code == 1
        assert [row["after"] for row in document if row["about"] == "rule"][-1] == 0
        assert document[-1]["about"] == "summary"
        assert openstack("allocation candidate explain --resource VCPU=4")[0] == 0

    def test_overview(self, openstack):
        code, document = openstack("resource provider overview --root host1")
        assert (code, [row["provider"] for row in document]) == (0, ["host1", "host1-numa0", "host1-numa1"])
        assert document[1] | {"used": 4, "capacity": 16, "free": 12, "traits": "HW_NUMA_ROOT"} == document[1]
        openstack("resource provider overview --root nothing", refused="nothing")

    def test_consumers(self, openstack):
        code, (consumer,) = openstack("resource provider consumers --project red")
        assert (code, consumer["consumer"], consumer["resources"]) == (0, SERVER, "4 VCPU")

    def test_history(self, openstack):
        code, (event,) = openstack(f"resource provider history {SERVER}")
        assert (code, event["who"], event["what"]) == (0, "admin", f"consumer {SERVER} created")
        openstack("resource provider history nothing", refused="nothing")


def test_a_user_of_http_basic_sends_the_password(backend, environment, tmp_path):
    (tmp_path / "htpasswd").write_text(f"ada:{bcrypt.hashpw(b's3cret', bcrypt.gensalt(4)).decode()}\n")
    url = backend.create_database()
    options = {
        "api": {"auth_strategy": "http_basic"},
        "oslo_middleware": {"http_basic_auth_user_file": tmp_path / "htpasswd"},
    }
    with running.embedded(url, options) as service:
        words = [*ASK, "overview", "--url", service.url, "--username", "ada"]
        done = preloaded.service().run(words, {**environment, "OS_PASSWORD": "s3cret"})
        assert (done.returncode, done.stdout) == (0, "No providers.\n"), done.stderr
        wrong = preloaded.service().run(words, {**environment, "OS_PASSWORD": "wrong"})
        assert (wrong.returncode, wrong.stdout) == (3, "")
        assert wrong.stderr.startswith("placement-ask: 401 Unauthorized")
    backend.drop_database(url)
