"""The questions of docs/questions.rst: each command and request has the response shown, and each picture is drawn.

A picture cannot be compared pixel by pixel, since uuids and times differ: its page must show what the caption says, and
its size must be that of the file.  With PLACEMENT_TEST_SCREENSHOTS=docs/images in the environment all pictures of the
documents are redrawn.
"""

from __future__ import annotations

import base64
import json
import os
import re
from pathlib import Path
from typing import NamedTuple

import pytest

from placement.extensions.terminal.style import BLOCKS, UNKNOWN
from tests import children, transcripts
from tests.docs import examples
from tests.docs.blocks import PAGES, ROOT, blocks
from tests.docs.run_by import blocks_of
from tests.extensions.console import chromium, pictures

# All tests share a cloud; the last question changes it.
pytestmark = pytest.mark.xdist_group("questions")

PAGE = PAGES["docs/questions.rst"]
SCREENSHOTS = os.environ.get("PLACEMENT_TEST_SCREENSHOTS")
IMAGES = ROOT / "docs/images"
#: Pixels: the width of all pictures, and the height of pictures shorter than their window.
WIDTH, HEIGHT = 1200, 700
HEIGHTS = {"full": 510, "claim": 520, "changed": 480, "wrong": 390, "past": 480, "drained": 500}
#: The picture of the README, and its page.
README_PICTURE, OVERVIEW, README_SIZE = "console.png", "/console/", (1440, 900)
#: Maximum bytes of a picture.
MAX_SIZE = 120_000
_FIGURE = re.compile(
    r"^\.\. figure:: images/(?P<file>\S+)\n   :alt: .+\n\n"
    r"   ``(?P<path>[^`]+)``(?:, \*(?P<button>[^*]+)\*)?: (?P<text>.+)\n",
    re.MULTILINE,
)
#: The trend in a row, which shifts every ten minutes.
_TREND = re.compile(f"  [{BLOCKS}{UNKNOWN}]*[{BLOCKS}]$", re.MULTILINE)

_DATE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")


class Figure(NamedTuple):
    """A picture: its file, the path of its page, the button to press there, and the texts visible on it."""

    file: str
    path: str
    button: str | None
    seen: list[str]

    @property
    def size(self):
        return WIDTH, HEIGHTS.get(Path(self.file).stem, HEIGHT)


def figure_of(text):
    (match,) = _FIGURE.finditer(text)
    return Figure(match["file"], match["path"], match["button"], re.findall("``([^`]+)``", match["text"]))


#: The text below each heading that is a question, in order.
QUESTIONS = dict(re.findall(r"^([^\n]+\?)\n=+\n\n(.*?)(?=^[^\n]+\n===|\Z)", PAGE, re.MULTILINE | re.DOTALL))
FIGURES = {question: figure_of(text) for question, text in QUESTIONS.items()}


def commands_of(text):
    return [step for block in blocks(text) if block.kind == "console" for step in transcripts.steps(block.text)]


# --- the page --------------------------------------------------------------------------------------------------------


def test_each_of_ten_questions_has_a_command_a_request_a_picture_and_a_reference():
    assert len(QUESTIONS) == 10
    for question, text in QUESTIONS.items():
        programs = {command.split()[0] for command, _ in commands_of(text)}
        assert {"placement-ask", "curl"} <= programs, question
        assert re.search("^Reference: :(ref|doc):", text, re.MULTILINE), question
        assert FIGURES[question].seen, question


# --- the demonstration -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    """A checkout in which the demonstration runs."""
    checkout = tmp_path_factory.mktemp("questions")
    transcripts.install_in_checkout(checkout)
    return checkout


@pytest.fixture(scope="module")
def url(directory):
    """The demonstration, started by the command of the page, on a free port."""
    (block,) = blocks_of(__file__, "docs/questions.rst", "shell")
    port = children.free_port()
    with transcripts.run_make(f"{block.text.strip()} ARGS='--port {port}'", directory, port) as demonstration_url:
        yield demonstration_url


@pytest.fixture(scope="module")
def browser():
    with chromium.launch() as browser:
        yield browser


@pytest.fixture
def draw(url, browser):
    """Return a function that opens a page in a window of a given size, presses a button, and returns the picture."""
    from playwright.sync_api import expect

    problems, contexts = [], []

    def draw_page(path, size, button=None, seen=()):
        width, height = size
        context = browser.new_context(
            viewport={"width": width, "height": height}, color_scheme="light", reduced_motion="reduce"
        )
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(1000 * children.PATIENCE)
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("console", lambda message: problems.append(message.text) if chromium.is_problem(message) else None)
        assert page.goto(url + path).status == 200
        assert page.url == url + path
        if button:
            with page.expect_navigation():
                page.get_by_role("button", name=button).click()
        page.wait_for_load_state("networkidle")
        for text in seen:
            place = page.locator("main").get_by_text(text).locator("visible=true").first
            # A new picture must show the text; another machine's fonts may move it out of the window.
            assertion = expect(place, text).to_be_in_viewport if SCREENSHOTS else expect(place, text).to_be_visible
            assertion(timeout=1000 * children.PATIENCE)
        return page.screenshot()

    yield draw_page
    for context in contexts:
        context.close()
    assert problems == []


def compare(png, file, browser):
    """Compare the size of a picture with that of its file; replace the file first if requested."""
    if SCREENSHOTS:
        path = ROOT / SCREENSHOTS / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(pictures.small(browser, png))
    assert pictures.size(png) == pictures.size((IMAGES / file).read_bytes()), file


def test_the_picture_of_the_readme_is_drawn(draw, browser):
    compare(draw(OVERVIEW, README_SIZE, seen=["compute-03-numa0"]), README_PICTURE, browser)


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: Path(FIGURES[question].file).stem)
def test_a_question_has_the_answer_shown(question, url, directory, draw, browser):
    """All questions depend on the commands before the first one."""
    introduction, _, _ = PAGE.partition(next(iter(QUESTIONS)))
    preparation = [command for command, _ in commands_of(introduction)]
    pairs = commands_of(QUESTIONS[question])
    commands = [*preparation, *(command for command, _ in pairs)]
    printed, errors = transcripts.run(commands, directory, transcripts.environment() | {"PYTHONIOENCODING": "utf-8"})
    for (command, expected), output in zip(pairs, printed[len(preparation) :], strict=True):
        assert is_shown(expected, output), f"$ {command}\n{output}\n{errors}"
    assert errors == ""
    figure = FIGURES[question]
    compare(draw(figure.path, figure.size, figure.button, figure.seen), figure.file, browser)


def is_shown(expected, output):
    """Whether a page shows this output; in a document ``"..."`` matches anything."""
    if expected.startswith("{"):
        return examples.matches(json.loads(expected), json.loads(output))
    expected, output = (_DATE.sub("date", _TREND.sub("  trend", text)) for text in (expected, output.strip("\n")))
    return transcripts.pattern(expected).fullmatch(output) is not None


def test_every_picture_of_the_documents_is_drawn_here_and_is_small():
    files_drawn = {README_PICTURE, *(figure.file for figure in FIGURES.values())}
    files = {str(path.relative_to(IMAGES)): path for path in IMAGES.rglob("*.*")}
    assert files.keys() == files_drawn
    assert {name: length for name, path in files.items() if (length := path.stat().st_size) > MAX_SIZE} == {}
    assert f".. image:: docs/images/{README_PICTURE}\n" in PAGES["README.rst"]


# --- the comparisons themselves ---------------------------------------------------------------------------------------


def test_the_comparison_of_an_answer_detects_differences():
    assert is_shown('{"a": [1, "..."], "...": "..."}', '{"a": [1, 2], "b": 3}\n')
    assert not is_shown('{"a": [2, "..."], "...": "..."}', '{"a": [1, 2], "b": 3}\n')
    assert is_shown("VCPU  4  ▁ ▂\nPGPU  5  ▂▂▂", "VCPU  4   ▂▁\nPGPU  5  ▂▃▂\n")
    assert is_shown("since 2026-11-28T09:28:00Z", "since 2027-01-02T03:04:05Z\n")
    assert not is_shown("since 2026-11-28T09:28:00Z", "since\n")
    assert not is_shown("VCPU  4  ▁▂", "VCPU  5  ▁▂\n")
    assert not is_shown("VCPU  4  ▁▂", "VCPU  4\n")


#: The largest difference of a channel between the two pictures of a page.
LARGEST_DIFFERENCE = """() => {
  const [one, other] = [...document.images].map((image) => {
    const pen = new OffscreenCanvas(image.width, image.height).getContext("2d");
    pen.drawImage(image, 0, 0);
    return pen.getImageData(0, 0, image.width, image.height).data;
  });
  return Math.max(...one.map((value, at) => Math.abs(value - other[at])));
}"""


def test_a_small_picture_has_the_pixels_of_the_large_one(browser):
    """Exactly, if there are at most 256 colours, and otherwise nearly."""
    page = browser.new_page(viewport={"width": 300, "height": 20})
    page.set_content("<body style='margin: 0; background: linear-gradient(to right, #000, #fa6)'>")
    large = page.screenshot()
    small = pictures.small(browser, large)
    assert pictures.size(small) == pictures.size(large) == (300, 20)
    page.set_content(
        "<body style='margin: 0'>"
        + "".join(f"<img src='data:image/png;base64,{base64.b64encode(png).decode()}'>" for png in (large, small))
    )
    page.wait_for_function("[...document.images].every((image) => image.complete && image.naturalWidth)")
    difference = page.evaluate(LARGEST_DIFFERENCE)
    page.close()
    assert difference < 16
