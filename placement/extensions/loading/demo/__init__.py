"""A small believable cloud to click through, for ``placement-serve --demo``: ``make demo`` (docs: commands).

The providers are those of ``cloud.yaml``; consumers and machines are made by requests, as clients make them.  They have
a day behind them, with events and samples of the usage.  It is the same at each start, but for the date and the uuids.

    service   requests to the application
    tenants   consumers that come, move and go
    day       what happens when
    past      moves the dates of what was written into the past day
"""

from __future__ import annotations

import logging
from importlib import resources
from wsgiref.types import WSGIApplication

from placement.db.database import Database
from placement.extensions.loading.demo import day
from placement.extensions.loading.demo.past import PastDay
from placement.extensions.loading.demo.service import DemoClient
from placement.extensions.loading.description import described
from placement.extensions.loading.writing import load
from placement.extensions.loading.yaml_source import YamlSource


def fill(database: Database, application: WSGIApplication) -> None:
    """Make the cloud in an empty database, of which the application is the service, with noauth2."""
    past = PastDay(database)
    load(database, described(YamlSource(resources.files(__name__).joinpath("cloud.yaml").read_text(encoding="utf-8"))))
    logging.disable(logging.INFO)  # a line for each of a thousand requests
    try:
        for hour, act in day.plan(DemoClient(application)):
            past.advance(hour)
            act()
        past.advance(day.HOURS)
    finally:
        logging.disable(logging.NOTSET)
