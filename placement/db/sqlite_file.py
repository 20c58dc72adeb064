"""The file of a SQLite database: made so that no other user of the machine may read it."""

from __future__ import annotations

import contextlib
import os

import sqlalchemy as sa

_MODE = 0o600


def make_private(url: sa.URL) -> None:
    """Make the file, empty, if it is not there; its journals get the rights that it has.

    A file that is there keeps its rights.  Where the file cannot be made, opening the database says why.
    """
    path = url.database or ""
    if url.get_backend_name() != "sqlite" or path in ("", ":memory:") or path.startswith("file:"):
        return
    with contextlib.suppress(OSError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, _MODE))
