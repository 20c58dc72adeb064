"""placement-serve that does its maintenance after each write: a test need not wait a minute for it."""

from __future__ import annotations

import sys

from placement.cmd import serve
from placement.db import feed

if __name__ == "__main__":
    feed._MAINTENANCE_INTERVAL = 0.0
    sys.exit(serve.main())
