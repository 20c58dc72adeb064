"""/console/assets"""

from __future__ import annotations

import hashlib
from importlib import resources
from typing import NamedTuple

from placement.http.endpoint import endpoint
from placement.http.failures import NoSuchRoute
from placement.http.request import Request
from placement.http.response import Reply, page

_TYPES = {"css": "text/css; charset=UTF-8", "js": "text/javascript; charset=UTF-8", "svg": "image/svg+xml"}


class Asset(NamedTuple):
    """A static file of the console."""

    content_type: str
    content: bytes
    etag: str


def _read() -> dict[str, Asset]:
    """Return the assets in the package, by file name."""
    assets = {}
    for file in resources.files("placement.extensions.console").joinpath("assets").iterdir():
        content = file.read_bytes()
        assets[file.name] = Asset(
            _TYPES[file.name.rpartition(".")[2]], content, hashlib.sha256(content).hexdigest()[:32]
        )
    return assets


#: All assets by file name, read once since they are small.
ASSETS = _read()


@endpoint(negotiates=False)
def show(_req: Request, name: str) -> Reply:
    """Return a file.  Browsers revalidate it each time, and receive 304 unless it has changed."""
    asset = ASSETS.get(name)
    if asset is None:
        raise NoSuchRoute()
    reply = page(asset.content, asset.content_type)
    reply.headers["cache-control"] = "no-cache"
    reply.etag = asset.etag
    reply.conditional_response = True
    return reply
