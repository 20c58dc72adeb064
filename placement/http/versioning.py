"""Ways to negotiate a version."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from wsgiref.types import WSGIEnvironment

from placement.http.api import Headers
from placement.version_history import OLDEST, Version

_HEADER = "openstack-api-version"


@dataclass(frozen=True, slots=True)
class Microversions:
    """Microversions: ``OpenStack-API-Version: <service type> X.Y`` (docs: api-microversions).

    Args:
        service_type: What entries of the header are for.
        choose: Returns the version for the value of the header; raises a Failure.
    """

    service_type: str
    choose: Callable[[str | None], Version]

    def negotiate(self, environ: WSGIEnvironment) -> Version:
        """Return the version that the header asks for; the oldest one if there is none."""
        return self.choose(environ.get("HTTP_OPENSTACK_API_VERSION"))

    def headers(self, version: Version) -> Headers:
        """Return the version, and that caches have to distinguish replies by it."""
        return (_HEADER, f"{self.service_type} {version}"), ("vary", _HEADER)


class Unversioned:
    """No versions: headers that ask for one are for other APIs."""

    def negotiate(self, _environ: WSGIEnvironment) -> Version:
        """Return the one version that there is."""
        return OLDEST

    def headers(self, _version: Version) -> Headers:
        """Return none."""
        return ()
