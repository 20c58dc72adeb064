"""The version history of placement is complete, and other APIs can have their own."""

from __future__ import annotations

import pytest

from placement import errors
from placement import microversion as mv
from placement.version_history import Change, History, Version


@pytest.fixture
def history():
    history = History("metering")
    history.add(1, 0, "Meters.")
    history.add(1, 1, "Samples.")
    history.add(2, 0, "Meters have names.")
    return history


def test_every_version_of_placement_has_one_name_and_a_sentence():
    versions = [
        value for name, value in vars(mv).items() if isinstance(value, Version) and name not in ("MINIMUM", "LATEST")
    ]
    assert versions == [change.version for change in mv.HISTORY]
    assert versions == [Version(1, minor) for minor in range(40)]
    assert all(change.sentence.endswith(".") for change in mv.HISTORY)


def test_changes_are_in_the_order_of_the_table(history):
    assert list(history) == [
        Change(Version(1, 0), "Meters."),
        Change(Version(1, 1), "Samples."),
        Change(Version(2, 0), "Meters have names."),
    ]
    assert (history.minimum, history.latest) == ((1, 0), (2, 0))


@pytest.mark.parametrize("numbers", [(2, 0), (1, 2)])
def test_versions_must_be_in_ascending_order(history, numbers):
    with pytest.raises(ValueError, match=r"does not come after 2\.0"):
        history.add(*numbers, "Late.")


@pytest.mark.parametrize(
    ("header", "version"),
    [
        (None, (1, 0)),
        ("placement 1.30", (1, 0)),
        ("metering 1.1", (1, 1)),
        ("placement 1.30, metering 2.0", (2, 0)),
        ("metering latest", (2, 0)),
    ],
)
def test_each_service_has_its_own_entry_in_the_header(history, header, version):
    assert history.negotiate({"HTTP_OPENSTACK_API_VERSION": header}) == version


@pytest.mark.parametrize(
    ("header", "failure"), [("metering 1.2", errors.UnacceptableVersion), ("metering one", errors.MalformedVersion)]
)
def test_a_version_missing_in_the_history_is_refused(history, header, failure):
    with pytest.raises(failure):
        history.negotiate({"HTTP_OPENSTACK_API_VERSION": header})
