"""Expected consumers, read from lines of files and from documents that nova may send."""

from __future__ import annotations

import copy
import json

import hypothesis
import pytest
from hypothesis import strategies as st

from placement.extensions.orphans.expected import Expected, InvalidNames, NovaServer, read_uuids
from tests.nova import record
from tests.nova.fake import HOST, RECORDED, TASK, VALIDATORS

UUID = "6c1b0f5e-0b8e-4f6e-8a57-51a3f0a4c0a1"


@pytest.mark.parametrize(
    "line",
    [
        UUID,
        UUID.upper(),
        UUID.replace("-", ""),
        f"  {UUID}\t",
        f'"{UUID}"',
        f"{UUID} # web1",
        f"{{{UUID}}}",
        f"{UUID}\r\n",
    ],
)
def test_every_spelling_of_a_uuid_is_read(line):
    assert read_uuids([line], "file", may_be_empty=False) == {UUID}


@pytest.mark.parametrize("line", ["ID", UUID[:-1], f"{UUID},{UUID}", f"{UUID} web1", "| ID |", "\ufeff" + UUID, "\0"])
def test_an_invalid_uuid_is_refused(line):
    with pytest.raises(InvalidNames, match=r"file:3: .* is not a uuid"):
        read_uuids([UUID, "", line], "file", may_be_empty=True)


@pytest.mark.parametrize("lines", [[], ["", "  \n"], ["# none"]])
def test_a_list_without_uuids_is_refused(lines):
    with pytest.raises(InvalidNames, match="file names no consumers"):
        read_uuids(lines, "file", may_be_empty=False)
    assert read_uuids(lines, "file", may_be_empty=True) == set()


@hypothesis.given(st.lists(st.text()))
def test_any_lines_are_uuids_or_refused(lines):
    try:
        uuids = read_uuids(lines, "file", may_be_empty=False)
    except InvalidNames:
        return
    assert all(len(uuid) == 36 and uuid == uuid.lower() for uuid in uuids)


def test_the_recorded_replies_are_generated_from_the_schemas():
    schemas = json.loads(record.SCHEMAS.read_text())
    assert record.replies(schemas) == RECORDED
    for key in ("servers", "migrations"):
        VALIDATORS[key].validate({key: RECORDED[key]})


def test_the_recorded_replies_have_every_alternative():
    """The replies contain each property of the schema, and both kinds of servers; some lack the optional properties."""
    full, short = VALIDATORS["servers"].schema["properties"]["servers"]["items"]["oneOf"]
    servers = [server for server in RECORDED["servers"] if "flavor" in server]
    unknown = [server for server in RECORDED["servers"] if "flavor" not in server]
    assert set(full["properties"]) == set().union(*servers)
    assert set(full["required"]) == set.intersection(*map(set, servers))
    assert set(short["properties"]) == set().union(*unknown)
    assert {server["image"] == "" for server in servers} == {True, False}
    assert {"extra_specs" in server["flavor"] for server in servers} == {True, False}


@pytest.mark.parametrize("number", range(record.SERVERS))
def test_every_server_that_the_schemas_allow_is_understood_or_refused(number):
    document = copy.deepcopy(RECORDED["servers"][number])
    if "flavor" in document and HOST not in document:
        with pytest.raises(KeyError, match=HOST):
            NovaServer.from_document(document)
        return
    server = NovaServer.from_document(document)
    assert (server.uuid, server.status, server.project) == (document["id"], document["status"], document["tenant_id"])
    if "flavor" not in document:
        assert (server.is_changing, server.host, server.demand) == (True, None, None)
        return
    assert server.host == document[HOST]
    assert (server.demand is None) == ("extra_specs" not in document["flavor"])
    if server.demand is not None:
        assert server.demand.exact["MEMORY_MB"] == document["flavor"]["ram"]


def test_migrations_and_their_servers_are_known():
    expected = Expected()
    expected.add_migrations(RECORDED["migrations"])
    assert expected.migrations == {migration["uuid"] for migration in RECORDED["migrations"]}
    assert expected.migrating == {migration["instance_uuid"] for migration in RECORDED["migrations"]}
    assert all(map(expected.knows, expected.migrations))


def test_a_server_in_an_unknown_state_of_a_cell_that_answers_is_compared():
    document = {**next(server for server in RECORDED["servers"] if "flavor" in server), "status": "UNKNOWN", TASK: None}
    server = NovaServer.from_document({**document, HOST: "host1"})
    assert (server.host, server.is_changing, server.demand is None) == ("host1", False, False)


def test_a_server_without_an_image_has_its_disk_on_a_volume():
    """nova sends an empty text; its schema also allows null."""
    document = next(server for server in RECORDED["servers"] if "flavor" in server and server["flavor"].get("disk"))
    image, text, null = (
        NovaServer.from_document({**document, "image": image}).demand for image in ({"id": UUID}, "", None)
    )
    assert text == null != image
