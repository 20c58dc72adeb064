"""The output of a command: a JSON document or lines, and the exit code."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

from placement.cmd.text_table import plain
from placement.extensions.terminal.style import Style

PROG = "placement-ask"
#: Exit codes; the last two equal the codes of a process ended by SIGINT or SIGPIPE.
DONE, REFUSED, USAGE, SERVICE, INTERRUPTED, UNREAD = 0, 1, 2, 3, 130, 141

Document = Mapping[str, Any]


class Answer(NamedTuple):
    """The output of a command.

    Attributes:
        json: The lines of the JSON document.
        lines: A function that yields the lines for people.
        code: The exit code.
    """

    json: Iterable[str]
    lines: Callable[[Style], Iterator[str]]
    code: int = DONE

    @classmethod
    def from_document(cls, document: Any, lines: Callable[[Any, Style], Iterator[str]], code: int = DONE) -> Answer:
        """Return the output for one document.

        Args:
            lines: A function that yields the lines that show the document to people.
        """
        return cls(_pretty_lines(document), partial(lines, document), code)


def show(answer: Answer, *, as_json: bool, follows: bool = False) -> int:
    """Print an output, and return its exit code.

    Args:
        as_json: Whether to print the JSON document.
        follows: Whether to flush each line, because lines arrive over time.
    """
    for line in answer.json if as_json else answer.lines(Style.for_stream(sys.stdout, os.environ)):
        print(line, flush=follows)
    sys.stdout.flush()
    return answer.code


def say(sentence: str) -> None:
    """Print a sentence on stderr."""
    print(f"{PROG}: {plain(' '.join(sentence.split()))}", file=sys.stderr)


def _pretty_lines(document: Any) -> Iterator[str]:
    yield json.dumps(document, indent=2)
