"""A check that every allocation has a consumer, which later revisions rely on."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from alembic.util import CommandError

revision = "b5c396305c25"
down_revision = "611cd6dffd7b"

_allocations = sa.table("allocations", sa.column("consumer_id"))
_consumers = sa.table("consumers", sa.column("uuid"))


def upgrade() -> None:
    """Raise CommandError if an allocation has no consumer."""
    joined = _allocations.outerjoin(_consumers, _allocations.c.consumer_id == _consumers.c.uuid)
    ownerless = sa.select(sa.func.count()).select_from(joined).where(_consumers.c.uuid.is_(None))
    if count := op.get_bind().execute(ownerless).scalar():
        raise CommandError(
            f"{count} allocations have no consumer record. "
            'Run "placement-manage db online_data_migrations", then this command again.'
        )
