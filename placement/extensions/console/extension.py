"""Options, routes and greeting that the console adds to the service."""

from __future__ import annotations

from oslo_config import cfg

from placement.extension import Extension
from placement.http.api import Api

_OPTIONS = [
    cfg.BoolOpt(
        "enabled",
        default=False,
        help="Serve the console below /console: read-only web pages that require the same credentials as the API. "
        "Browsers are redirected there from /.",
    ),
]

_GREETING = """\
Open the console in a browser: {url}/console/

"""


def _api() -> Api:
    from placement.extensions.console.api import CONSOLE

    return CONSOLE


def _greeting(conf: cfg.ConfigOpts, url: str) -> str:
    return _GREETING.format(url=url) if conf.console.enabled else ""


EXTENSION = Extension(
    name="console", requires=("doctor", "v1"), options={"console": _OPTIONS}, api=_api, greeting=_greeting
)
