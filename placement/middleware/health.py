"""Health checks for load balancers: the /healthcheck of oslo.middleware, extended by a check of the database."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Sequence
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qs
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

import sqlalchemy as sa
from oslo_config import cfg
from oslo_middleware.exceptions import ConfigInvalid
from oslo_middleware.healthcheck import Healthcheck
from oslo_middleware.healthcheck.pluginbase import HealthcheckResult

from placement import errors
from placement.db.database import Database
from placement.db.engine import driver_errors
from placement.db.schema import tables
from placement.errors import StartError
from placement.http.environ import API
from placement.http.service import Service

PATH = "/healthcheck"


class Health:
    """The layer that serves health checks at one path without authentication: 200, or 503 with the reason.

    Addresses outside ``[healthcheck]allowed_source_ranges`` get the application's response.
    """

    def __init__(self, application: WSGIApplication, service: Service) -> None:
        self._check = _Check(application, service)
        self._detailed_check = _Check(application, service, _identity_checks(service.conf))
        self._is_unrestricted = not service.conf.healthcheck.allowed_source_ranges

    def applies(self, environ: WSGIEnvironment) -> bool:
        """Whether the checks serve a request for PATH."""
        return not environ[API].prefix and (self._is_unrestricted or _has_address(environ))

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Return the result of the checks."""
        reply: Iterable[bytes] = self._checks(environ)(environ, start_response)
        return reply

    def _checks(self, environ: WSGIEnvironment) -> Healthcheck:
        """Return the checks; ``?detailed`` adds the check of the Identity service."""
        detailed = "detailed" in parse_qs(environ.get("QUERY_STRING", ""), keep_blank_values=True)
        return self._detailed_check if detailed else self._check


def _identity_checks(conf: cfg.ConfigOpts) -> Sequence[Any]:
    """Return the check of the Identity service, if it validates tokens."""
    if conf.api.auth_strategy != "keystone":
        return ()
    from placement.middleware.keystone_check import KeystoneCheck  # of the extra "keystone"

    return (KeystoneCheck(conf),)


def _has_address(environ: WSGIEnvironment) -> bool:
    """Whether the client address can be matched: proxies may send a list, or an address with a port."""
    try:
        ipaddress.ip_address(environ.get("REMOTE_ADDR", ""))
    except ValueError:
        return False
    return True


class _Check(Healthcheck):
    """The middleware of oslo.middleware with its configured backends, and always with the database check first."""

    def __init__(self, application: WSGIApplication, service: Service, additional_checks: Sequence[Any] = ()) -> None:
        """Create the middleware; raise StartError if its options are invalid."""
        try:
            super().__init__(application, service.conf)
        except cfg.Error:  # a subclass of ValueError
            raise
        except ValueError as error:
            raise StartError(f"[healthcheck]allowed_source_ranges: {error}") from None
        except ConfigInvalid:
            raise StartError("[healthcheck]backends: disable_by_file and enable_by_files exclude each other") from None
        own_backends = [SimpleNamespace(obj=check) for check in (DatabaseCheck(service.database), *additional_checks)]
        self._backends: Any = [*own_backends, *self._backends]


#: A query that fails if a table that only this service uses is missing; "placement-manage db release" removes them.
_TABLES_EXIST = sa.select(*(sa.exists().select_from(table) for table in tables.OURS))


class DatabaseCheck:
    """A check that the database responds and contains the tables of this service.

    It uses its own connection, with a timeout of a few seconds.  Concurrent checks run one at a time: while the
    database hangs, each of them waits for its predecessors and for the timeout.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def healthcheck(self, _server_port: int) -> HealthcheckResult:
        """Return the result; only its details contain the driver's message, which may name hosts and users."""
        try:
            self._database.probe(lambda db: db.execute(_TABLES_EXIST).all())
        except (errors.TablesMissing, errors.DatabaseRefuses) as failure:
            return HealthcheckResult(False, str(failure), driver_errors.cause_of(failure))
        except errors.Unavailable as failure:
            return HealthcheckResult(False, "The database cannot be reached.", driver_errors.cause_of(failure))
        except sa.exc.SQLAlchemyError as error:
            return HealthcheckResult(False, "The database responds with an error.", driver_errors.message(error))
        return HealthcheckResult(True, "OK")
