"""The versions of an API, and the choice of one by a request."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from placement import errors

_NUMBERS = re.compile(r"\A\s*([0-9]{1,9})\s*\.\s*([0-9]{1,9})\s*\Z")


class Version(NamedTuple):
    """A microversion; versions are ordered by their two numbers."""

    major: int
    minor: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"


#: Before the first version of every API: the default where a declaration names no version.
OLDEST = Version(0, 0)


class Change(NamedTuple):
    """A version with a sentence for the authors of clients: what it changed."""

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
        """The oldest version, which a request without a header uses."""
        return next(iter(self._changes))

    @property
    def latest(self) -> Version:
        """The newest version."""
        return next(reversed(self._changes))

    def negotiate(self, header: str | None) -> Version:
        """Return the version that a value of ``OpenStack-API-Version`` asks for (docs: api-microversions).

        The last entry for this API counts; entries for other APIs are ignored.

        Raises:
            MalformedVersion: The entry is no version.
            UnacceptableVersion: The API does not have this version.
        """
        wanted: str | None = None
        for entry in (header or "").split(","):
            service, _, number = entry.strip().partition(" ")
            if number and service.lower() == self.service_type:
                wanted = number.strip()
        if wanted is None:
            return self.minimum
        if wanted == "latest":
            return self.latest
        numbers = _NUMBERS.match(wanted)
        if numbers is None:
            raise errors.MalformedVersion(version=wanted)
        change = self._changes.get(Version(int(numbers[1]), int(numbers[2])))
        if change is None:
            raise errors.UnacceptableVersion(version=wanted)
        return change.version
