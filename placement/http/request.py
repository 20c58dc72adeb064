"""The request that handlers receive: a WebOb request with version, service, validated body and query."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Mapping
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar
from urllib.parse import quote

import webob
from oslo_config import cfg

from placement import errors
from placement.db.database import Database
from placement.db.dry_run import DryRun
from placement.db.writes import retry
from placement.db.writes.transaction import Reading, Transaction
from placement.http.environ import CONTEXT, OUTCOME
from placement.http.service import Service
from placement.index.live import LiveIndex
from placement.objects.claims import leases
from placement.schemas.document import Parameters, parse_urlencoded
from placement.version_history import Version

Result = TypeVar("Result")
Params = ParamSpec("Params")

#: A host, with or without a port, that may be copied into a response header.
_HOST = re.compile(r"[\w.-]+(:\d*)?|\[[0-9A-Fa-f:.]+\](:\d*)?", re.ASCII)


class Read(Protocol):
    """The method ``read`` of a database."""

    def __call__(
        self, work: Callable[Concatenate[Reading, Params], Result], /, *args: Params.args, **kwargs: Params.kwargs
    ) -> Result: ...


class Request(webob.Request):
    """A request to one endpoint.

    The application sets ``service``, ``version``, ``read`` and ``mount_path``; the endpoint sets ``document`` and
    ``parameters`` before the handler runs.  WebOb's own ``body`` and ``GET`` are unvalidated.
    """

    #: The state that all requests share.
    service: Service
    #: The negotiated version of the API.
    version: Version
    #: ``read(work)`` returns ``work(db)``; each statement sees the rows committed when it runs.
    read: Read
    #: The quoted path below which the API is mounted, the prefix of every path in a response; usually empty.  WebOb's
    #: ``script_name`` is not quoted, and its ``path`` quotes fewer characters than the links of this service.
    mount_path = ""
    #: The JSON value of the body, validated; None for an endpoint that reads no body.
    document: Any = None
    #: The query, validated; empty for an endpoint that ignores it.
    parameters: Parameters = Parameters()
    #: The dry run that executes the writes of this request; None for other requests.
    dry_run: DryRun[Any] | None = None

    # WebOb would store unknown attributes in the environ.
    __setattr__ = object.__setattr__

    @property
    def conf(self) -> cfg.ConfigOpts:
        """The options of the service."""
        return self.service.conf

    @property
    def database(self) -> Database:
        """The database of the service."""
        return self.service.database

    @property
    def writes_to(self) -> Database | DryRun[Any]:
        """The dry run of the request, if it is one, or else the database."""
        return self.dry_run or self.service.database

    @property
    def index(self) -> LiveIndex:
        """The index of all providers; ``current()`` returns an up-to-date snapshot."""
        return self.service.index

    # --- URLs ---

    def absolute_url(self, path: str) -> str:
        """Return the absolute URL of a path of this API, for Location (docs: api-locations).

        Unlike WebOb's ``host_url``, it copies the Host header only if it is a valid host, and keeps its port even if
        that is the default of the scheme.
        """
        environ = self.environ
        host = environ.get("HTTP_HOST", "")
        if not _HOST.fullmatch(host):
            host = f"{environ['SERVER_NAME']}:{environ['SERVER_PORT']}"
        scheme = "https" if environ["wsgi.url_scheme"] == "https" else "http"
        return f"{scheme}://{host}{self.mount_path}{quote(path)}"

    # --- query string ---

    def pairs(self) -> list[tuple[str, str]]:
        """Return the unvalidated names and values of the query string, in order.

        Raises:
            InvalidQuery: The query string is not UTF-8 or contains NUL.
        """
        return parse_urlencoded(self.environ.get("QUERY_STRING", "").encode("latin-1"), "utf-8", "parameter")

    def unchecked_parameter(self, name: str) -> str | None:
        """Return an unvalidated parameter; None if it is missing or the query string cannot be decoded."""
        try:
            value: str | None = Parameters(self.pairs()).get(name)
        except errors.InvalidQuery:
            return None
        return value

    # --- the log line of the request ---

    def log_search(self, count: int, obstacle: str) -> None:
        """Add the outcome of a search to the log line.

        Args:
            count: The number of candidates or places.
            obstacle: The name of the rule that left no candidate; empty if a candidate remains.
        """
        self.environ[OUTCOME] = {"found": count, "obstacle": obstacle} if obstacle else {"found": count}

    def log_claims(self, claimed: int, refused: int) -> None:
        """Add the numbers of consumers with and without a claim to the log line."""
        self.environ[OUTCOME] = {"claimed": claimed, "refused": refused}

    def log_released(self, released: int) -> None:
        """Add the number of released consumers to the log line."""
        self.environ[OUTCOME] = {"released": released}

    # --- database and policy ---

    def now(self) -> datetime.datetime:
        """Return the time of the database's clock, in UTC and naive: ages in queries are relative to it."""
        return self.read(leases.now)

    def write(
        self,
        work: Callable[[Transaction], Result],
        *,
        attempts: int = retry.ATTEMPTS,
        exhausted: type[errors.Conflict] = errors.TooManyConflicts,
    ) -> Result:
        """Run ``work(db)`` in a transaction and return its result; a dry run rolls the transaction back.

        ``work`` may run several times, each time in a new transaction.  See ``Database.write`` for the options.
        """
        return self.writes_to.write(work, attempts=attempts, exhausted=exhausted)

    def authorize(self, rule: str, target: Mapping[str, Any] | None = None) -> None:
        """Raise Forbidden unless the policy allows the caller ``rule``."""
        self.service.policy.authorize(rule, self.environ[CONTEXT], target)

    def may(self, rule: str, target: Mapping[str, Any] | None = None) -> bool:
        """Whether the policy allows the caller ``rule``, for responses that omit forbidden parts."""
        try:
            self.authorize(rule, target)
        except errors.Forbidden:
            return False
        return True
