"""Ways to negotiate a version."""

from __future__ import annotations

from dataclasses import dataclass
from wsgiref.types import WSGIEnvironment

from placement.http.api import Headers
from placement.version_history import OLDEST, History, Version

_HEADER = "openstack-api-version"


@dataclass(frozen=True, slots=True)
class Microversions:
    """Microversions: ``OpenStack-API-Version: <service type> X.Y`` (docs: api-microversions).

    Args:
        history: The versions.
    """

    history: History

    def negotiate(self, environ: WSGIEnvironment) -> Version:
        """Return the version that the header asks for; the oldest one if there is none.  Raises a Failure."""
        return self.history.negotiate(environ.get("HTTP_OPENSTACK_API_VERSION"))

    def headers(self, version: Version) -> Headers:
        """Return the version, and that caches have to distinguish replies by it."""
        return (_HEADER, f"{self.history.service_type} {version}"), ("vary", _HEADER)


class Unversioned:
    """No versions: headers that ask for one are for other APIs."""

    def negotiate(self, _environ: WSGIEnvironment) -> Version:
        """Return the one version that there is."""
        return OLDEST

    def headers(self, _version: Version) -> Headers:
        """Return none."""
        return ()
