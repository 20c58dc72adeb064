"""Password checks against a file written by ``htpasswd -B``."""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import time
from dataclasses import dataclass, field
from typing import IO

import bcrypt

#: Seconds for which a verified password is remembered after its last use.
REMEMBER_SECONDS = 300.0
#: Maximum number of bytes of a password that bcrypt reads.
_MAX_PASSWORD_BYTES = 72
#: A bcrypt digest: costs are 4 to 31, and the last character of a salt has no bits beyond the 128th.
_DIGEST = re.compile(r"\$2[aby]\$(0[4-9]|[12]\d|3[01])\$[./A-Za-z0-9]{21}[.Oeu][./A-Za-z0-9]{31}")
#: The cost for unknown names if the file is empty: the default of bcrypt; ``htpasswd -B`` uses 5.
_DEFAULT_COST = 12
#: Inode, size in bytes, and modification time in nanoseconds.
Signature = tuple[int, int, int]


class BadFile(Exception):
    """The file contains something other than names with bcrypt digests."""


@dataclass(frozen=True, slots=True)
class _Contents:
    """The contents of one version of the file, and the passwords verified against it."""

    signature: Signature
    #: bcrypt digests by name.
    digests: dict[str, bytes]
    #: The highest cost of a digest.
    cost: int
    #: The keyed hash of a verified password and its expiry (monotonic clock), by name.
    verified: dict[str, tuple[bytes, float]] = field(default_factory=dict)


class Passwords:
    """A checker of passwords against a file; thread-safe.

    A changed file takes effect immediately: each check compares inode, size and modification time.  bcrypt is slow on
    purpose, so a verified password is remembered for some minutes, as a hash keyed with a secret of this process, and
    forgotten when the file changes.
    """

    def __init__(self, path: str) -> None:
        """Read the file.

        Raises:
            OSError: The file cannot be read.
            BadFile: The file contains entries other than bcrypt digests.
        """
        self._path = path
        self._key = os.urandom(32)
        with open(path, "rb") as file:
            self._contents = _read(file, strict=True)

    def remembers(self, name: str, password: bytes) -> bool:
        """Whether the password is remembered as verified; takes microseconds.

        Raises:
            OSError, BadFile: As for ``verify``.
        """
        contents = self._current_contents()
        digest, expiry = contents.verified.get(name, (b"", 0.0))
        hashed = self._hash(password)
        if not hmac.compare_digest(digest, hashed) or expiry < time.monotonic():
            return False
        contents.verified[name] = hashed, time.monotonic() + REMEMBER_SECONDS
        return True

    def verify(self, name: str, password: bytes) -> bool:
        """Whether the file contains this password for the name.

        A wrong password takes the time of the highest cost in the file, even for an unknown name, so that response
        times reveal no names.  Only passwords that bcrypt would truncate are refused at once, for every name.

        Raises:
            OSError: The file cannot be read.
            BadFile: The file is not UTF-8.  Entries other than bcrypt digests are skipped.
        """
        contents = self._current_contents()
        if len(password) > _MAX_PASSWORD_BYTES or b"\0" in password:
            return False  # bcrypt would truncate it
        digest = contents.digests.get(name)
        if digest is None:
            bcrypt.checkpw(password, _decoy(contents.cost))
            return False
        if bcrypt.checkpw(password, digest):
            contents.verified[name] = self._hash(password), time.monotonic() + REMEMBER_SECONDS
            return True
        # Each cost takes twice the time of the next lower one, so these checks add up to one of the highest cost.
        for cost in range(_cost(digest), contents.cost):
            bcrypt.checkpw(password, _decoy(cost))
        return False

    def _current_contents(self) -> _Contents:
        contents = self._contents
        with open(self._path, "rb") as file:
            if _signature(file) != contents.signature:
                contents = self._contents = _read(file)
        return contents

    def _hash(self, password: bytes) -> bytes:
        return hashlib.blake2b(password, key=self._key).digest()


def _read(file: IO[bytes], *, strict: bool = False) -> _Contents:
    """Return the contents of the file; skip entries other than bcrypt, or raise BadFile for them if ``strict``."""
    signature = _signature(file)
    try:
        lines = [line.strip() for line in file.read().decode().splitlines()]
    except UnicodeDecodeError as error:
        raise BadFile(f"is not UTF-8: {error.reason} at byte {error.start}") from None
    digests: dict[str, bytes] = {}
    for line in lines:
        name, colon, digest = line.partition(":")
        if not colon or line.startswith("#"):
            continue
        if _DIGEST.fullmatch(digest):
            digests.setdefault(name, digest.encode())
        elif strict:
            raise BadFile(f"has no bcrypt digest for {name!r}: htpasswd needs -B")
    return _Contents(signature, digests, max(map(_cost, digests.values()), default=_DEFAULT_COST))


def _signature(file: IO[bytes]) -> Signature:
    status = os.fstat(file.fileno())
    return status.st_ino, status.st_size, status.st_mtime_ns


def _cost(digest: bytes) -> int:
    return int(digest[4:6])


def _decoy(cost: int) -> bytes:
    """Return a digest of the given cost that matches no password."""
    return bcrypt.gensalt(cost) + b"." * 31
