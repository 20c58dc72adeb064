"""The public interface: two clients with the same methods, queries, and picklable errors."""

from __future__ import annotations

import asyncio
import inspect
import pickle
import re
from importlib import metadata
from pathlib import Path

import httpx
import placement_client
import pytest
from placement_client import (
    AsyncClient,
    BadRequest,
    Client,
    ErrorReply,
    NoReply,
    NoRoom,
    NoToken,
    Refused,
    Token,
    errors,
    query,
)

from tests.children import PATIENCE
from tests.unit.extensions.client.test_operations import reply


def methods(client):
    return {
        name: inspect.signature(method)
        for name, method in vars(client).items()
        if callable(method) and not name.startswith("_") and name != "close"
    }


def test_both_clients_have_the_same_methods():
    assert methods(Client) == methods(AsyncClient)
    assert {"claim", "lease", "follow"} <= {*methods(Client)}
    assert all(method.__doc__ for name, method in vars(Client).items() if name in methods(Client))


def test_help_shows_methods_of_the_clients():
    for client in (Client, AsyncClient):
        for name, signature in methods(client).items():
            assert vars(client)[name].__name__ == name
            assert next(iter(signature.parameters)) == "self"


def test_docstrings_name_only_files_in_the_wheel():
    sources = Path(placement_client.__file__).parent.glob("*.py")
    assert [path.name for path in sources if re.search(r"\bdocs:|\bdocs/|\.rst\b", path.read_text())] == []


def test_every_exported_name_exists_and_the_requirements_are_declared():
    assert [*placement_client.__all__] == sorted(placement_client.__all__)
    assert all(hasattr(placement_client, name) for name in placement_client.__all__)
    required, optional = metadata.requires("placement-client")
    assert required.startswith("httpx")
    assert re.fullmatch(r"keystoneauth1\S+; extra == ['\"]keystone['\"]", optional)


def test_a_query_may_be_an_object_or_a_text():
    search = {
        "groups": {
            "": {"resources": {"VCPU": 2, "MEMORY_MB": 512}, "required": ["A,!B", "in:C,D"], "in_tree": "host 1"},
            "_x": {"resources": {"PGPU": 1}, "member_of": ["in:6f0e5b0a-0000-4000-8000-000000000001,!in:x"]},
            "_y": {"required": ["HW_NUMA_ROOT"]},
        },
        "group_policy": "none",
        "same_subtree": [["_x", "_y"], ["_x"]],
        "root_required": ["!COMPUTE_STATUS_DISABLED"],
    }
    text = query.query_string(search, [("limit", 3), ("until", None)])
    assert text == "&".join(
        [
            *["resources=VCPU%3A2%2CMEMORY_MB%3A512", "required=A%2C%21B", "required=in%3AC%2CD", "in_tree=host+1"],
            *["resources_x=PGPU%3A1", "member_of_x=in%3A6f0e5b0a-0000-4000-8000-000000000001%2C%21in%3Ax"],
            *["required_y=HW_NUMA_ROOT", "group_policy=none", "same_subtree=_x%2C_y", "same_subtree=_x"],
            *["root_required=%21COMPUTE_STATUS_DISABLED", "limit=3"],
        ]
    )
    assert query.query_string("resources=VCPU:2", [("limit", 3)]) == "resources=VCPU:2&limit=3"
    assert query.query_string("resources=VCPU:2") == "resources=VCPU:2"


def test_an_error_contains_the_message_of_the_service():
    detail = "The resource could not be found.\n\n No resource provider with uuid 1 found  "
    document = {"errors": [{"status": 404, "title": "Not Found", "detail": detail, "request_id": "req-1"}]}
    error = errors.from_reply(reply(404, document))
    assert str(error) == "404 Not Found: No resource provider with uuid 1 found (req-1)"
    line = {"detail": "wrong", "code": "placement.v1.invalid_field", "field": "limit", "expected": "1 to 1000"}
    bad_request = errors.from_reply(reply(400, {"errors": [line]}, x_openstack_request_id="req-2"))
    assert (type(bad_request), bad_request.field, bad_request.expected) == (BadRequest, "limit", "1 to 1000")
    assert str(bad_request) == "400 Bad Request: wrong (placement.v1.invalid_field, req-2)"


@pytest.mark.parametrize("document", [None, [], {}, {"errors": []}, {"errors": [1]}, "text"])
@pytest.mark.parametrize("status", [302, 418, 599])
def test_any_error_response_can_be_printed(document, status):
    error = errors.from_reply(reply(status, document))
    assert (error.status, error.code) == (status, None)
    assert str(error).startswith(f"{status} ")


def test_errors_can_be_pickled():
    no_room = NoRoom(409, {"code": "c"}, "req-2", "a")
    for error in (ErrorReply(404, {"detail": "x"}, "req-1"), no_room, NoToken("x", True)):
        copy = pickle.loads(pickle.dumps(error))
        assert (type(copy), str(copy), vars(copy)) == (type(error), str(error), vars(error))
    assert isinstance(NoRoom(409, {}), Refused)


def test_a_client_without_an_address_is_refused():
    for kind in (Client, AsyncClient):
        with pytest.raises(TypeError, match="URL"):
            kind(auth=Token("admin"))
    with Client("htp://nowhere", patience=0) as client, pytest.raises(httpx.UnsupportedProtocol):
        client.position()


def test_an_attempt_of_asyncio_ends_in_time():
    async def silent(_):
        await asyncio.Event().wait()

    async def ask():
        async with httpx.AsyncClient(transport=httpx.MockTransport(silent)) as http:
            await AsyncClient("http://placement", patience=0, timeout=0.01, http=http).position()

    with pytest.raises(NoReply, match="in time"):
        asyncio.run(asyncio.wait_for(ask(), PATIENCE))


def test_a_given_httpx_client_is_not_closed():
    with httpx.Client() as http:
        with Client("http://127.0.0.1:1", http=http):
            pass
        assert not http.is_closed
