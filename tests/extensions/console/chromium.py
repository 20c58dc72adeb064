"""A real browser for the tests of the pages: Chromium, driven by Playwright."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from typing import Any

from tests.children import PATIENCE
from tests.servers import Missing

#: In the order of preference: the headless shell takes half of the processor time.
_PROGRAMS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")


def is_problem(message: Any) -> bool:
    """Whether a line of the browser's console is an error; a 4xx response to a page is not."""
    return message.type in ("error", "warning") and not message.text.startswith("Failed to load resource")


@contextlib.contextmanager
def launch() -> Iterator[Any]:
    """Run the browser without a window during a block.

    Raises:
        Missing: Chromium or Playwright is not installed.
    """
    program = next(filter(None, map(shutil.which, _PROGRAMS)), None)
    if program is None:
        raise Missing("Chromium is not installed: `make servers` installs it")
    try:
        from playwright.sync_api import expect, sync_playwright
    except ImportError:
        raise Missing("playwright is not installed") from None
    expect.set_options(timeout=1000 * PATIENCE)
    with sync_playwright() as playwright:
        # The sandbox needs privileges that containers lack; the pages are trusted.
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"], timeout=1000 * PATIENCE)
        try:
            yield browser
        finally:
            browser.close()
