"""Whoever waits is told that work goes on, and is not bothered when it does not take long."""

import re
import time

from placement.cmd.progress import Progress


def told(capfd, wanted):
    """What was said on stderr up to and including the wanted pattern."""
    said, deadline = "", time.monotonic() + 60
    while not re.search(wanted, said):
        assert time.monotonic() < deadline, said
        time.sleep(0.005)
        said += capfd.readouterr().err
    return said


def test_long_work_tells_how_far_it_is(capfd):
    with Progress("Counting", "providers", total=12000, first=0.01) as progress:
        told(capfd, r"^Counting: 0 of 12,000 providers, \d+ s\n")
        progress.advance(4000)
        progress.advance(1000)
        told(capfd, r"Counting: 5,000 of 12,000 providers, \d+ s\n")


def test_work_of_unknown_length_tells_what_is_done(capfd):
    with Progress("Migrating", "rows", first=0.01) as progress:
        progress.advance(3)
        told(capfd, r"Migrating: 3 rows, \d+ s\n")


def test_a_single_statement_tells_only_how_long_it_takes(capfd):
    with Progress("Asking", first=0.01):
        told(capfd, r"Asking: \d+ s\n")


def test_short_work_says_nothing_and_ends_at_once(capfd):
    with Progress("Counting", first=3600):
        pass
    assert capfd.readouterr() == ("", "")


def test_nothing_is_said_after_the_end(capfd):
    with Progress("Counting", first=0.001) as progress:
        told(capfd, "Counting")
    capfd.readouterr()
    assert not progress._printer.is_alive()


def test_lines_of_very_long_work_come_twice_a_minute():
    progress, pauses = Progress("Counting"), []

    class Ended:
        def wait(self, pause):
            pauses.append(pause)
            return len(pauses) == 9

    progress._ended = Ended()
    progress._began = time.monotonic()
    progress._print()
    assert pauses == [1, 2, 4, 8, 16, 30, 30, 30, 30]
