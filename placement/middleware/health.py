"""Tells load balancers whether this process can serve: /healthcheck of oslo.middleware, with a look at the database."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Sequence
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qs
from wsgiref.types import StartResponse, WSGIEnvironment

import sqlalchemy as sa
from oslo_config import cfg
from oslo_middleware.exceptions import ConfigInvalid
from oslo_middleware.healthcheck import Healthcheck
from oslo_middleware.healthcheck.pluginbase import HealthcheckResult

from placement import errors
from placement.db import driver_errors, tables
from placement.db.database import Database
from placement.errors import StartError
from placement.http.service import Service

PATH = "/healthcheck"


class Health:
    """Answers on one path, without authentication: 200, or 503 with the reason."""

    def __init__(self, application: Any, service: Service) -> None:
        self.application = application
        self._check = _Check(application, service)
        self._thorough = _Check(application, service, _identity_checks(service.conf))
        self._for_all = not service.conf.healthcheck.allowed_source_ranges

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """What the checks say; elsewhere the answer of the application."""
        asks_us = environ["PATH_INFO"] == PATH and (self._for_all or _has_address(environ))
        answer: Iterable[bytes] = (self._checks(environ) if asks_us else self.application)(environ, start_response)
        return answer

    def _checks(self, environ: WSGIEnvironment) -> Healthcheck:
        """Those that tell whether to send requests here; with ``?detailed`` also that of the Identity service."""
        thorough = "detailed" in parse_qs(environ.get("QUERY_STRING", ""), keep_blank_values=True)
        return self._thorough if thorough else self._check


def _identity_checks(conf: cfg.ConfigOpts) -> Sequence[Any]:
    """The check of the Identity service, if it validates tokens."""
    if conf.api.auth_strategy != "keystone":
        return ()
    from placement.middleware.keystone_check import KeystoneCheck  # of the extra "keystone"

    return (KeystoneCheck(conf),)


def _has_address(environ: WSGIEnvironment) -> bool:
    """Whether it can be told if the client is in a range: proxies name several, or one with its port."""
    try:
        ipaddress.ip_address(environ.get("REMOTE_ADDR", ""))
    except ValueError:
        return False
    return True


class _Check(Healthcheck):
    """The middleware with its options, ``[healthcheck]backends`` among them, and the check of the database always."""

    def __init__(self, application: Any, service: Service, more: Sequence[Any] = ()) -> None:
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


#: Whether the tables are there that only this service has: "placement-manage db release" takes them away.
_QUESTION = sa.select(*(sa.exists().select_from(table) for table in tables.OURS))


class DatabaseCheck:
    """Whether the database answers, and has the tables of this service.

    The check has a connection of its own and seconds to use it.  Concurrent checks take turns at it: where the database
    hangs they wait as long, and then say so.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def healthcheck(self, _server_port: int) -> HealthcheckResult:
        """What there is to say; the driver's own words, which may name hosts and users, are details."""
        try:
            self._database.probe(lambda db: db.execute(_QUESTION).all())
        except (errors.TablesMissing, errors.DatabaseRefuses) as failure:
            return HealthcheckResult(False, str(failure), driver_errors.cause_of(failure))
        except errors.Unavailable as failure:
            return HealthcheckResult(False, "The database cannot be reached.", driver_errors.cause_of(failure))
        except sa.exc.SQLAlchemyError as error:
            return HealthcheckResult(False, "The database answers with an error.", driver_errors.message(error))
        return HealthcheckResult(True, "OK")
