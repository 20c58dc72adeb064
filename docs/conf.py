"""The settings of Sphinx.  ``make docs`` builds the pages."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_extensions"))

project = "Placement"
html_title = "Placement"
html_theme = "furo"
html_theme_options = {"light_css_variables": {"code-font-size": "var(--font-size--small--2)"}}
html_static_path = ["_static"]
html_css_files = ["pages.css"]
html_copy_source = False
html_show_copyright = False
html_show_sphinx = False
smartquotes = False
highlight_language = "none"
exclude_patterns = ["**/*.inc"]  # parts of pages
suppress_warnings = ["misc.highlighting_failure"]  # shell sessions with JSON that is cut short
extensions = ["breaks_in_names", "http_examples", "links_to_pages"]
