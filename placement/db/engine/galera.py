"""Sessions on a node of a Galera cluster."""

from __future__ import annotations

from typing import Any


def wait_for_other_nodes(cursor: Any, statements: int) -> None:
    """Have a Galera node apply what others have committed before it runs statements of these kinds (ADR 41).

    Other servers may lack the variable.
    """
    cursor.execute("SHOW VARIABLES LIKE 'wsrep_on'")
    found = cursor.fetchone()
    if found and found[1] == "ON":
        cursor.execute(f"SET SESSION wsrep_sync_wait = {statements}")
