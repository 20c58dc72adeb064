"""Crashes and restored backups: all commits after a point in time are lost, and the earlier ones are kept."""

from __future__ import annotations

import pytest
import sqlalchemy as sa

from jepsen.nemeses.crashes import LoseTail
from jepsen.nemeses.restore import RestoreBackup
from jepsen.tests.nemesis_observer import KINDS, observe

pytestmark = [pytest.mark.xdist_group("nemeses"), pytest.mark.parametrize("cluster", KINDS, indirect=True)]


@pytest.mark.parametrize("nemesis", [LoseTail, RestoreBackup])
def test_the_newest_commits_are_lost(cluster, nemesis):
    assert nemesis.loses_tail
    observation = observe(cluster, nemesis(), answering=lambda _: range(2))
    with sa.create_engine(cluster.database_url, poolclass=sa.NullPool).connect() as connection:
        names = {*connection.exec_driver_sql("SELECT name FROM resource_providers").scalars()}
    acknowledged = [operation for operation in observation.operations if operation.succeeded]
    surviving = [operation for operation in acknowledged if operation.body["name"] in names]
    lost = [operation for operation in acknowledged if operation.body["name"] not in names]
    assert lost
    # No commit after a lost one is kept.
    first = min(operation.ended for operation in lost)
    assert not [
        operation for operation in surviving if operation.began > first and operation.ended < observation.ending
    ]
    assert not [operation for operation in lost if operation.began > observation.healed]
