"""The request as a handler sees it: WebOb's, with the version, the service, and the validated body and query."""

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
from placement.http.environ import CONTEXT, SEARCH
from placement.http.service import Service
from placement.index.live import LiveIndex
from placement.objects.claims import leases
from placement.schemas.document import Parameters, urlencoded
from placement.version_history import Version

Result = TypeVar("Result")
Given = ParamSpec("Given")

#: A host, with or without port, that may be repeated in a header of a reply.
_HOST = re.compile(r"[\w.-]+(:\d*)?|\[[0-9A-Fa-f:.]+\](:\d*)?", re.ASCII)


class Read(Protocol):
    """The method ``read`` of a database."""

    def __call__(
        self, work: Callable[Concatenate[Reading, Given], Result], /, *args: Given.args, **kwargs: Given.kwargs
    ) -> Result: ...


class Request(webob.Request):
    """One request, on its way through one endpoint.

    The application sets what the request is served with, and the endpoint ``document`` and ``parameters`` before the
    handler runs.  WebOb's own ``body`` and ``GET`` are what the client sent, unchecked.
    """

    #: What all requests share.
    service: Service
    #: The version of the API that this request uses.
    version: Version
    #: ``read(work)`` returns what ``work(db)`` returns; each statement sees what is committed when it runs.
    read: Read
    #: The path below which the API is mounted, quoted, to be put before every path in a reply; mostly empty.  WebOb's
    #: ``script_name`` is not quoted, and its ``path`` quotes less than links of this service always did.
    mount_path = ""
    #: The JSON value of the body, valid by the schema of the endpoint; None for an endpoint that reads no body.
    document: Any = None
    #: The query, valid by the schema of the endpoint; empty for an endpoint that ignores the query.
    parameters: Parameters = Parameters()
    #: What takes the writes of a dry run; None for all other requests.
    dry_run: DryRun[Any] | None = None

    # WebOb keeps attributes that it does not know in the environ.
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
        """The database, or what stands in for it in a dry run."""
        return self.dry_run or self.service.database

    @property
    def index(self) -> LiveIndex:
        """The index of all providers; ``current()`` returns a snapshot as of now."""
        return self.service.index

    # --- where ---

    def absolute_url(self, path: str) -> str:
        """Return the absolute URL of a path of this API, for Location (docs: api-locations).

        WebOb's ``host_url`` repeats any Host header, and leaves out the port of the scheme; this one repeats only what
        is a host, and its port as sent.
        """
        environ = self.environ
        host = environ.get("HTTP_HOST", "")
        if not _HOST.fullmatch(host):
            host = f"{environ['SERVER_NAME']}:{environ['SERVER_PORT']}"
        scheme = "https" if environ["wsgi.url_scheme"] == "https" else "http"
        return f"{scheme}://{host}{self.mount_path}{quote(path)}"

    # --- what is asked ---

    def pairs(self) -> list[tuple[str, str]]:
        """Return the names and values of the query, in order, before any check.

        Raises:
            InvalidQuery: The query is not UTF-8, or holds NUL.
        """
        return urlencoded(self.environ.get("QUERY_STRING", "").encode("latin-1"), "utf-8", "parameter")

    def unchecked_parameter(self, name: str) -> str | None:
        """Return a parameter as sent, before any check; None also if the query cannot be decoded."""
        try:
            value: str | None = Parameters(self.pairs()).get(name)
        except errors.InvalidQuery:
            return None
        return value

    # --- what it is served with ---

    def log_search(self, found: int, obstacle: str) -> None:
        """Add what a search found to the log line of the request.

        Args:
            obstacle: The rule that left nothing, in a word; empty if something was found.
        """
        self.environ[SEARCH] = {"found": found, "obstacle": obstacle} if obstacle else {"found": found}

    def log_claims(self, claimed: int, refused: int) -> None:
        """Add to the log line how many consumers of a call got a place, or had one, and how many did not."""
        self.environ[SEARCH] = {"claimed": claimed, "refused": refused}

    def log_released(self, released: int) -> None:
        """Add to the log line how many consumers a call released."""
        self.environ[SEARCH] = {"released": released}

    def now(self) -> datetime.datetime:
        """Return the time of the database's clock: UTC, naive; what is asked for by its age is compared with it."""
        return self.read(leases.now)

    def write(
        self,
        work: Callable[[Transaction], Result],
        *,
        attempts: int = retry.ATTEMPTS,
        exhausted: type[errors.Conflict] = errors.TooManyConflicts,
    ) -> Result:
        """Return what ``work(db)`` returns, once it is committed; in a dry run, once it is rolled back.

        ``work`` may run several times, each time in a new transaction.  The options are those of ``Database.write``.
        """
        return self.writes_to.write(work, attempts=attempts, exhausted=exhausted)

    def authorize(self, rule: str, target: Mapping[str, Any] | None = None) -> None:
        """Ask the policy whether the caller may do ``rule``.

        Raises:
            Forbidden: The policy says no.
        """
        self.service.policy.authorize(rule, self.environ[CONTEXT], target)

    def may(self, rule: str, target: Mapping[str, Any] | None = None) -> bool:
        """Return whether the policy lets the caller do ``rule``, for a reply that has only what is allowed."""
        try:
            self.authorize(rule, target)
        except errors.Forbidden:
            return False
        return True
