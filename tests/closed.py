"""An address at which nothing listens as long as this process runs: it has the port, and does not listen there."""

from __future__ import annotations

import socket

_holder = socket.socket()
_holder.bind(("127.0.0.1", 0))
PORT = _holder.getsockname()[1]
_holder.detach()  # open until the process ends
ADDRESS = f"127.0.0.1:{PORT}"
URL = f"http://{ADDRESS}"
