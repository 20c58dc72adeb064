"""What a handler sees of a request: who asks, in which version, the body and the query once they have proven sound."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn, TypeVar
from urllib.parse import parse_qsl, quote

from placement import errors
from placement import microversion as mv
from placement.schemas.document import Parameters

Environ = dict[str, Any]
Result = TypeVar("Result")

# Where the middleware leaves what it found out about a request.
REQUEST_ID = "placement.request_id"
GLOBAL_REQUEST_ID = "placement.global_request_id"
CONTEXT = "placement.context"
VERSION = "placement.version"
#: The path of the route in the table, and the class of the failure, for whoever counts.
ROUTE = "placement.route"
FAILURE = "placement.failure"

#: What may stand in a header of a reply as the name of a host, with its port.
_HOST = re.compile(r"[\w.-]+(:\d*)?|\[[0-9A-Fa-f:.]+\](:\d*)?", re.ASCII)


class User(NamedTuple):
    """Whoever sent the request, as far as the authentication knows."""

    user_id: str | None
    project_id: str | None
    roles: tuple[str, ...]
    system_scope: str | None


@dataclass(frozen=True, slots=True)
class Service:
    """What all requests share.  One per application, so that several can live in one interpreter."""

    conf: Any
    database: Any
    policy: Any
    #: Who keeps all providers in memory; ``current()`` gives them as of now.
    index: Any = None


class Request:
    """One request, on its way through one endpoint."""

    __slots__ = ("_body", "_query", "body_schema", "environ", "query_schema", "service", "version")

    _body: Any
    _query: Parameters

    def __init__(self, environ: Environ, service: Service) -> None:
        self.environ = environ
        self.service = service
        self.version: mv.Version = environ[VERSION]
        self.body_schema: Any = None
        self.query_schema: Any = None

    # --- who asks, and where ---

    @property
    def method(self) -> str:
        """``GET`` and its like."""
        method: str = self.environ["REQUEST_METHOD"]
        return method

    @property
    def user(self) -> User:
        """Who asks."""
        context = self.environ[CONTEXT]
        return User(context.user_id, context.project_id, tuple(context.roles), context.system_scope)

    @property
    def request_id(self) -> str:
        """The id under which this request is logged and answered."""
        request_id: str = self.environ[REQUEST_ID]
        return request_id

    @property
    def prefix(self) -> str:
        """Where the service is mounted, to be put before every path in a reply; mostly empty."""
        script_name = self.environ.get("SCRIPT_NAME", "")
        return quote(script_name.encode("latin-1")) if script_name else ""

    def url(self, path: str) -> str:
        """The absolute URL of a path of the service, for Location (contract 1.11)."""
        environ = self.environ
        host = environ.get("HTTP_HOST", "")
        if not _HOST.fullmatch(host):
            host = f"{environ['SERVER_NAME']}:{environ['SERVER_PORT']}"
        scheme = "https" if environ["wsgi.url_scheme"] == "https" else "http"
        return f"{scheme}://{host}{self.prefix}{quote(path)}"

    # --- what is asked ---

    @property
    def body(self) -> Any:
        """The JSON body, sound by the schema of the endpoint; raises what is wrong with it.  So a handler that must
        tell a missing provider first looks for the provider first."""
        if isinstance(self._body, errors.Failure):
            # Another one each time: what is raised refers, by its traceback, to this request and all that it has read,
            # and the request would refer to it.  Such a circle stays in memory until the cycle collector comes by.
            raise type(self._body)(**self._body.facts)
        return self._body

    def receive(self) -> None:
        """Read the body and judge it, before the handler begins: while it holds locks, no client shall be waited for.

        What is wrong with the body is told by ``body``.
        """
        try:
            self._body = self._read_body()
        except errors.Failure as failure:
            self._body = type(failure)(**failure.facts)

    @property
    def query(self) -> Parameters:
        """The parameters, sound by the schema of the endpoint; an endpoint without one ignores them all."""
        try:
            return self._query
        except AttributeError:
            self._query = self._read_query()
            return self._query

    def parameter(self, name: str) -> str | None:
        """A parameter as it was sent, before anything was checked; None too when the query cannot be decoded."""
        try:
            return Parameters(_pairs(self.environ)).get(name)
        except errors.InvalidQuery:
            return None

    def _read_body(self) -> Any:
        try:
            value = parse_json(self._content(), self.conf.api.max_request_body_values)
        except RecursionError:
            raise errors.MalformedJSON(reason="nested too deeply") from None
        return self.body_schema.validate(value, self.version)

    def _content(self) -> bytes:
        """The bytes of the body.  That a length is a number, and not too large, was checked before the routing."""
        environ = self.environ
        try:
            if length := int(environ.get("CONTENT_LENGTH") or 0):
                content: bytes = environ["wsgi.input"].read(length)
                return content
            if not environ.get("wsgi.input_terminated"):
                return b""
            # A chunked body, and a server that knows where it ends.
            most = self.conf.api.max_request_body_size
            content = environ["wsgi.input"].read(most + 1)
        except OSError as error:  # the client went away, or sends slower than the server waits
            raise errors.MalformedJSON(reason=str(error)) from None
        if len(content) > most:
            raise errors.TooLarge(most=most)
        return content

    def _read_query(self) -> Parameters:
        if self.query_schema is None:
            return Parameters()
        parameters: Parameters = self.query_schema.validate(_pairs(self.environ), self.version)
        return parameters

    def check_count(self, kind: str, count: int) -> None:
        """Raises TooManyEntries if the body names more things of a kind than ``max_<kind>_per_request`` allows."""
        most = self.conf.placement[f"max_{kind}_per_request"]
        if count > most:
            raise errors.TooManyEntries(kind=kind, count=count, most=most)

    # --- what it is served with ---

    @property
    def conf(self) -> Any:
        """The options of the service."""
        return self.service.conf

    @property
    def database(self) -> Any:
        """The database of the service."""
        return self.service.database

    @property
    def index(self) -> Any:
        """The live_index of the index; ``current()`` gives all providers as of now."""
        return self.service.index

    def read(self, work: Callable[[Any], Result]) -> Result:
        """What ``work(db)`` gives, from one transaction that reads."""
        result: Result = self.service.database.read(work)
        return result

    def write(self, work: Callable[[Any], Result], **options: Any) -> Result:
        """What ``work(db)`` gives, committed.  ``work`` may run several times, each time in a fresh transaction.

        Options are those of ``Database.write``: how often, and what to say when every attempt collided.
        """
        result: Result = self.service.database.write(work, **options)
        return result

    def authorize(self, rule: str, target: Mapping[str, Any] | None = None) -> None:
        """Raise Forbidden unless the policy lets this user do ``rule``."""
        self.service.policy.authorize(rule, self.environ[CONTEXT], target)


# --- reading ---------------------------------------------------------------------------------------------------------


_UNSTORABLE = re.compile("[\0\ud800-\udfff]")


def parse_json(content: bytes, most: int | None = None) -> Any:
    """The value of a JSON text that can also be stored; raises MalformedJSON, or TooManyValues if it has more of them.

    Stricter than the standard module where that reads what is not JSON (NaN), and refuses the two things that JSON can
    write and no database can hold: NUL and halves of surrogate pairs.
    """
    if most is not None and len(content) > most:
        _check_count(content, most)
    try:
        value = json.loads(content.decode(), parse_constant=_no_constant)
    except ValueError as error:
        # The error itself holds the whole text.
        raise errors.MalformedJSON(reason=str(error)) from None
    if b"\\u" in content:
        _refuse_unstorable(value)
    return value


def _check_count(content: bytes, most: int) -> None:
    """Raises TooManyValues, before any is made: 16 MiB of empty objects take 400 MB.

    A value is the first of a list or an object, or follows a comma.  What is inside of strings is counted, too: so many
    commas and brackets mean nothing to this API.
    """
    if sum(map(content.count, (b",", b"[", b"{"))) > most:
        raise errors.TooManyValues(most=most)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON value")


def _refuse_unstorable(value: Any) -> None:
    """Walks without recursion: the depth is the client's choice."""
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            waiting.extend(item)
            waiting.extend(item.values())
        elif isinstance(item, list):
            waiting.extend(item)
        elif isinstance(item, str) and _UNSTORABLE.search(item):
            raise errors.MalformedJSON(reason="a string holds NUL or half of a surrogate pair")


def _pairs(environ: Environ) -> list[tuple[str, str]]:
    try:
        text = environ.get("QUERY_STRING", "").encode("latin-1").decode()
        pairs = parse_qsl(text, keep_blank_values=True, errors="strict")
    except UnicodeError as error:
        raise errors.InvalidQuery(reason=error) from None
    if any("\0" in name or "\0" in value for name, value in pairs):
        raise errors.InvalidQuery(reason="NUL in a parameter")
    return pairs
