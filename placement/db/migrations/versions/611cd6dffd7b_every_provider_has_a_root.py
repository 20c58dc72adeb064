"""A check that every provider has a root, which later revisions rely on."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from alembic.util import CommandError

revision = "611cd6dffd7b"
down_revision = "b4ed3a175331"

_providers = sa.table("resource_providers", sa.column("root_provider_id"))


def upgrade() -> None:
    """Raise CommandError if a provider has no root."""
    rootless = sa.select(sa.func.count()).select_from(_providers).where(_providers.c.root_provider_id.is_(None))
    if count := op.get_bind().execute(rootless).scalar():
        raise CommandError(
            f"{count} resource providers have no root provider id. "
            'Run "placement-manage db online_data_migrations", then this command again.'
        )
