"""The image of the service, as docs/containers.rst runs it."""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import re
import shlex

import bcrypt
import pytest

from placement import package
from tests import children, transcripts
from tests.containers import IMAGE
from tests.docs.run_by import blocks_of
from tests.load.storm import Storm

pytestmark = pytest.mark.xdist_group("containers")

PAGE = "docs/containers.rst"
#: The size of all layers in bytes.
_MAX_SIZE = 250_000_000


def steps(text):
    """Return the commands of the page's block with a text, each with the output shown."""
    (block,) = blocks_of(__file__, PAGE, "console", text)
    return transcripts.steps(block.text)


def walk(engine, directory, text):
    """Run the commands of the block with a text, and compare their output with the page."""
    for command, output in steps(text):
        printed = engine.run(["bash", "-euc", command], cwd=directory).stdout
        assert not output or transcripts.pattern(output).fullmatch(printed.strip("\n")), f"{command}\n{printed}"


def wait_until_healthy(engine, container):
    """Wait until a container serves."""

    def ready():
        assert engine.is_running(container), engine.log(container)
        return engine.run(["podman", "healthcheck", "run", container], check=False).returncode == 0

    children.until(ready, f"{container} is not healthy")


def ask(engine, port, path, password=None, user="placement", **headers):
    """Return the status and the body of a response."""
    if password is not None:
        headers["Authorization"] = "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()
    with engine.network():
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=children.PATIENCE)
        with contextlib.closing(connection):
            connection.request("GET", path, headers={"OpenStack-API-Version": "placement latest", **headers})
            reply = connection.getresponse()
            return reply.status, reply.read().decode()


@pytest.fixture(scope="module")
def trial(engine, tmp_path_factory):
    """The trial container of the page, without configuration, and its greeting."""
    ((run, _), (_log, _)) = steps("--name placement ")
    try:
        engine.run(shlex.split(run))
        wait_until_healthy(engine, "placement")
        yield "placement", greeting(engine, "placement")
    finally:
        engine.remove("placement")
        engine.podman("volume", "rm", "--force", "placement")


def greeting(engine, container):
    """Return the log from its greeting on, once it is written."""
    children.until(lambda: "/console/" in engine.log(container), f"{container} does not greet")
    return "Placement serves" + engine.log(container).rpartition("Placement serves")[2]


def password_of(text):
    return re.search('the password "(.+?)"', text)[1]


def test_the_image_is_small(engine):
    assert int(engine.podman("image", "inspect", "--format", "{{.Size}}", IMAGE)) < _MAX_SIZE


def test_the_labels_of_the_image_describe_it(engine):
    labels = json.loads(engine.podman("image", "inspect", "--format", "{{json .Labels}}", IMAGE))
    annotations = {name.removeprefix("org.opencontainers.image."): value for name, value in labels.items()}
    assert annotations.items() >= {"title": package.NAME, "licenses": "Apache-2.0"}.items()
    assert engine.run(["git", "cat-file", "-t", annotations["revision"]]).stdout == "commit\n"


def test_a_container_without_configuration_prints_the_greeting_of_the_page(engine, trial):
    (block,) = blocks_of(__file__, PAGE, "text")
    patterns = [re.escape(line).replace(re.escape("..."), r"\S+") for line in block.text.splitlines()]
    assert re.match("\n".join(patterns), trial[1]), trial[1]


def test_the_command_and_the_address_of_the_greeting_work(engine, trial):
    command = re.search("^ +(curl .*)", trial[1], re.MULTILINE)[1]
    printed = engine.run([*shlex.split(command), "--silent", "--show-error", "--fail"]).stdout
    assert json.loads(printed) == {"resource_providers": []}
    address = re.search(r"in a browser: http://127.0.0.1:(\d+)(/\S+)", trial[1])
    status, page = ask(engine, int(address[1]), address[2], password_of(trial[1]))
    assert (status, page[:15].lower()) == (200, "<!doctype html>")


@pytest.mark.parametrize("token", [None, "admin"])
def test_no_caller_is_trusted_by_default(engine, trial, token):
    headers = {} if token is None else {"X-Auth-Token": token, "X-Roles": "admin"}
    assert ask(engine, 8778, "/resource_providers", **headers)[0] == 401
    assert ask(engine, 8778, "/console/", password_of(trial[1]) + "x", **headers)[0] == 401


def test_the_processes_are_those_of_an_ordinary_user(engine, trial):
    owners = engine.podman("exec", trial[0], "sh", "-c", "stat --format %u:%g /proc/[0-9]*").split()
    assert {*owners} == {"8778:8778"}


def test_commands_use_the_same_configuration(engine, trial):
    """The doctor checks the database of the service, and finds no problem in it or in the configuration."""
    walk(engine, engine.directory, "placement-manage doctor")


def test_the_data_and_the_password_outlive_the_container(engine, trial):
    """The next container uses the existing schema, and generates no password."""
    password = password_of(trial[1])
    with engine.network():
        identity = {"Authorization": "Basic " + base64.b64encode(f"placement:{password}".encode()).decode()}
        provider = Storm("http://127.0.0.1:8778", identity).provider(VCPU=4)
    engine.remove("placement")
    ((run, _), _) = steps("--name placement ")
    engine.run(shlex.split(run))
    wait_until_healthy(engine, "placement")
    assert "the password" not in greeting(engine, "placement")
    assert provider in ask(engine, 8778, "/resource_providers", password)[1]


def test_the_container_stops_cleanly(engine, trial):
    """If process 1 ignored the signal, it would be killed after this time, with the exit code 137."""
    engine.podman("stop", "--time", str(int(children.PATIENCE)), "placement")
    assert engine.podman("inspect", "--format", "{{.State.ExitCode}}", "placement") == "0"
    engine.podman("start", "placement")
    wait_until_healthy(engine, "placement")


@pytest.fixture(scope="module")
def configured_containers(engine, trial, tmp_path_factory):
    """Containers configured like the page's, by a file and by variables, and removed with the trial container."""
    directory = tmp_path_factory.mktemp("configured")
    (block,) = blocks_of(__file__, PAGE, "placement.conf")
    (directory / "placement.conf").write_text(block.text)
    digest = bcrypt.hashpw(b"s3cret", bcrypt.gensalt(4)).decode()
    (directory / "htpasswd").write_text(f"nova:{digest}\n")
    for file in directory.iterdir():
        file.chmod(0o644)
    try:
        walk(engine, directory, "--name configured")
        for name in ("configured", "variables"):
            wait_until_healthy(engine, name)
        yield
        walk(engine, directory, "podman rm ")
        assert engine.podman("ps", "--all", "--format", "{{.Names}}") == ""
        assert "placement" in engine.podman("volume", "ls", "--format", "{{.Name}}").splitlines()
    finally:
        engine.remove("configured", "variables")


def test_a_service_with_a_read_only_file_system_has_an_index_file(engine, configured_containers):
    with engine.network():
        identity = {"Authorization": "Basic " + base64.b64encode(b"nova:s3cret").decode()}
        storm = Storm("http://127.0.0.1:8779", identity)
        provider = storm.provider(VCPU=4)
        assert [*storm.get("/allocation_candidates?resources=VCPU:1")["provider_summaries"]] == [provider]
    assert ".index" in engine.podman("exec", "configured", "ls", "/dev/shm/placement-8778")


def test_a_file_replaces_the_configuration_of_the_image(engine, configured_containers):
    assert ask(engine, 8779, "/resource_providers", "s3cret", "nova")[0] == 200
    assert ask(engine, 8779, "/console/", "s3cret", "nova")[0] == 404  # the image's own enables the console
    assert "the password" not in engine.log("configured")


def test_variables_override_the_configuration_of_the_image(engine, configured_containers):
    assert ask(engine, 8780, "/resource_providers", "secret")[0] == 200
    assert ask(engine, 8780, "/console/", "secret")[0] == 404
    children.until(lambda: engine.log("variables").count("WSGI app 0") == 2, "not two processes")  # UWSGI_PROCESSES
    assert "secret" not in engine.log("variables")


def test_the_file_system_is_read_only_except_the_volume_and_tmp(engine, configured_containers):
    places = ("/etc", "/opt/placement", "/var/lib/placement", "/tmp")
    script = "; ".join(f"touch {place}/x 2>/dev/null && echo {place}" for place in places)
    assert engine.podman("exec", "configured", "sh", "-c", f"{script}; true").split() == ["/var/lib/placement", "/tmp"]


def arguments_after(engine, first):
    """Return the arguments of a container that runs a command before it starts the service."""
    (entrypoint, command) = (
        shlex.join(json.loads(engine.podman("image", "inspect", "--format", f"{{{{json .Config.{name}}}}}", IMAGE)))
        for name in ("Entrypoint", "Cmd")
    )
    return "--entrypoint", "sh", IMAGE, "-c", f"{first}; exec {entrypoint} {command}"


@pytest.mark.parametrize(
    ("options", "first"),
    [
        (["--read-only", "--read-only-tmpfs=false"], "true"),
        (["--tmpfs", "/tmp:size=4k"], "head -c 4096 /dev/zero >/tmp/full"),
    ],
    ids=["read-only", "full"],
)
def test_the_container_serves_and_greets_without_space_for_temporary_files(engine, options, first):
    with engine.container("cramped", "--publish", "127.0.0.1:8781:8778", *options, *arguments_after(engine, first)):
        wait_until_healthy(engine, "cramped")
        assert ask(engine, 8781, "/resource_providers", password_of(greeting(engine, "cramped")))[0] == 200
        assert "Traceback" not in engine.log("cramped")


def test_the_container_continues_after_a_reload(engine):
    """The only worker runs the code of the greeting again, and stops the service if that fails."""
    with engine.container("reloaded", "--env", "UWSGI_PROCESSES=1", IMAGE):
        wait_until_healthy(engine, "reloaded")
        password = password_of(greeting(engine, "reloaded"))
        engine.podman("kill", "--signal", "HUP", "reloaded")
        children.until(lambda: engine.log("reloaded").count("(accepting1-once)") == 2, "it is not reloaded")
        wait_until_healthy(engine, "reloaded")
        assert engine.log("reloaded").count(f'the password "{password}"') == 1


def test_a_given_password_leaves_other_users_in_the_file(engine):
    """Even if the URL names the driver, the database is SQLite's, so the start creates it and greets."""
    digest = bcrypt.hashpw(b"s3cret", bcrypt.gensalt(4)).decode()
    variables = {
        "PLACEMENT_PASSWORD": "secret",
        "OS_PLACEMENT_DATABASE__CONNECTION": "sqlite+pysqlite:////var/lib/placement/other.sqlite",
    }
    words = ["--publish", "127.0.0.1:8781:8778", *(f"--env={name}={value}" for name, value in variables.items())]
    first = f"echo 'nova:{digest}' > /var/lib/placement/htpasswd"
    with engine.container("others", *words, *arguments_after(engine, first)):
        wait_until_healthy(engine, "others")
        assert "the password" not in greeting(engine, "others")
        for user, password in (("placement", "secret"), ("nova", "s3cret")):
            assert ask(engine, 8781, "/resource_providers", password, user)[0] == 200


def test_a_missing_command_ends_the_container_with_one_sentence(engine):
    with engine.container("mistyped", IMAGE, "placement-manege"):
        assert engine.exit_code("mistyped") == 1
        assert engine.log("mistyped") == "placement-manege: No such file or directory\n"


def test_a_mistake_ends_the_container_with_one_sentence(engine):
    with engine.container("wrong", "--env", "OS_API__AUTH_STRATEGY=none", IMAGE):
        assert engine.exit_code("wrong") == 22
        assert "placement cannot start: [api]auth_strategy" in engine.log("wrong")


def test_a_service_that_is_one_of_several_generates_no_password(engine):
    connection = "OS_PLACEMENT_DATABASE__CONNECTION=mysql+pymysql://placement:secret@database/placement"
    with engine.container("several", "--env", connection, IMAGE):
        assert engine.exit_code("several") == 1
        assert engine.log("several") == (
            "There is no password for [api]auth_strategy = http_basic: set $PLACEMENT_PASSWORD, or mount the file\n"
        )
