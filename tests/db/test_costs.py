"""Limits on the time and memory of every body; a refusal is short and changes nothing."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterable
from typing import Any

import pytest
import sqlalchemy as sa

from placement import deploy
from placement.db.schema.tables import inventories, placement_aggregates, resource_provider_traits, resource_providers
from tests import web
from tests.caller import NEW_CONSUMER
from tests.cost_measurement import cost
from tests.made import opened
from tests.run_length import LONG

pytestmark = pytest.mark.parametrize("backend", ["sqlite"], indirect=True)

#: Seconds of processor time: a body takes a few seconds, and hours if its processing is quadratic.
SECONDS = 120
MEBIBYTES, REPLY_SIZE = 300, 200_000
#: The limits of a body.
LIMIT = 2**24
GUARD = {"resource_provider_generation": 0}
STATE = [
    sa.select(sa.func.count()).select_from(table)
    for table in (resource_providers, inventories, placement_aggregates, resource_provider_traits)
]


def uuid(number: int) -> str:
    return f"0b7e0000-0000-4000-8000-{number:012x}"


HOST = uuid(0)
TRAITS, AGGREGATES, INVENTORIES = (
    f"/resource_providers/{HOST}/{kind}" for kind in ("traits", "aggregates", "inventories")
)


def many(make: Callable[[int], Any]) -> list[Any]:
    """Return as many items as a body may contain."""
    length = len(json.dumps(make(10**6))) + 2
    return [make(number) for number in range(LIMIT // length - 100)]


def many_members(make: Callable[[int], tuple[str, Any]]) -> dict[str, Any]:
    return dict(many(make))


def claims(numbers: Iterable[int]) -> dict[str, Any]:
    return {uuid(number): {"allocations": {HOST: {"resources": {"VCPU": 1}}}, **NEW_CONSUMER} for number in numbers}


#: Method, path, body, status.
BODIES: dict[str, tuple[str, str, Callable[[], Any], int]] = {
    "traits": ("PUT", TRAITS, lambda: {"traits": many(lambda n: f"CUSTOM_{n:040}"), **GUARD}, 400),
    "traits, one invalid": (
        "PUT",
        TRAITS,
        lambda: {"traits": [*many(lambda n: f"CUSTOM_{n:040}"), 5], **GUARD},
        400,
    ),
    "ten thousand traits": (
        "PUT",
        TRAITS,
        lambda: {"traits": [f"\N{SNOWMAN}{n:0240}" for n in range(10_000)], **GUARD},
        400,
    ),
    "aggregates": ("PUT", AGGREGATES, lambda: {"aggregates": many(uuid), **GUARD}, 400),
    "aggregates, one invalid": ("PUT", AGGREGATES, lambda: {"aggregates": [*many(uuid), "x"], **GUARD}, 400),
    "aggregates, one repeated": (
        "PUT",
        AGGREGATES,
        lambda: {"aggregates": [*many(uuid), uuid(0)], **GUARD},
        400,
    ),
    "inventories": (
        "PUT",
        INVENTORIES,
        lambda: {"inventories": many_members(lambda n: (f"CUSTOM_{n:060}", {"total": 1})), **GUARD},
        400,
    ),
    "classes of a claim": (
        "PUT",
        f"/allocations/{uuid(1)}",
        lambda: {"allocations": {HOST: {"resources": many_members(lambda n: (f"CUSTOM_{n:060}", 1))}}, **NEW_CONSUMER},
        400,
    ),
    "too many consumers": ("POST", "/allocations", lambda: claims(range(40_000)), 400),
    "consumers, one invalid": ("POST", "/allocations", lambda: claims(range(40_000)) | {HOST: 5}, 400),
    "names": ("POST", "/resource_providers", lambda: many_members(lambda n: (f"{n:060}", 1)), 400),
    "a long name": ("POST", "/resource_providers", lambda: {"name": "\N{SNOWMAN}" * (LIMIT // 6 - 100)}, 400),
    "a long key": (
        "POST",
        "/resource_providers",
        lambda: {"name": "n", "\N{GRINNING FACE}" * (LIMIT // 12 - 100): 1},
        400,
    ),
    "a name of control characters": ("POST", "/resource_providers", lambda: {"name": "\1" * 20_000}, 400),
    "a text": ("POST", "/allocations", lambda: b'"' + b"x" * (LIMIT - 2) + b'"', 400),
    "an escaped text": ("POST", "/allocations", lambda: b'"' + rb"\u2603" * (LIMIT // 6 - 2) + b'"', 400),
    "a number": ("POST", "/allocations", lambda: b"1" * LIMIT, 400),
    "nothing": ("POST", "/allocations", lambda: b" " * LIMIT, 400),
    "numbers": ("POST", "/allocations", lambda: b"[%s1]" % (b"1," * (LIMIT // 2 - 2)), 413),
    "objects": ("POST", "/allocations", lambda: b"[%s1]" % (b"{}," * (LIMIT // 3 - 2)), 413),
    "depth": ("POST", "/allocations", lambda: b"[" * LIMIT, 413),
}
SHORT = (
    "traits, one invalid",
    "aggregates, one repeated",
    "a long key",
    "a name of control characters",
)


@pytest.fixture
def url(database: Any) -> str:
    app = deploy.loadapp(web.configuration(), database)
    status, _ = send(app, "POST", "/resource_providers", json.dumps({"name": "host", "uuid": HOST}).encode())
    assert status == 200
    address: str = database.engine.url.render_as_string(hide_password=False)
    return address


def send(app: Any, method: str, path: str, content: bytes) -> tuple[int, int]:
    """Return the status and the length of the response."""
    environ = {
        "REQUEST_METHOD": method,
        "SCRIPT_NAME": "",
        "PATH_INFO": path,
        "QUERY_STRING": "",
        "SERVER_NAME": "placement",
        "SERVER_PORT": "80",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "HTTP_X_AUTH_TOKEN": "admin",
        "HTTP_X_ROLES": "admin,service",
        "HTTP_OPENSTACK_API_VERSION": "placement 1.39",
        "CONTENT_TYPE": "application/json",
        "CONTENT_LENGTH": str(len(content)),
        "wsgi.url_scheme": "http",
        "wsgi.input": io.BytesIO(content),
        "wsgi.errors": io.StringIO(),
    }
    reported: list[str] = []
    length = sum(map(len, app(environ, lambda status, _headers, *_error: reported.append(status))))
    return int(reported[0].split()[0]), length


@pytest.mark.parametrize("name", BODIES if LONG else SHORT)
def test_no_body_exceeds_the_limits_of_time_and_memory(url: str, name: str) -> None:
    method, path, make, status = BODIES[name]
    body = make()
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    del body
    assert len(content) <= LIMIT

    def work() -> tuple[tuple[int, int], bool]:
        with opened(url) as database:
            app = deploy.loadapp(web.configuration(), database)

            def state() -> list[Any]:
                return [database.read(lambda db, query=query: db.execute(query).scalar()) for query in STATE]

            before = state()
            answer = send(app, method, path, content)
            return answer, state() == before

    measured = cost(work)
    (observed_status, length), unchanged = measured.result
    assert observed_status == status
    assert unchanged
    assert length < REPLY_SIZE
    assert measured.seconds < SECONDS
    assert measured.mebibytes < MEBIBYTES
