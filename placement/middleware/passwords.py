"""Names and passwords of a file that ``htpasswd -B`` writes."""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import time
from dataclasses import dataclass, field
from typing import IO

import bcrypt

#: Seconds that a right password is remembered after its last use.
REMEMBERED = 300.0
#: Bytes of a password that bcrypt reads.
_LONGEST = 72
#: bcrypt accepts costs from 4 to 31, and no salt whose last character has bits beyond the 128th.
_DIGEST = re.compile(r"\$2[aby]\$(0[4-9]|[12]\d|3[01])\$[./A-Za-z0-9]{21}[.Oeu][./A-Za-z0-9]{31}")
#: The cost of the check of an unknown name if the file is empty; ``htpasswd -B`` uses 5 and bcrypt 12.
_USUAL_COST = 12
Signature = tuple[int, int, int]


class BadFile(Exception):
    """The file holds something else than names and bcrypt digests."""


@dataclass(frozen=True, slots=True)
class _Contents:
    """A file as it was read: its digests by name, and the passwords that were right since."""

    signature: Signature
    digests: dict[str, bytes]
    cost: int
    #: For each name a keyed hash of the password, and when it is forgotten.
    right: dict[str, tuple[bytes, float]] = field(default_factory=dict)


class Passwords:
    """Checks passwords against a file.  Threads share it.

    A changed file takes effect at once: each check compares its inode, size and time of change.  bcrypt is slow on
    purpose, so a right password is remembered for some minutes, as a hash under a key of this process, and forgotten
    when the file changes.
    """

    def __init__(self, path: str) -> None:
        """Raises OSError if the file cannot be read, and BadFile."""
        self._path = path
        self._key = os.urandom(32)
        with open(path, "rb") as opened:
            self._contents = _read(opened, strict=True)

    def remembers(self, name: str, password: bytes) -> bool:
        """Return whether the password was right some minutes ago; this takes microseconds.

        Raises OSError if the file cannot be read, and BadFile.
        """
        contents = self._current()
        digest, until = contents.right.get(name, (b"", 0.0))
        hashed = self._hashed(password)
        if not hmac.compare_digest(digest, hashed) or until < time.monotonic():
            return False
        contents.right[name] = hashed, time.monotonic() + REMEMBERED
        return True

    def are_right(self, name: str, password: bytes) -> bool:
        """Return whether the file has this password for the name.

        Every wrong password takes the same time, whether the file has the name or not: that of the highest cost in the
        file.  Raises OSError if the file cannot be read, and BadFile.
        """
        contents = self._current()
        if len(password) > _LONGEST or b"\0" in password:
            return False  # bcrypt would cut it
        digest = contents.digests.get(name)
        if digest is None:
            bcrypt.checkpw(password, _decoy(contents.cost))
            return False
        if bcrypt.checkpw(password, digest):
            contents.right[name] = self._hashed(password), time.monotonic() + REMEMBERED
            return True
        # Each cost takes twice the time of the one below, so these checks add up to one of the highest cost.
        for cost in range(_cost(digest), contents.cost):
            bcrypt.checkpw(password, _decoy(cost))
        return False

    def _current(self) -> _Contents:
        contents = self._contents
        with open(self._path, "rb") as opened:
            if _signature(opened) != contents.signature:
                contents = self._contents = _read(opened)
        return contents

    def _hashed(self, password: bytes) -> bytes:
        return hashlib.blake2b(password, key=self._key).digest()


def _read(opened: IO[bytes], *, strict: bool = False) -> _Contents:
    """Return the contents of the file; entries other than bcrypt raise BadFile if ``strict``, and are else left out."""
    signature = _signature(opened)
    try:
        lines = [line.strip() for line in opened.read().decode().splitlines()]
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
    return _Contents(signature, digests, max(map(_cost, digests.values()), default=_USUAL_COST))


def _signature(opened: IO[bytes]) -> Signature:
    status = os.fstat(opened.fileno())
    return status.st_ino, status.st_size, status.st_mtime_ns


def _cost(digest: bytes) -> int:
    return int(digest[4:6])


def _decoy(cost: int) -> bytes:
    """Return a digest of the given cost that no password has."""
    return bcrypt.gensalt(cost) + b"." * 31
