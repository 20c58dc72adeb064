"""The pages of the usage history: by project and by aggregate, for a chosen period, with links to the past."""

from __future__ import annotations

import datetime
import html
import re

import pytest

from tests import servers, web
from tests.extensions.console import fleet
from tests.extensions.console.fleet import SHARED_AGGREGATE, SHARED_HOURS

pytestmark = pytest.mark.parametrize("backend", [servers.SQLite.kind], indirect=True, scope="session")


@pytest.fixture(scope="module")
def sharing_app(app, uuids, module_database_url, hour):
    """The application with shares of VCPU in the last hours."""
    fleet.share(module_database_url, hour)
    return app


@pytest.fixture
def hours_ago(hour):
    """Return a function that returns the date of a whole hour in the past."""
    return lambda hours: (hour - hours * datetime.timedelta(hours=1)).isoformat()


def page(app, query, status=200):
    reply = web.ask(app, "GET", f"/console/usage{query}")
    assert reply.status_int == status, reply.text
    return reply.text


def legend(text):
    """Return the name, the number of the colour and the amounts of each row of the legend."""
    table = text.partition("legend-table")[2].partition("</table>")[0]
    rows = re.findall(r'<th scope="row">.*?class="line-(\d)".*?<a href="([^"]*)">(.*?)</a></th>(.*?)</tr>', table)
    return [
        (re.sub("<.*?>", "", name), int(colour), re.findall(r'class="number">([^<]*)', cells))
        for colour, _, name, cells in rows
    ]


def test_the_usage_by_project_has_a_line_for_each_project_the_largest_first(sharing_app):
    text = page(sharing_app, "?by=project&class=VCPU")
    assert legend(text) == [
        ("blue", 0, ["60", "10", "60"]),
        (str(html.escape(fleet.HOSTILE)).replace("&quot;", "&#34;").replace("&#x27;", "&#39;"), 1, ["0", "0", "5"]),
    ]
    lines = dict(re.findall(r'<polyline class="line-(\d)" points="([^"]*)"', text))
    assert [len(lines[number].split()) for number in "01"] == [SHARED_HOURS, SHARED_HOURS]
    heights = [float(point.partition(",")[2]) for point in lines["0"].split()]
    assert heights == sorted(heights, reverse=True)
    assert 'class="capacity" points' in text


def test_the_usage_by_aggregate_shows_each_capacity(sharing_app):
    assert legend(page(sharing_app, "?by=aggregate&class=VCPU")) == [(SHARED_AGGREGATE, 0, ["40", "100", "40", "40"])]


def test_without_shares_by_project_the_total_is_shown(sharing_app):
    text = page(sharing_app, "?by=project&class=VCPU&from=3d&to=2d")
    assert "No usage by project was recorded in this period; the chart shows the total." in text
    assert 'class="edge" points=' in text


def test_the_table_of_a_class_has_a_column_for_each_line(sharing_app):
    table = page(sharing_app, "?by=project&class=VCPU").partition("<summary>All samples as a table</summary>")[2]
    [heads] = re.findall("<thead>(.*?)</thead>", table)
    assert [html.unescape(head) for head in re.findall(r'class="number">(.*?)</th>', heads)] == [
        *("Used", "Capacity", "blue", fleet.HOSTILE)
    ]
    cells = [re.findall(r"<td[^>]*>([^<]*)</td>", row) for row in re.findall("<tr>(.*?)</tr>", table)]
    assert [row[2:] for row in cells if row][1:4] == [["60", "0"], ["50", "5"], ["40", "5"]]


def test_points_and_rows_link_to_the_state_of_their_time(sharing_app, hours_ago):
    text = page(sharing_app, "?by=project&class=VCPU")
    plot, _, table = text.partition("<summary>All samples as a table</summary>")
    points = re.findall(r'<a href="/console/\?at=([^"]*)&amp;class=VCPU" aria-label="([^"]*)"><title>', plot)
    assert 10 < len(points) <= 24
    names = dict(points)
    date = hours_ago(SHARED_HOURS - 1)
    assert names[f"{date}Z"].startswith(f"{date[:16].replace('T', ' ')} UTC: blue 20, ")
    rows = re.findall(r'<a href="/console/\?at=([^"]*)&amp;class=VCPU">', table)
    assert {at for at, _ in points} < set(rows)


def test_several_classes_have_few_points(sharing_app):
    text = page(sharing_app, "?by=project&period=week")
    assert 6 < text.count("/?at=") <= 12


def test_each_choice_keeps_the_other_choices(sharing_app):
    text = html.unescape(page(sharing_app, "?by=project&class=VCPU&from=6h&to=1h"))
    assert 'href="/console/usage?period=week&class=VCPU&by=project"' in text
    assert 'href="/console/usage?class=VCPU&by=aggregate&from=6h&to=1h"' in text
    assert 'href="/console/usage?by=project&from=6h&to=1h">All classes' in text
    assert '<input type="hidden" name="class" value="VCPU">' in text
    assert 'name="from" value="6h"' in text
    assert 'aria-current="true">By project' in text
    assert 'aria-current="true">Day' not in text


def test_a_period_of_the_past_is_chosen_with_dates(sharing_app, hours_ago):
    text = page(sharing_app, f"?class=VCPU&from={hours_ago(4)}&to={hours_ago(2)}")
    times = re.findall(r"/\?at=([^&]*)Z", text.partition("<summary>All samples as a table</summary>")[2])
    assert times == [hours_ago(3), hours_ago(4)]


def test_empty_fields_of_the_form_choose_nothing(sharing_app):
    assert 'aria-current="true">Day' in page(sharing_app, "?class=VCPU&by=&from=&to=+")


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ("from=yesterday", "from is"),
        ("to=2026-02-30", "to is 2026-02-30; a date in UTC"),
        ("from=1h&to=2h", "to is"),
        ("by=user", "by is"),
        ("period=century", "period is"),
    ],
)
def test_invalid_input_is_reported_beside_the_form(sharing_app, query, sentence):
    text = page(sharing_app, f"?{query}", 400)
    assert sentence in re.search(r'role="alert">(.*?)</p>', text)[1]
    assert '<button type="submit"' in text
