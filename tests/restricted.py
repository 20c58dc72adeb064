"""A command that runs another one under the restrictions of a systemd unit that work without systemd.

    python -m tests.restricted UNIT COMMAND...

These are its filter of system calls, with the groups printed by systemd-analyze, and MemoryDenyWriteExecute.  A call
refused by the filter kills the process (SIGSYS), whereas under the unit it fails: so no refusal goes unnoticed, except
the calls of ``IGNORED``.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import errno
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.servers import Missing

# seccomp.h of libseccomp, linux/prctl.h
_KILL_PROCESS, _FAIL, _ALLOW = 0x80000000, 0x00050000 | errno.EPERM, 0x7FFF0000
_PR_SET_MDWE, _PR_MDWE_REFUSE_EXEC_GAIN = 65, 1
#: OpenBLAS requests a placement of its buffers in memory, and continues without.
IGNORED = frozenset({"mbind"})


def settings(unit: Path) -> list[tuple[str, str]]:
    """Return the settings of a unit, in order; a name may occur several times."""
    pairs = (line.partition("=") for line in unit.read_text().splitlines() if not line.startswith("#"))
    return [(name, value) for name, sign, value in pairs if sign]


def check_possible() -> None:
    """Raise Missing if a process cannot restrict itself here."""
    if ctypes.util.find_library("seccomp") is None:
        raise Missing("libseccomp is not installed: `make servers` installs systemd, which needs it")
    if ctypes.CDLL(None).prctl(_PR_SET_MDWE + 1, 0, 0, 0, 0) < 0:
        raise Missing("the kernel lacks PR_SET_MDWE, which Linux 6.3 added")


def allowed_calls(unit: Path) -> set[str]:
    """Return the names of the system calls allowed by the unit."""
    groups = _groups()
    allowed: set[str] = set()
    for value in (value for name, value in settings(unit) if name == "SystemCallFilter"):
        names = set(_members(value.removeprefix("~").split(), groups))
        allowed = allowed - names if value.startswith("~") else allowed | names
    assert allowed, f"{unit} filters no system call"
    return allowed


def _groups() -> dict[str, list[str]]:
    text = subprocess.run(["systemd-analyze", "syscall-filter"], capture_output=True, text=True, check=True).stdout
    blocks = re.findall(r"^(@[\w-]+)\n((?:    .*\n?)+)", text, re.MULTILINE)
    return {name: [word for word in body.split("\n") if not word.strip().startswith("#")] for name, body in blocks}


def _members(names: Iterable[str], groups: dict[str, list[str]]) -> Iterator[str]:
    for name in map(str.strip, names):
        if name.startswith("@"):
            yield from _members(groups[name], groups)
        elif name:
            yield name


def restrict(unit: Path) -> None:
    """Restrict this process and its children."""
    seccomp = ctypes.CDLL(ctypes.util.find_library("seccomp"))
    seccomp.seccomp_init.restype = ctypes.c_void_p
    context = ctypes.c_void_p(seccomp.seccomp_init(ctypes.c_uint32(_KILL_PROCESS)))
    for name, action in {**dict.fromkeys(IGNORED, _FAIL), **dict.fromkeys(allowed_calls(unit), _ALLOW)}.items():
        number = seccomp.seccomp_syscall_resolve_name(name.encode())
        if number >= 0:  # otherwise this architecture lacks the call
            assert seccomp.seccomp_rule_add(context, ctypes.c_uint32(action), number, 0) == 0
    if ("MemoryDenyWriteExecute", "true") in settings(unit):
        assert ctypes.CDLL(None).prctl(_PR_SET_MDWE, _PR_MDWE_REFUSE_EXEC_GAIN, 0, 0, 0) == 0
    assert seccomp.seccomp_load(context) == 0


if __name__ == "__main__":
    restrict(Path(sys.argv[1]))
    os.execvp(sys.argv[2], sys.argv[2:])
