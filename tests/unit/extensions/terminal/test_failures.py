"""Reports of connection failures that a test can cause without the network."""

from __future__ import annotations

import socket
import urllib.error

from placement.extensions.terminal import failures
from placement.extensions.terminal.address import ServiceAddress


def test_an_unknown_host_is_reported():
    unknown = urllib.error.URLError(socket.gaierror(socket.EAI_NONAME, "Name or service not known"))
    sentence = failures.no_reply(ServiceAddress("http://nothing.invalid", {}), unknown)
    assert sentence == "http://nothing.invalid cannot be reached: the host does not exist (Name or service not known)."
