"""Long work of a command prints its progress; short work prints nothing."""

import contextlib
import io
import re
import time

from placement.cmd.progress import Progress
from tests.children import until


def captured_stderr():
    """Capture stderr in memory: capfd truncates a file, and may lose lines that threads print meanwhile."""
    return contextlib.redirect_stderr(io.StringIO())


def wait_for_output(stderr, pattern):
    """Wait until the text on stderr matches a pattern."""
    until(lambda: re.search(pattern, stderr.getvalue()), f"{pattern} is not printed")


def test_long_work_prints_its_progress():
    with captured_stderr() as stderr, Progress("Counting", "providers", total=12000, first=0.01) as progress:
        wait_for_output(stderr, r"^Counting: 0 of 12,000 providers, \d+ s\n")
        progress.advance(4000)
        progress.advance(1000)
        wait_for_output(stderr, r"Counting: 5,000 of 12,000 providers, \d+ s\n")


def test_work_of_unknown_length_prints_the_finished_steps():
    with captured_stderr() as stderr, Progress("Migrating", "rows", first=0.01) as progress:
        progress.advance(3)
        wait_for_output(stderr, r"Migrating: 3 rows, \d+ s\n")


def test_work_without_steps_prints_only_its_duration():
    with captured_stderr() as stderr, Progress("Asking", first=0.01):
        wait_for_output(stderr, r"Asking: \d+ s\n")


def test_short_work_prints_nothing():
    with captured_stderr() as stderr, Progress("Counting", first=3600):
        pass
    assert stderr.getvalue() == ""


def test_the_printing_thread_ends_with_the_work():
    with captured_stderr() as stderr, Progress("Counting", first=0.001) as progress:
        wait_for_output(stderr, "Counting")
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
