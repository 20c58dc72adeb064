"""The programs of docs/client.rst, against a running service with the cluster of docs/extensions/batch.rst."""

from __future__ import annotations

import code
import os
import shutil
import sys
import threading
from pathlib import Path

import pytest
from placement_client import Client, NothingHeld, Token

from tests import ask_process, children, clients, servers, transcripts
from tests.docs.blocks import text_of
from tests.docs.run_by import blocks_of

pytestmark = pytest.mark.parametrize("backend", [servers.SQLite.kind], indirect=True, scope="session")

PAGE, README = "docs/client.rst", "client/README.rst"
#: The service's URL on the page.
PAGE_URL = "http://127.0.0.1:8778"


@pytest.fixture
def service(backend):
    with ask_process.service_with_providers(backend, text_of("docs/extensions/batch.rst", "cluster.yaml")) as loaded:
        yield loaded


class Prompt(code.InteractiveConsole):
    """The prompt of Python, where programs are typed line by line; their exceptions are raised, not printed."""

    def runcode(self, code):
        exec(code, self.locals)

    def showsyntaxerror(self, *_, **__):
        raise  # this method is called from the handler of the exception


def run(blocks, url):
    """Run programs one after another, as a reader does at the prompt; return their variables by name."""
    prompt = Prompt()
    for block in blocks:
        for line in [*block.text.replace(PAGE_URL, url).splitlines(), ""]:
            prompt.push(line)
    prompt.locals["client"].close()
    return prompt.locals


def programs(page, text=""):
    return blocks_of(__file__, page, "python", text)


def test_the_programs_work_as_the_page_says(service, capsys):
    names = run(programs(PAGE), service.url)
    printed = capsys.readouterr().out.splitlines()
    assert printed[0].startswith("working on batch-")
    assert sum(line.startswith("a worker with") for line in printed) == 4
    assert sum(line.endswith(" starts") for line in printed) == 2
    assert sum(" waits: Nothing fits" in line for line in printed) == 1
    assert "everything is released" in printed
    assert names["claim"].outcome == "claimed"
    assert names["capacity"].count == 2
    assert names["training"].returncode == 0
    assert names["overview"]["providers"][0]["inventories"]["VCPU"]["free"] == 32
    assert names["state"] == {}
    assert (names["lost"], names["kind"]) == (False, "resource_class")
    assert names["count"] > 0


def test_events_can_be_followed_after_the_first_program_alone(service):
    blocks = [programs(PAGE)[0], *programs(PAGE, "client.position()")]
    results = []
    reader = threading.Thread(target=lambda: results.append(run(blocks, service.url)), daemon=True)
    reader.start()
    reader.join(children.PATIENCE)
    assert results


def test_the_program_of_the_readme_finds_a_place_in_the_demonstration(backend, tmp_path, capsys):
    transcripts.install_in_checkout(tmp_path)
    port = children.free_port()
    with transcripts.run_make(f"make demo ARGS='--port {port}'", tmp_path, port) as url:
        names = run(programs(README), url)
        with Client(url, Token("admin"), **clients.PATIENT) as client, pytest.raises(NothingHeld):
            client.show(names["held"].claim.consumer)
    assert capsys.readouterr().out.startswith("working on ")


def test_a_generated_client_for_go_is_compiled_and_called(service, tmp_path):
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    for program, remedy in (
        ("go", "`make servers` installs golang-go"),
        ("java", "`make servers` installs default-jre-headless"),
        ("openapi-generator-cli", "pip install openapi-generator-cli"),
    ):
        if shutil.which(program, path=path) is None:
            raise servers.Missing(f"{program} is not installed: {remedy}")
    run(programs(PAGE), service.url)  # they add another host to the cluster
    (tmp_path / "job").mkdir()
    (tmp_path / "job" / "main.go").write_text(text_of(PAGE, "main.go"))
    steps = [step for block in blocks_of(__file__, PAGE, "console") for step in transcripts.steps(block.text)]
    # The build stays in the directory, and downloads nothing.
    go_variables = {
        "GOCACHE": str(tmp_path / "cache"),
        "GOPATH": str(tmp_path / "path"),
        "GOPROXY": "off",
        "PATH": path,
    }
    commands = [command.replace(PAGE_URL, service.url) for command, _ in steps]
    printed, errors = transcripts.run(commands, tmp_path, transcripts.environment() | go_variables)
    for (command, expected), output in zip(steps, printed, strict=True):
        assert transcripts.pattern(expected).fullmatch(output.strip("\n")), f"$ {command}\n{output}\n{errors}"
