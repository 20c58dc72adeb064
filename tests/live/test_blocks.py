"""The SQL of the pages runs on its server, and creates a user who can create the schema."""

from __future__ import annotations

import re
import secrets

import pytest
import sqlalchemy as sa

from placement.db.schema import schema
from tests import made
from tests.docs.blocks import PAGES, blocks

CAPTIONS = {"mariadb": "MariaDB", "postgresql": "PostgreSQL"}


@pytest.fixture
def unique(backend):
    """A name for users and databases, which the fixture removes at the end."""
    name = f"documented_{secrets.token_hex(4)}"
    yield name
    backend.drop_database(backend.url.set(database=name))
    users = [name, f"{name}_haproxy@'192.0.2.%'"] if backend.kind == "mariadb" else [name]
    backend._administer(*(f"DROP USER IF EXISTS {user}" for user in users))


@pytest.mark.every_database
@pytest.mark.parametrize("backend", CAPTIONS, indirect=True)
def test_the_user_created_by_the_pages_creates_the_schema(backend, unique):
    sql_blocks = [block for page in PAGES.values() for block in blocks(page) if block.caption == CAPTIONS[backend.kind]]
    assert sql_blocks
    for block in sql_blocks:
        text = re.sub(r"\bplacement\b", unique, block.text).replace("haproxy", f"{unique}_haproxy")
        backend._administer(*filter(str.strip, text.split(";")))
    engine = sa.create_engine(backend.url.set(database=unique, username=unique, password="secret"))
    made.sync(engine)
    assert schema.state(engine) is schema.State.CURRENT
    engine.dispose()
