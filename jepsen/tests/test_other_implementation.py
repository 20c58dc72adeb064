"""Another implementation, run by a command and judged by its responses."""

import sys

import pytest

from jepsen.clusters import other_implementation
from jepsen.run import Plan, run
from jepsen.tests.running import assert_nothing_violated

#: Command that runs this service like any other.
COMMAND = (
    "env -u OS_PLACEMENT_CONFIG_DIR OS_PLACEMENT_DATABASE__CONNECTION={database} "
    "OS_PLACEMENT_DATABASE__SYNC_ON_STARTUP=true OS_API__AUTH_STRATEGY=noauth2 "
    f"{sys.executable} -m placement.cmd.serve --port {{port}}"
)


def test_the_responses_of_a_command_are_checked(monkeypatch, record_property):
    monkeypatch.setattr(other_implementation.Other, "command", COMMAND)
    with other_implementation.SQLite() as cluster:
        result = run(cluster, Plan(["bank"], seconds=1.0))
    assert {operation.service for operation in result.history.operations} == {0, 1}
    assert any(operation.succeeded and operation.note.get("bank") for operation in result.history.operations)
    assert result.history.final == {}
    assert "rows and indices" in result.history.run["skipped"]
    assert_nothing_violated(result, record_property)


def test_the_command_is_required():
    with pytest.raises(AssertionError, match="--command"), other_implementation.SQLite():
        pass
