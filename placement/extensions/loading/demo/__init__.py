"""A small, realistic cloud to explore, for ``placement-serve --demo`` and ``make demo`` (docs: commands).

``cloud.yaml`` describes the providers; requests create the consumers and machines.  The history covers the past day.
The cloud is the same at each start, except for dates and uuids.

    service   requests to the application
    tenants   consumers, which are claimed, moved and released
    day       the schedule of the past day
    past      backdating of new rows into the past day
"""

from __future__ import annotations

import logging
from importlib import resources
from wsgiref.types import WSGIApplication

from placement.db.database import Database
from placement.extensions.loading.demo import day
from placement.extensions.loading.demo.past import PastDay
from placement.extensions.loading.demo.service import DemoClient
from placement.extensions.loading.description import read_entries
from placement.extensions.loading.writing import load
from placement.extensions.loading.yaml_source import YamlSource


def fill(database: Database, application: WSGIApplication) -> None:
    """Create the cloud in an empty database through the application that serves it with ``noauth2``."""
    past = PastDay(database)
    load(
        database, read_entries(YamlSource(resources.files(__name__).joinpath("cloud.yaml").read_text(encoding="utf-8")))
    )
    logging.disable(logging.INFO)  # a line for each of about a thousand requests
    try:
        for hour, action in day.plan(DemoClient(application)):
            past.advance(hour)
            action()
        past.advance(day.HOURS)
    finally:
        logging.disable(logging.NOTSET)
