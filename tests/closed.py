"""An address without a listener while this process runs: it binds the port, and does not listen."""

from __future__ import annotations

import socket

_holder = socket.socket()
_holder.bind(("127.0.0.1", 0))
PORT = _holder.getsockname()[1]
_holder.detach()  # open until the process ends
ADDRESS = f"127.0.0.1:{PORT}"
URL = f"http://{ADDRESS}"
