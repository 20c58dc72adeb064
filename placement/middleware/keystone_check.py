"""Checks that the Identity service can validate tokens: at start, for /healthcheck?detailed and the upgrade check."""

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
#: Seconds until a request to the Identity service is given up, and how long the result of a check is reused.
_TIMEOUT = 5.0
_REUSED = 30.0


@dataclass(frozen=True, slots=True)
class IdentityFinding:
    """Why no token can be validated: a sentence for clients of /healthcheck, and details for the operator."""

    sentence: str
    details: str
    #: Whether it may pass by itself.
    transient: bool = False

    def __str__(self) -> str:
        return f"[{SECTION}]: {self.sentence} ({self.details})"


def is_configured(conf: cfg.ConfigOpts) -> bool:
    """Return whether the configuration states how to reach the Identity service; the start needs it."""
    for group, options in list_auth_token_opts():
        conf.register_opts(options, group=group)
    return bool(conf[SECTION].auth_type or conf[SECTION].auth_section)


def find(conf: cfg.ConfigOpts) -> IdentityFinding | None:
    """Request a token as the service's own user, over a new connection; return None if tokens can be validated."""
    if not is_configured(conf):
        return IdentityFinding("The Identity service cannot be asked.", "auth_type is missing")
    try:
        endpoint = _endpoint(conf)
    except exceptions.CatalogException as error:
        return IdentityFinding("The Identity service is not in its own catalog.", str(error))
    except (exceptions.ConnectionError, exceptions.DiscoveryFailure) as error:
        return IdentityFinding("The Identity service does not answer.", str(error), transient=True)
    except (exceptions.Unauthorized, exceptions.Forbidden) as error:
        user = _user(conf)
        return IdentityFinding(f"The Identity service refuses the service's own user{user}.", str(error))
    except exceptions.HttpServerError as error:
        return IdentityFinding("The Identity service answers with an error.", str(error), transient=True)
    except (exceptions.ClientException, OSError, ValueError) as error:
        # The last two are of certificates that cannot be read, and of malformed URLs.
        return IdentityFinding("The Identity service cannot be asked.", str(error))
    if endpoint is None:
        where = f"region {conf[SECTION].region_name}, interface {conf[SECTION].interface}"
        return IdentityFinding("The Identity service is not in its own catalog.", where)
    return None


def _endpoint(conf: cfg.ConfigOpts) -> str | None:
    """Return the URL that validates tokens; None if the catalog lacks it.  Raises ClientException."""
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
        found: str | None = adapter.Adapter(
            session,
            auth=auth,
            service_type="identity",
            interface=options.interface,
            region_name=options.region_name,
        ).get_endpoint()
    return found


def _user(conf: cfg.ConfigOpts) -> str:
    """Return the name of the service's own user, for a sentence; empty if the configuration has none."""
    group = conf[conf[SECTION].auth_section or SECTION]
    name = getattr(group, "username", None)
    return f" {name!r}" if name else ""


class KeystoneCheck:
    """A check of /healthcheck.  It asks the Identity service at most twice a minute, however often clients ask."""

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        self._conf = conf
        self._lock = threading.Lock()
        self._reused_until = 0.0
        self._finding: IdentityFinding | None = None

    def healthcheck(self, _server_port: int) -> HealthcheckResult:
        """Return the result; while another thread checks, that of the check before."""
        if self._reused_until < time.monotonic() and self._lock.acquire(blocking=False):
            try:
                self._finding = find(self._conf)
                self._reused_until = time.monotonic() + _REUSED
            finally:
                self._lock.release()
        if self._finding:
            return HealthcheckResult(False, self._finding.sentence, self._finding.details)
        return HealthcheckResult(True, "OK")
