"""Declaration of the extension ``terminal``: a hint in the greeting of ``placement-serve``."""

from __future__ import annotations

from oslo_config import cfg

from placement import package
from placement.extension import Extension

_ASK = """\
In another terminal, in this directory, try:

  {command} overview

"""


def _greeting(_conf: cfg.ConfigOpts, _url: str) -> str:
    return _ASK.format(command=package.command("placement-ask")) if package.ADDRESS_FILE.exists() else ""


EXTENSION = Extension(name="terminal", requires=("v1",), greeting=_greeting)
