"""What clients send is not kept: a hostile one cannot fill the memory of a worker."""

import gc
import tracemalloc

import pytest

from placement.endpoint import endpoint
from placement.reply import ok
from tests import web

#: Less than a query may have.
LENGTH = 60_000


@endpoint(policy="placement:usages", target=lambda req: {"project_id": req.parameter("project_id")})
def show(_req):
    return ok({})


@pytest.fixture(scope="module")
def app():
    return web.service({"/": {"GET": show}})


@pytest.mark.parametrize("part", ["openstack-api-version", "accept", "x-auth-token", "x-roles", "query", "path"])
def test_nothing_of_a_request_is_kept(app, part):
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
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 10 * LENGTH  # of thirty
