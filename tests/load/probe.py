"""The service with a page more, /probe, that says which process answers and whose connections and writer it used.

What uWSGI imports, and mod_wsgi runs, in place of placement.wsgi.api.
"""

from __future__ import annotations

import json
import os
from typing import Any

import sqlalchemy as sa
from oslo_config import cfg

from placement import conf as options
from placement import deploy
from placement.db import engine, feed
from placement.db.engine import Database

#: Which process opened a connection.
_OPENED: dict[int, tuple[Any, int]] = {}


def _opened(connection: Any, _record: Any) -> None:
    _OPENED[id(connection)] = (connection, os.getpid())


def _made_here(connection: Any) -> bool:
    driver = connection.connection.driver_connection
    return _OPENED[id(driver)][1] == os.getpid()


class Probe:
    """The application, and the page."""

    def __init__(self, application: Any, database: Database) -> None:
        self._application, self._database = application, database

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Any:
        if environ["PATH_INFO"] != "/probe":
            return self._application(environ, start_response)
        start_response("200 OK", [("content-type", "application/json")])
        return [json.dumps(self._look()).encode()]

    def _look(self) -> dict[str, Any]:
        database, made = self._database, {}

        def write(db: Any) -> None:
            db.changed(os.getpid(), feed.SHAPE)
            made["writing"] = _made_here(db._connection)

        def read(db: Any) -> None:
            made["reading"] = _made_here(db)

        database.write(write)
        database.read(read)
        return {"process": os.getpid(), **made}


def _application() -> Probe:
    conf: cfg.ConfigOpts = options.load()
    database = engine.connect(conf)
    for one in {database.engine, database.reading_engine}:
        sa.event.listen(one, "connect", _opened)
    return Probe(deploy.loadapp(conf, database), database)


application = _application()
