"""Negotiation of the version by Ironic's header or the common header of OpenStack (docs: baremetal-versions)."""

from __future__ import annotations

import re
from wsgiref.types import WSGIEnvironment

from placement import errors
from placement.extensions.baremetal import versions
from placement.extensions.baremetal.versions import Version
from placement.http.api import Headers

_PREFIX = "x-openstack-ironic-api"
_RANGE = (
    (f"{_PREFIX}-minimum-version", str(versions.MINIMUM)),
    (f"{_PREFIX}-maximum-version", str(versions.LATEST)),
)
_NUMBERS = re.compile(r"([0-9]{1,9})\.([0-9]{1,9})")


class VersionUnreadable(errors.NotAcceptable):
    template = "Invalid value for X-OpenStack-Ironic-API-Version header"


class VersionUnknown(errors.NotAcceptable):
    """The version is not supported: clients read the range from the headers and retry."""

    template = (
        f"Version %(version)s was requested but is not supported by this service. "
        f"The supported version range is: [{versions.MINIMUM}, {versions.LATEST}]."
    )
    headers = _RANGE


class IronicVersions:
    """Versions from ``OpenStack-API-Version: baremetal 1.N``, or else ``X-OpenStack-Ironic-API-Version: 1.N``."""

    def negotiate(self, environ: WSGIEnvironment) -> Version:
        """Return the version in the headers; without one, the oldest version.

        Raises:
            VersionUnreadable: The header is not a version.
            VersionUnknown: The version is outside the supported range.
        """
        text = _common_version(environ.get("HTTP_OPENSTACK_API_VERSION", ""))
        text = text or environ.get("HTTP_X_OPENSTACK_IRONIC_API_VERSION", "").strip()
        if not text:
            return versions.MINIMUM
        if text.lower() == "latest":
            return versions.LATEST
        numbers = _NUMBERS.fullmatch(text)
        if numbers is None:
            raise VersionUnreadable()
        version = Version(int(numbers[1]), int(numbers[2]))
        if not versions.MINIMUM <= version <= versions.LATEST:
            raise VersionUnknown(version=version)
        return version

    def headers(self, version: Version) -> Headers:
        """Return headers with the range of versions and the version of the response; without Vary, as in Ironic."""
        return (*_RANGE, (f"{_PREFIX}-version", str(version)))


def _common_version(header: str) -> str:
    """Return the version in the last entry for this API; empty without one."""
    text = ""
    for entry in header.split(","):
        service, _, version = entry.strip().partition(" ")
        if service.lower() == versions.SERVICE_TYPE:
            text = version.strip()
    return text
