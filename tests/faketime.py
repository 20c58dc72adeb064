"""Clocks of processes, set by a test with libfaketime."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tests.servers import Missing

#: Environment variables: the file with the clock, and whether Python's monotonic clock follows it.
FILE, INTERVALS = "FAKETIME_TIMESTAMP_FILE", "PLACEMENT_MOVED_INTERVALS"


def library() -> Path:
    """Return the path of libfaketime; raise Missing if it is not installed."""
    paths = [
        *Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"),
        *Path("/usr/lib").glob("faketime/libfaketimeMT.so.1"),
    ]
    if not paths:
        raise Missing("libfaketime is not installed: `make servers` installs it")
    return paths[0]


class Clock:
    """A clock that differs from this process's by some seconds; all processes that follow it read its file."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self.set(0)

    def set(self, seconds: int) -> None:
        """Set the difference of the clock in seconds; positive: it is ahead."""
        replacement = self._file.with_name(f"{self._file.name}.next")
        replacement.write_text(f"{seconds:+d}\n")
        replacement.chmod(0o644)  # databases run as other users
        replacement.replace(self._file)  # no process reads a partial file

    def environment(self, *, intervals: bool = False) -> Mapping[str, str]:
        """Return the environment of a process that follows the clock; raise Missing if libfaketime is not installed.

        Args:
            intervals: Whether the monotonic clock of the service follows, too (jepsen/moved_clock.py), as if hours
                passed; otherwise only the time of day jumps.  If libfaketime moved the monotonic clock, Python would
                wait for these hours in some functions.
        """
        interval_variables = {INTERVALS: "1"} if intervals else {}
        return interval_variables | {
            "LD_PRELOAD": str(library()),
            FILE: str(self._file),
            "FAKETIME_NO_CACHE": "1",
            "NO_FAKE_STAT": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }
