"""Reports to load balancers whether this process can serve: oslo.middleware's /healthcheck, with the database."""

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
    """Serves one path of the root API, without authentication: 200, or 503 with the reason.

    An address that may not ask gets the reply of the application.
    """

    def __init__(self, application: WSGIApplication, service: Service) -> None:
        self._check = _Check(application, service)
        self._thorough = _Check(application, service, _identity_checks(service.conf))
        self._for_all = not service.conf.healthcheck.allowed_source_ranges

    def is_asked(self, environ: WSGIEnvironment) -> bool:
        """Return whether a request for PATH is one for the checks."""
        return not environ[API].prefix and (self._for_all or _has_address(environ))

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Return the result of the checks."""
        reply: Iterable[bytes] = self._checks(environ)(environ, start_response)
        return reply

    def _checks(self, environ: WSGIEnvironment) -> Healthcheck:
        """Return the checks; with ``?detailed`` the one of the Identity service, too."""
        thorough = "detailed" in parse_qs(environ.get("QUERY_STRING", ""), keep_blank_values=True)
        return self._thorough if thorough else self._check


def _identity_checks(conf: cfg.ConfigOpts) -> Sequence[Any]:
    """Return the check of the Identity service, if it validates tokens."""
    if conf.api.auth_strategy != "keystone":
        return ()
    from placement.middleware.keystone_check import KeystoneCheck  # of the extra "keystone"

    return (KeystoneCheck(conf),)


def _has_address(environ: WSGIEnvironment) -> bool:
    """Return whether the address can be compared with a range: proxies may list several, or one with its port."""
    try:
        ipaddress.ip_address(environ.get("REMOTE_ADDR", ""))
    except ValueError:
        return False
    return True


class _Check(Healthcheck):
    """The middleware with its options, ``[healthcheck]backends`` among them, and the check of the database always."""

    def __init__(self, application: WSGIApplication, service: Service, more: Sequence[Any] = ()) -> None:
        """Raises StartError."""
        try:
            super().__init__(application, service.conf)
        except cfg.Error:  # a ValueError, too
            raise
        except ValueError as error:
            raise StartError(f"[healthcheck]allowed_source_ranges: {error}") from None
        except ConfigInvalid:
            raise StartError("[healthcheck]backends: disable_by_file and enable_by_files exclude each other") from None
        first = [SimpleNamespace(obj=check) for check in (DatabaseCheck(service.database), *more)]
        self._backends: Any = [*first, *self._backends]


#: Whether the tables exist that only this service has; "placement-manage db release" removes them.
_TABLES_EXIST = sa.select(*(sa.exists().select_from(table) for table in tables.OURS))


class DatabaseCheck:
    """Checks that the database answers, and has the tables of this service.

    The check has its own connection and a timeout of seconds.  Concurrent checks take turns; while the database hangs,
    each of them waits for its turn and for the timeout.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def healthcheck(self, _server_port: int) -> HealthcheckResult:
        """Return the result; the text of the driver, which may name hosts and users, is in the details."""
        try:
            self._database.probe(lambda db: db.execute(_TABLES_EXIST).all())
        except (errors.TablesMissing, errors.DatabaseRefuses) as failure:
            return HealthcheckResult(False, str(failure), driver_errors.cause_of(failure))
        except errors.Unavailable as failure:
            return HealthcheckResult(False, "The database cannot be reached.", driver_errors.cause_of(failure))
        except sa.exc.SQLAlchemyError as error:
            return HealthcheckResult(False, "The database answers with an error.", driver_errors.message(error))
        return HealthcheckResult(True, "OK")
