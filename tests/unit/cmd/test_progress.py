"""Long work of a command prints its progress; short work prints nothing."""

import re
import time

from placement.cmd.progress import Progress


def wait_for_output(capfd, pattern):
    """Wait until the output on stderr matches a pattern, and return the output."""
    output, deadline = "", time.monotonic() + 60
    while not re.search(pattern, output):
        assert time.monotonic() < deadline, output
        time.sleep(0.005)
        output += capfd.readouterr().err
    return output


def test_long_work_prints_its_progress(capfd):
    with Progress("Counting", "providers", total=12000, first=0.01) as progress:
        wait_for_output(capfd, r"^Counting: 0 of 12,000 providers, \d+ s\n")
        progress.advance(4000)
        progress.advance(1000)
        wait_for_output(capfd, r"Counting: 5,000 of 12,000 providers, \d+ s\n")


def test_work_of_unknown_length_prints_what_is_done(capfd):
    with Progress("Migrating", "rows", first=0.01) as progress:
        progress.advance(3)
        wait_for_output(capfd, r"Migrating: 3 rows, \d+ s\n")


def test_work_without_steps_prints_only_its_duration(capfd):
    with Progress("Asking", first=0.01):
        wait_for_output(capfd, r"Asking: \d+ s\n")


def test_short_work_prints_nothing(capfd):
    with Progress("Counting", first=3600):
        pass
    assert capfd.readouterr() == ("", "")


def test_nothing_is_printed_after_the_end(capfd):
    with Progress("Counting", first=0.001) as progress:
        wait_for_output(capfd, "Counting")
    capfd.readouterr()
    assert not progress._printer.is_alive()


def test_the_pause_between_lines_grows_to_thirty_seconds():
    progress, pauses = Progress("Counting"), []

    class Ended:
        def wait(self, pause):
            pauses.append(pause)
            return len(pauses) == 9

    progress._ended = Ended()
    progress._began = time.monotonic()
    progress._print()
    assert pauses == [1, 2, 4, 8, 16, 30, 30, 30, 30]
