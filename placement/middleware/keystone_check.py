"""The check that the Identity service can validate tokens, for the start, /healthcheck?detailed and the doctor."""

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
#: Seconds until a request to the Identity service times out; seconds for which the result of a check is reused.
_TIMEOUT = 5.0
_REUSE_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class IdentityFinding:
    """The reason why no token can be validated."""

    #: The reason, for clients of /healthcheck.
    sentence: str
    #: Details for the operator.
    details: str
    #: Whether the cause may disappear without a change of the configuration.
    transient: bool = False

    def __str__(self) -> str:
        return f"[{SECTION}]: {self.sentence} ({self.details})"


def is_configured(conf: cfg.ConfigOpts) -> bool:
    """Whether the configuration specifies the authentication with the Identity service, which the start requires."""
    for group, options in list_auth_token_opts():
        conf.register_opts(options, group=group)
    return bool(conf[SECTION].auth_type or conf[SECTION].auth_section)


def find_problem(conf: cfg.ConfigOpts) -> IdentityFinding | None:
    """Request a token as the service's own user, over a new connection; return None if tokens can be validated."""
    if not is_configured(conf):
        return IdentityFinding("The Identity service cannot be queried.", "auth_type is missing")
    try:
        endpoint = _endpoint(conf)
    except exceptions.CatalogException as error:
        return IdentityFinding("The Identity service is not in its own catalog.", str(error))
    except (exceptions.ConnectionError, exceptions.DiscoveryFailure) as error:
        return IdentityFinding("The Identity service does not respond.", str(error), transient=True)
    except (exceptions.Unauthorized, exceptions.Forbidden) as error:
        user = _user(conf)
        return IdentityFinding(f"The Identity service refuses the service's own user{user}.", str(error))
    except exceptions.HttpServerError as error:
        return IdentityFinding("The Identity service responds with an error.", str(error), transient=True)
    except (exceptions.ClientException, OSError, ValueError) as error:
        # OSError: an unreadable certificate; ValueError: a malformed URL.
        return IdentityFinding("The Identity service cannot be queried.", str(error))
    if endpoint is None:
        where = f"region {conf[SECTION].region_name}, interface {conf[SECTION].interface}"
        return IdentityFinding("The Identity service is not in its own catalog.", where)
    return None


def _endpoint(conf: cfg.ConfigOpts) -> str | None:
    """Return the URL that validates tokens, or None if the catalog lacks it; exceptions are keystoneauth's."""
    options = conf[SECTION]
    auth = loading.load_auth_from_conf_options(conf, SECTION)
    with requests.Session() as http:
        session = loading.session.Session().load_from_options(
            cert=options.certfile,
            key=options.keyfile,
            cacert=options.cafile,
            insecure=options.insecure,
            timeout=min(options.http_connect_timeout or _TIMEOUT, _TIMEOUT),
            session=http,
        )
        endpoint: str | None = adapter.Adapter(
            session,
            auth=auth,
            service_type="identity",
            interface=options.interface,
            region_name=options.region_name,
        ).get_endpoint()
    return endpoint


def _user(conf: cfg.ConfigOpts) -> str:
    """Return the quoted name of the service's own user after a space; empty if it is not configured."""
    group = conf[conf[SECTION].auth_section or SECTION]
    name = getattr(group, "username", None)
    return f" {name!r}" if name else ""


class KeystoneCheck:
    """A check for /healthcheck that queries the Identity service at most twice a minute."""

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        self._conf = conf
        self._lock = threading.Lock()
        self._reused_until = 0.0
        self._finding: IdentityFinding | None = None

    def healthcheck(self, _server_port: int) -> HealthcheckResult:
        """Return the result; while another thread runs the check, the previous result."""
        if self._reused_until < time.monotonic() and self._lock.acquire(blocking=False):
            try:
                self._finding = find_problem(self._conf)
                self._reused_until = time.monotonic() + _REUSE_SECONDS
            finally:
                self._lock.release()
        if self._finding:
            return HealthcheckResult(False, self._finding.sentence, self._finding.details)
        return HealthcheckResult(True, "OK")
