"""A client with all rights that calls the service, in this process or over HTTP."""

from __future__ import annotations

import http.client
import io
import json
import urllib.parse
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, NoReturn

from tests.children import PATIENCE

#: The role admin reads and writes, service reshapes (docs: policy).
ROLES = "admin,service"
#: The fields of a claim for a new consumer, beside its allocations.
NEW_CONSUMER = {"project_id": "p", "user_id": "u", "consumer_generation": None, "consumer_type": "INSTANCE"}


class Answer(NamedTuple):
    """A response; an empty body is None."""

    status: int
    body: Any
    #: The headers, with names in lower case.
    headers: Mapping[str, str] = {}

    @property
    def error(self) -> Any:
        """The only error of an error document."""
        [error] = self.body["errors"]
        return error


#: Method, path with query, minor version, body -> response.
Caller = Callable[..., Answer]
#: The prefix of the Bare Metal API.
BAREMETAL = "/baremetal"


def version_of(path: str, minor: int | None) -> str:
    """Return the header with a version of the path's API; None means the newest one."""
    service, newest = ("baremetal", 115) if path.startswith(BAREMETAL) else ("placement", 39)
    return f"{service} 1.{newest if minor is None else minor}"


def inside(application: Any) -> Caller:
    """Return a caller of an application in this process."""

    def call(method: str, path: str, minor: int | None = None, body: Any = None) -> Answer:
        path, _, query = path.partition("?")
        content = b"" if body is None else json.dumps(body).encode()
        environ = {
            "REQUEST_METHOD": method,
            "SCRIPT_NAME": "",
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "SERVER_NAME": "placement",
            "SERVER_PORT": "80",
            "SERVER_PROTOCOL": "HTTP/1.1",
            "HTTP_HOST": "placement",
            "HTTP_X_AUTH_TOKEN": "admin",
            "HTTP_X_ROLES": ROLES,
            "HTTP_OPENSTACK_API_VERSION": version_of(path, minor),
            "CONTENT_TYPE": "application/json",
            "CONTENT_LENGTH": str(len(content)),
            "wsgi.url_scheme": "http",
            "wsgi.input": io.BytesIO(content),
            "wsgi.errors": io.StringIO(),
        }
        heads: list[tuple[str, list[tuple[str, str]]]] = []
        chunks = application(environ, lambda status, headers, *_error: heads.append((status, headers)))
        status, headers = heads[0]
        return _answer(int(status.split()[0]), b"".join(chunks), headers)

    return call


#: The headers of a client with all rights, under noauth2.
ADMIN = {"X-Auth-Token": "admin", "X-Roles": ROLES}


def over_http(url: str, identity: Mapping[str, str] = ADMIN) -> Caller:
    """Return a caller of a service of any implementation; ``identity`` are the headers that identify the client."""
    address = urllib.parse.urlsplit(url)
    headers = {**identity, "Content-Type": "application/json"}

    def call(method: str, path: str, minor: int | None = None, body: Any = None) -> Answer:
        connection = http.client.HTTPConnection(str(address.hostname), address.port, timeout=PATIENCE)
        try:
            version = {"OpenStack-API-Version": version_of(path, minor)}
            content = None if body is None else json.dumps(body)
            connection.request(method, address.path.rstrip("/") + path, content, headers | version)
            reply = connection.getresponse()
            return _answer(reply.status, reply.read(), reply.getheaders())
        finally:
            connection.close()

    return call


class NotJSONError(ValueError):
    """The body of a response is not JSON."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(f"{status} {text}")
        self.status, self.text = status, text


def _answer(status: int, content: bytes, headers: Iterable[tuple[str, str]]) -> Answer:
    try:
        body = json.loads(content, parse_constant=_refuse) if content else None
    except ValueError as error:
        raise NotJSONError(status, content.decode(errors="replace")) from error
    return Answer(status, body, {name.lower(): value for name, value in headers})


def _refuse(constant: str) -> NoReturn:
    raise AssertionError(f"{constant} is not JSON")
