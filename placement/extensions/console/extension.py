"""What the console adds to the service."""

from __future__ import annotations

from oslo_config import cfg

from placement.extension import Extension
from placement.http.api import Api

_OPTIONS = [
    cfg.BoolOpt(
        "enabled",
        default=False,
        help="Offer the console below /console: pages for people, which only read. They need what the API needs. A "
        "browser that asks for / is redirected there.",
    ),
]

_SEE_IT = """\
The console, for a browser, is at {url}/console/

"""


def _api() -> Api:
    from placement.extensions.console.api import CONSOLE

    return CONSOLE


def _greeting(conf: cfg.ConfigOpts, url: str) -> str:
    return _SEE_IT.format(url=url) if conf.console.enabled else ""


EXTENSION = Extension(
    name="console", requires=("doctor", "v1"), options={"console": _OPTIONS}, api=_api, greeting=_greeting
)
