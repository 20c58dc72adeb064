"""Whether the Identity service knows this service: for the start, /healthcheck?detailed and the upgrade check."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass

import requests
from keystoneauth1 import adapter, exceptions, loading
from keystonemiddleware.opts import list_auth_token_opts
from oslo_config import cfg
from oslo_middleware.healthcheck.pluginbase import HealthcheckResult

SECTION = "keystone_authtoken"
#: Seconds until a request to the Identity service is given up, and how long a finding is kept for the next who ask.
_PATIENCE = 5.0
_KEPT = 30.0


@dataclass(frozen=True, slots=True)
class Complaint:
    """Why no token can be validated: a sentence for all, and what an operator may read besides."""

    sentence: str
    details: str
    #: Whether waiting helps.
    passing: bool = False

    def __str__(self) -> str:
        return f"[{SECTION}]: {self.sentence} ({self.details})"


def is_configured(conf: cfg.ConfigOpts) -> bool:
    """Whether the configuration says how to reach the Identity service; a service that has none does not start."""
    for group, options in list_auth_token_opts():
        conf.register_opts(options, group=group)
    return bool(conf[SECTION].auth_type or conf[SECTION].auth_section)


def complaint(conf: cfg.ConfigOpts) -> Complaint | None:
    """Ask for a token as the service's own user, by a connection of its own; None if tokens can be validated."""
    if not is_configured(conf):
        return Complaint("The Identity service cannot be asked.", "auth_type is missing")
    try:
        endpoint = _endpoint(conf)
    except exceptions.CatalogException as error:
        return Complaint("The Identity service is not in its own catalog.", str(error))
    except (exceptions.ConnectionError, exceptions.DiscoveryFailure) as error:
        return Complaint("The Identity service does not answer.", str(error), passing=True)
    except (exceptions.Unauthorized, exceptions.Forbidden) as error:
        user = _user(conf)
        return Complaint(f"The Identity service refuses the service's own user{user}.", str(error))
    except exceptions.HttpServerError as error:
        return Complaint("The Identity service answers with an error.", str(error), passing=True)
    except exceptions.ClientException as error:
        return Complaint("The Identity service cannot be asked.", str(error))
    if endpoint is None:
        where = f"region {conf[SECTION].region_name}, interface {conf[SECTION].interface}"
        return Complaint("The Identity service is not in its own catalog.", where)
    return None


def _endpoint(conf: cfg.ConfigOpts) -> str | None:
    """Where tokens are validated; None if the catalog does not tell.  Raises ClientException."""
    options = conf[SECTION]
    auth = loading.load_auth_from_conf_options(conf, SECTION)
    with requests.Session() as http:
        session = loading.session.Session().load_from_options(
            cert=options.certfile,
            key=options.keyfile,
            cacert=options.cafile,
            insecure=options.insecure,
            timeout=min(options.http_connect_timeout or _PATIENCE, _PATIENCE),
            session=http,
        )
        found: str | None = adapter.Adapter(
            session,
            auth=auth,
            service_type="identity",
            interface=options.interface,
            region_name=options.region_name,
        ).get_endpoint()
    return found


def _user(conf: cfg.ConfigOpts) -> str:
    """The name of the service's own user, in the words of a sentence; empty if it has none."""
    group = conf[conf[SECTION].auth_section or SECTION]
    name = getattr(group, "username", None)
    return f" {name!r}" if name else ""


class KeystoneCheck:
    """A check of /healthcheck.  The Identity service is asked at most twice a minute, however often clients ask."""

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        self._conf = conf
        self._lock = threading.Lock()
        self._kept_until = 0.0
        self._found: Complaint | None = None

    def healthcheck(self, _server_port: int) -> HealthcheckResult:
        """What there is to say; while another thread asks, what was found before."""
        if self._kept_until < time.monotonic() and self._lock.acquire(blocking=False):
            try:
                self._found = complaint(self._conf)
                self._kept_until = time.monotonic() + _KEPT
            finally:
                self._lock.release()
        if self._found:
            return HealthcheckResult(False, self._found.sentence, self._found.details)
        return HealthcheckResult(True, "OK")
