"""Requests leave no data in memory, which a hostile client could otherwise fill."""

import gc
import logging
import tracemalloc

import pytest

from placement import errors
from placement.http.endpoint import endpoint
from placement.http.response import ok
from placement.schemas import provider as schema
from tests import web

#: Bytes of each text; fewer than the limit of a query.
LENGTH = 25_000


@endpoint(policy="placement:usages", target=lambda req: {"project_id": req.unchecked_parameter("project_id")})
def show(_req):
    return ok({})


@endpoint(policy="placement:resource_providers:create", body=schema.CREATE)
def refuse(req):
    raise errors.ProviderUuidTaken(uuid=req.document["uuid"])


@pytest.fixture(scope="module")
def app():
    return web.service({"/": {"GET": show}, "/bodies": {"POST": refuse}})


@pytest.mark.parametrize("part", ["openstack-api-version", "accept", "x-auth-token", "x-roles", "query", "path"])
def test_no_part_of_a_request_is_kept_in_memory(app, part, caplog):
    caplog.set_level(logging.WARNING, "placement.middleware.request_log")  # pytest stores the lines

    def ask(number):
        text = f"{number:0{LENGTH}}"
        headers = {"x-auth-token": "admin"}
        path = {"query": f"/?project_id={text}", "path": f"/{text}"}.get(part, "/")
        if path == "/":
            headers[part] = {"accept": f"text/html;level={text}", "x-roles": f"admin,{text}"}.get(part, text)
        assert web.ask(app, "GET", path, headers).status_int in (200, 403, 404, 406)

    ask(0)
    gc.collect()
    tracemalloc.start()
    try:
        for number in range(1, 31):
            ask(number)
        gc.collect()
        traced, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert traced < 10 * LENGTH, "the texts of thirty requests are not kept"


SPACE = b" " * 1_000_000
NAMES = b",".join(b'"%d": 1' % number for number in range(50_000))


@pytest.mark.parametrize(
    "body",
    [
        SPACE,
        b"[" * 1_000_000,
        b'{"name": "n", "uuid": "00000000-0000-4000-8000-000000000000"}' + SPACE,
        b'{"name": 5}' + SPACE,
        b'{"name": 5, ' + NAMES + b"}" + SPACE,
        b'["' + SPACE + b'"]',
        b"[" + b"1," * 600_000 + b"1]",
        b'"\\u0000"' + SPACE,
        b"\xff" + SPACE,
    ],
    ids=["no value", "deep", "conflict", "number", "names", "text", "values", "NUL", "not UTF-8"],
)
def test_the_memory_of_a_refused_body_is_freed_with_its_request(app, body):
    """The cycle collector is disabled: it examines old objects rarely, and bodies may be large."""

    def ask():
        headers = {"x-auth-token": "admin", "content-type": "application/json"}
        copy = bytes(bytearray(body))  # only the request refers to it
        assert web.ask(app, "POST", "/bodies", headers, copy).status_int in (400, 409, 413)

    ask()
    gc.collect()
    gc.disable()
    tracemalloc.start()
    try:
        for _ in range(5):
            ask()
        traced, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        gc.enable()
    assert traced < len(body), "the bodies of five requests are not kept"
