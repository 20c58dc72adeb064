"""The version of a request is negotiated, and the response states it (docs: api-microversions)."""

from __future__ import annotations

import pytest

from placement import microversion as mv
from placement.http.endpoint import endpoint
from placement.http.response import ok
from tests import web


@endpoint()
def version(req):
    return ok(list(req.version))


#: The first version that does not exist.
NEXT = f"{mv.LATEST.major}.{mv.LATEST.minor + 1}"


@pytest.fixture(scope="module")
def app():
    return web.service({"/": {"GET": version}})


@pytest.mark.parametrize(
    ("requested", "negotiated"),
    [
        (None, [1, 0]),
        ("placement 1.7", [1, 7]),
        ("placement latest", [mv.LATEST.major, mv.LATEST.minor]),
        (" placement   latest ", [mv.LATEST.major, mv.LATEST.minor]),
        ("compute 2.1, placement 1.7", [1, 7]),
        ("placement 1.7, placement 1.9", [1, 9]),
        ("PLACEMENT 01.07", [1, 7]),
        ("compute 9.9", [1, 0]),
        ("1.7", [1, 0]),
    ],
)
def test_the_negotiated_version_is_in_the_request_and_in_the_response(app, requested, negotiated):
    answer = web.ask(app, "GET", "/", {"openstack-api-version": requested} if requested else {})
    assert answer.json == negotiated
    assert answer.headers["openstack-api-version"] == f"placement {negotiated[0]}.{negotiated[1]}"
    assert answer.headers["vary"] == "openstack-api-version"


@pytest.mark.parametrize(
    ("requested", "status", "message"),
    [
        ("0.5", 406, "Invalid microversion: Unacceptable version header: 0.5"),
        (NEXT, 406, f"Invalid microversion: Unacceptable version header: {NEXT}"),
        ("pony.horse", 400, "Invalid microversion: invalid version string: pony.horse; "),
        ("1", 400, "Invalid microversion: invalid version string: 1; "),
        ("LATEST", 400, "Invalid microversion: invalid version string: LATEST; "),
    ],
)
@pytest.mark.parametrize("accept", ["application/json", "text/html", "text/plain"])
def test_an_unsupported_version_is_refused_without_version_headers(app, requested, status, message, accept):
    answer = web.ask(app, "GET", "/", {"openstack-api-version": f"placement {requested}", "accept": accept})
    assert answer.status_int == status
    assert message in answer.text
    assert answer.headers["content-type"].startswith(accept)
    assert "openstack-api-version" not in answer.headers
    assert "vary" not in answer.headers
    if accept == "application/json":
        problem = answer.json["errors"][0]
        assert "code" not in problem
        assert problem.get("max_version") == (str(mv.LATEST) if status == 406 else None)
        assert problem.get("min_version") == ("1.0" if status == 406 else None)
