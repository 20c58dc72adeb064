"""The versions of an API, and the negotiation of the version of a request."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from placement import errors

_HEADER = "openstack-api-version"
_NUMBERS = re.compile(r"\A\s*([0-9]{1,9})\s*\.\s*([0-9]{1,9})\s*\Z")


class Version(NamedTuple):
    """A microversion, ordered by its two numbers."""

    major: int
    minor: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"


#: A version before the first one of every API; the default of declarations.
OLDEST = Version(0, 0)


class Change(NamedTuple):
    """A version, and its change in a sentence for authors of clients."""

    version: Version
    sentence: str


class History:
    """The changes of an API, oldest first.

    Attributes:
        service_type: The name of the API in the header ``OpenStack-API-Version``.
    """

    def __init__(self, service_type: str) -> None:
        self.service_type = service_type
        self._changes: dict[Version, Change] = {}

    def add(self, major: int, minor: int, sentence: str) -> Version:
        """Add the next version and return it."""
        version = Version(major, minor)
        if self._changes and version <= self.latest:
            raise ValueError(f"{version} does not come after {self.latest}")
        self._changes[version] = Change(version, sentence)
        return version

    def __iter__(self) -> Iterator[Change]:
        return iter(self._changes.values())

    @property
    def minimum(self) -> Version:
        """The oldest version, used by requests without a header."""
        return next(iter(self._changes))

    @property
    def latest(self) -> Version:
        """The newest version."""
        return next(reversed(self._changes))

    def by_name(self, name: str) -> Version:
        """Return the version with this name, such as ``1.7`` or ``latest``.

        Raises:
            MalformedVersion: The name is not a version.
            UnacceptableVersion: The API does not support the version.
        """
        if name == "latest":
            return self.latest
        numbers = _NUMBERS.match(name)
        if numbers is None:
            raise errors.MalformedVersion(version=name)
        change = self._changes.get(Version(int(numbers[1]), int(numbers[2])))
        if change is None:
            raise errors.UnacceptableVersion(version=name)
        return change.version

    # --- over HTTP ---

    def negotiate(self, environ: Mapping[str, Any]) -> Version:
        """Return the version that the header ``OpenStack-API-Version: <service type> X.Y`` requests.

        The last entry for this API counts; entries for other APIs are ignored.  Without a header, the oldest version
        applies (docs: api-microversions).

        Raises:
            MalformedVersion, UnacceptableVersion: As for ``by_name``.
        """
        requested = ""
        for entry in (environ.get("HTTP_OPENSTACK_API_VERSION") or "").split(","):
            service, _, name = entry.strip().partition(" ")
            if name and service.lower() == self.service_type:
                requested = name.strip()
        return self.by_name(requested) if requested else self.minimum

    def headers(self, version: Version) -> Sequence[tuple[str, str]]:
        """Return the headers of a response: its version, and ``vary`` for caches."""
        return (_HEADER, f"{self.service_type} {version}"), ("vary", _HEADER)


class Unversioned:
    """The versioning of an API without versions; the header is ignored, because it is for other APIs."""

    def negotiate(self, _environ: Mapping[str, Any]) -> Version:
        """Return the only version."""
        return OLDEST

    def headers(self, _version: Version) -> Sequence[tuple[str, str]]:
        """Return no headers."""
        return ()
