"""The file of a SQLite database, which no other user of the machine can read."""

from __future__ import annotations

import contextlib
import os

import sqlalchemy as sa

_MODE = 0o600


def create_private(url: sa.URL) -> None:
    """Create the file, empty, with mode 0600, if it does not exist; its journals inherit the mode.

    An existing file keeps its mode.  If the file cannot be created, opening the database reports why.
    """
    path = url.database or ""
    if url.get_backend_name() != "sqlite" or path in ("", ":memory:") or path.startswith("file:"):
        return
    with contextlib.suppress(OSError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, _MODE))
