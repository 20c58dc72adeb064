"""The service with an additional page, /probe, which shows the responding process, its connections and its writer.

Each URL of [probe]databases has a service, below its index in that list.  uWSGI imports this module, and mod_wsgi runs
it, in place of placement.wsgi.api.
"""

from __future__ import annotations

import json
import os
import wsgiref.util
from typing import Any

import sqlalchemy as sa
from oslo_config import cfg

from placement import conf as options
from placement import deploy
from placement.db import feed
from placement.db.connect import connect
from placement.db.database import Database
from tests.patient import be_patient

#: By the id of a connection, the connection and the process that opened it.
_OPENERS: dict[int, tuple[Any, int]] = {}


def _record_connection(connection: Any, _record: Any) -> None:
    _OPENERS[id(connection)] = (connection, os.getpid())


def _opened_here(connection: Any) -> bool:
    driver = connection.connection.driver_connection
    return _OPENERS[id(driver)][1] == os.getpid()


class Probe:
    """The application with the page."""

    def __init__(self, application: Any, database: Database) -> None:
        self._application, self._database = application, database

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Any:
        if environ["PATH_INFO"] != "/probe":
            return self._application(environ, start_response)
        start_response("200 OK", [("content-type", "application/json")])
        return [json.dumps(self._read_and_write()).encode()]

    def _read_and_write(self) -> dict[str, Any]:
        database, opened_here = self._database, {}

        def write(db: Any) -> None:
            db.record_change(os.getpid(), feed.SHAPE)
            opened_here["writing"] = _opened_here(db._connection)

        def read(db: Any) -> None:
            opened_here["reading"] = _opened_here(db._connection)

        database.write(write)
        database.read(read)
        return {"process": os.getpid(), **opened_here}


def _probe(url: str) -> Probe:
    conf: cfg.ConfigOpts = options.load()
    conf.set_override("connection", url, group="placement_database")
    database = connect(conf)
    for engine in {database.engine, database.reading_engine}:
        sa.event.listen(engine, "connect", _record_connection)
    return Probe(deploy.loadapp(conf, database), database)


def _application() -> Any:
    """Return all services as one application, whose root responds, too."""
    be_patient()
    conf: cfg.ConfigOpts = options.load()
    conf.register_opt(cfg.ListOpt("databases"), group="probe")
    probes = [_probe(url) for url in conf.probe.databases]

    def answer(environ: dict[str, Any], start_response: Any) -> Any:
        if place := wsgiref.util.shift_path_info(environ):
            return probes[int(place)](environ, start_response)
        start_response("200 OK", [("content-type", "application/json")])
        return [b"{}"]

    return answer


application = _application()
