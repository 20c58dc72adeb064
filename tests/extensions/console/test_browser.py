"""The pages in a real Chromium: sign-in, heat map, form and text, keyboard, themes, widths, and the checks of axe.

With PLACEMENT_TEST_SCREENSHOTS=DIRECTORY in the environment, these tests also write a picture of each page in both
themes.  tests/live/extensions/test_questions.py draws the pictures of the documents.
"""

from __future__ import annotations

import contextlib
import datetime
import os
import re
import zlib
from pathlib import Path

import bcrypt
import pytest
import requests
import sqlalchemy as sa

from placement.db.schema.tables import consumers
from tests import children, identity, running, servers
from tests.extensions.console import chromium, fleet
from tests.extensions.console.conftest import console
from tests.extensions.console.fleet import CONSUMER, GONE_CONSUMER, HOSTILE, provider, send
from tests.made import opened
from tests.run_length import LONG

pytestmark = [
    pytest.mark.parametrize("backend", [servers.SQLite.kind], indirect=True, scope="session"),
    pytest.mark.xdist_group("console-browser"),
]

SCREENSHOTS = os.environ.get("PLACEMENT_TEST_SCREENSHOTS")
CONSOLE = {"enabled": True}
CANDIDATES = "/query?resources=VCPU:4&resources1=VGPU:1&group_policy=none"
PAGES = {
    "overview": "/",
    "providers": "/providers",
    "provider": "/providers/cn1",
    "query": "/query",
    "candidates": CANDIDATES,
    "none": "/query?resources=VCPU:4000",
    "refused": "/query?resources=VCPU:x",
    "consumers": "/consumers",
    "consumer": f"/consumers/{CONSUMER}",
    "gone": f"/consumers/{GONE_CONSUMER}",
    "usage": "/usage?period=week",
    "usage of one class": "/usage?period=month&class=VCPU",
    "events": "/events",
    "doctor": "/doctor",
    "api": "/api",
    "placement": "/api?of=placement&version=1.4",
    "missing": "/nothing",
}
#: Times in a page, which differ when it is loaded later.
TIMES = r"(?:\d+ h )?\d+ \w+ ago|just now|\d{4}-\d\d-\d\d \d\d:\d\d(?!:)"
#: Widths in CSS pixels, from a telephone to 4K.
WIDTHS = (360, 900, 1440, 3840)


@pytest.fixture(scope="module")
def browser():
    with contextlib.ExitStack() as stack:
        browser = stack.enter_context(chromium.launch())
        yield browser


@pytest.fixture(scope="module")
def url(module_database_url, app, uuids):
    """The URL of the console of a service with noauth2 in its own process, on the application's cloud."""
    with running.embedded(module_database_url, {"console": CONSOLE}) as service:
        yield f"{service.url}/console"


@pytest.fixture
def open_page(browser, url):
    """Return a function that opens a page; the end of the test checks for errors and for requests to other hosts."""
    with contextlib.ExitStack() as stack:
        problems, hosts = [], set()

        def open_(path="/", address=url, **options):
            context = stack.enter_context(contextlib.closing(browser.new_context(**options)))
            page = context.new_page()
            page.set_default_timeout(1000 * children.PATIENCE)
            page.on("pageerror", lambda error: problems.append(str(error)))
            page.on("console", lambda message: problems.append(message.text) if chromium.is_problem(message) else None)
            page.on("request", lambda request: hosts.add(request.url.split("/")[2]))
            page.goto(address + path)
            return page

        yield open_
        assert problems == []
        assert {re.sub(r":\d+$", "", host) for host in hosts} <= {"127.0.0.1"}


# --- every page ---


@pytest.mark.parametrize("name", PAGES)
def test_axe_finds_nothing_and_a_page_fits_each_width(open_page, name):
    """A short run checks each page in one of the two colour schemes, which share their variables."""
    # Without transitions, during which axe would measure colours between the two schemes.
    page = open_page(PAGES[name], viewport={"width": 1280, "height": 900}, reduced_motion="reduce")
    page.wait_for_load_state("networkidle")
    unfold(page)
    schemes = ("light", "dark")
    for scheme in schemes if LONG or SCREENSHOTS else schemes[zlib.crc32(name.encode()) % 2 :][:1]:
        page.emulate_media(color_scheme=scheme)
        assert violations(page) == []
        photograph(page, f"{name}-{scheme}")
    assert_fits_each_width(page)
    assert page.evaluate("parseFloat(getComputedStyle(document.documentElement).fontSize)") >= 20  # at 4K


def unfold(page):
    """Unfold every part of the page, so that checks see it."""
    page.evaluate("document.querySelectorAll('details').forEach((each) => (each.open = true))")


def wait_for_heading(page, name):
    """Wait for a heading, and until the rest of its page is loaded."""
    page.get_by_role("heading", name=name).wait_for()
    page.wait_for_load_state()


def photograph(page, name):
    """Write a picture of the page if the environment requests it."""
    if SCREENSHOTS:
        page.screenshot(path=Path(SCREENSHOTS) / f"{name}.png", full_page=True)


def violations(page):
    """Return the violations that axe finds: rule, impact, and place."""
    from axe_playwright_python.sync_playwright import Axe

    page.wait_for_load_state()  # waits for its style sheet
    violations = Axe().run(page).response["violations"]
    return [
        (violation["id"], violation["impact"], [node["target"] for node in violation["nodes"]])
        for violation in violations
    ]


def assert_fits_each_width(page):
    """Check that the page does not scroll sideways, once its style sheet, which follows the text, is loaded."""
    page.wait_for_load_state()
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth") <= width, width


@pytest.mark.parametrize(
    "name", ["overview", "providers", "provider", "candidates", "consumers", "consumer", "events", "usage"]
)
def test_a_page_can_be_read_without_javascript(open_page, name):
    with_scripts, without = (
        open_page(PAGES[name], java_script_enabled=enabled).inner_text("main") for enabled in (True, False)
    )
    with_scripts, without = (re.sub(TIMES, "", text) for text in (with_scripts, without))
    lines = [line for line in without.splitlines() if line.strip()]
    assert len(lines) > 5
    assert [line for line in lines if line not in with_scripts] == []


def test_a_hostile_name_is_text(open_page):
    page = open_page("/providers")
    with page.expect_navigation():
        page.get_by_role("link", name=HOSTILE).click()
    assert page.inner_text("h1") == HOSTILE
    assert page.title() == f"{HOSTILE} · Placement"


# --- keyboard ---


def test_the_first_tab_stop_leads_to_the_content(open_page):
    page = open_page("/")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"


def test_the_heat_map_is_used_with_the_keyboard(open_page, uuids):
    page = open_page("/")
    canvas = page.locator("canvas")
    canvas.wait_for()
    canvas.focus()
    page.keyboard.press("ArrowRight")
    assert page.inner_text("[data-tip]") == "cn1: 48 of 128 VCPU used"
    page.keyboard.press("ArrowLeft")
    assert page.inner_text("[data-tip]") == f"{HOSTILE}: 16 of 12 VCPU used, disabled, over-committed"
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/providers/{uuids['cn1']}")


def test_the_heat_map_is_used_with_a_pointer(open_page, uuids):
    page = open_page("/")
    page.locator("canvas").hover(position={"x": 5, "y": 5})
    assert page.inner_text("[data-tip]").startswith(HOSTILE)
    page.locator("canvas").click(position={"x": 5, "y": 5})
    page.wait_for_url(f"**/providers/{uuids[HOSTILE]}")


def pixel(page, x, y):
    """Return the colour of a pixel of the heat map: red, green, blue, opacity."""
    script = """([x, y]) => {
      const canvas = document.querySelector("canvas");
      const copy = Object.assign(document.createElement("canvas"), { width: canvas.width, height: canvas.height });
      const pen = copy.getContext("2d", { willReadFrequently: true });
      pen.drawImage(canvas, 0, 0);
      return [...pen.getImageData(x, y, 1, 1).data];
    }"""
    return tuple(page.evaluate(script, [x, y]))


def test_a_cell_has_the_colour_of_its_tenth_and_the_chosen_one_a_frame(open_page):
    page = open_page("/", color_scheme="light", viewport={"width": 1280, "height": 900})
    canvas = page.locator("canvas")
    canvas.wait_for()
    canvas.focus()
    over, third = (0xB3, 0x26, 0x1E, 255), (0x93, 0xC3, 0xDF, 255)  # 16 of 12, 48 of 128
    ink = (0x1A, 0x1F, 0x27, 255)
    width = page.evaluate("document.querySelector('canvas').width") // 2

    def corners():
        return pixel(page, 1, 1), pixel(page, width + 2, 1)

    assert corners() == (over, third)
    page.keyboard.press("Home")
    assert corners() == (ink, third)
    assert pixel(page, width - 20, 40) == over
    page.keyboard.press("End")
    assert corners() == (over, ink)
    page.get_by_role("button", name="Theme").click()
    page.get_by_role("button", name="Theme").click()  # light, then dark
    assert pixel(page, 1, 1) not in (over, third)
    assert corners()[1] not in (ink, third)


@pytest.mark.parametrize("width", WIDTHS)
def test_ten_thousand_cells_have_a_place_each(open_page, width):
    count = 10_000
    hosts = {
        "resource_class": "VCPU",
        "uuids": [f"u{number}" for number in range(count)],
        "names": [f"h{number}" for number in range(count)],
        "capacity": [10] * count,
        "used": [number % 12 for number in range(count)],
        "disabled": [False] * count,
        "over": [False] * count,
        "groups": [["", count]],
    }
    page = open_page("/consumers", viewport={"width": width, "height": 900})
    page.route("**/hosts?*", lambda route: route.fulfill(json=hosts))
    if page.get_by_text("Menu").is_visible():
        page.get_by_text("Menu").click()
    page.get_by_role("link", name="Overview").click()
    canvas = page.locator("canvas")
    canvas.wait_for()
    canvas.focus()
    page.keyboard.press("End")
    assert page.inner_text("[data-tip]") == "h9999: 3 of 10 VCPU used"
    box = canvas.bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= width
    page.keyboard.press("Home")
    page.keyboard.press("ArrowDown")
    columns = int(page.inner_text("[data-tip]").removeprefix("h").partition(":")[0])
    width, height = box["width"] / columns, box["height"] / -(-count // columns)
    assert width >= 2
    assert height >= 2
    row, column = divmod(count - 1 - columns, columns)
    canvas.hover(position={"x": column * width + 1, "y": row * height + 1})
    assert page.inner_text("[data-tip]").startswith(f"h{count - 1 - columns}:")


def test_groups_of_hosts_are_named_and_their_cells_have_a_place(open_page):
    names = ["a1", "a2", "a3", "b1", "c1", "c2"]
    hosts = {
        "resource_class": "VCPU",
        "uuids": names,
        "names": names,
        "capacity": [10] * 6,
        "used": [1, 2, 3, 4, 5, 6],
        "disabled": [False] * 6,
        "over": [False] * 6,
        "groups": [["rack-a", 3], ["rack-b", 1], ["rack-c", 2]],
    }
    page = open_page("/consumers", viewport={"width": 1280, "height": 900})
    page.route("**/hosts?*", lambda route: route.fulfill(json=hosts))
    page.get_by_role("link", name="Overview").click()
    canvas = page.locator("canvas")
    canvas.wait_for()
    box = canvas.bounding_box()
    hovered_names = []
    for y in range(0, int(box["height"]), 4):
        canvas.hover(position={"x": 4, "y": y})
        hovered_names.append(page.inner_text("[data-tip]").partition(":")[0])
    firsts = [*dict.fromkeys(name for name in hovered_names if name in names)]
    assert firsts == ["a1", "b1", "c1"]


# --- events ---


def test_events_are_followed_until_the_button_is_pressed_again(open_page, app):
    from playwright.sync_api import expect

    page = open_page("/events?kind=trait")
    first = page.locator(".timeline .what").first
    button = page.get_by_role("button", name="Follow")
    assert button.get_attribute("aria-pressed") == "false"
    button.click()
    try:
        send(app, "PUT", "/traits/CUSTOM_FOLLOWED")
        expect(first).to_contain_text("Trait CUSTOM_FOLLOWED created")
        assert button.get_attribute("aria-pressed") == "true"
        expect(page.locator("[data-follow-status]")).to_have_text("Live: 1 added since you started following")
        assert page.locator(".timeline .fresh").count() == 1
        assert violations(page) == []
        button.click()
        assert button.get_attribute("aria-pressed") == "false"
    finally:
        send(app, "DELETE", "/traits/CUSTOM_FOLLOWED")
    page.wait_for_timeout(1500)
    expect(first).to_contain_text("Trait CUSTOM_FOLLOWED created")
    page.reload()
    expect(first).to_contain_text("Trait CUSTOM_FOLLOWED deleted")


def test_the_focus_stays_while_events_arrive(open_page, app):
    page = open_page("/events?kind=provider")
    page.get_by_role("button", name="Follow").click()
    link = page.locator(".timeline a").first
    link.focus()
    with page.expect_response("**/events/rows?**"):
        created = send(app, "POST", "/resource_providers", {"name": "short-lived"})
    # The next request is sent once this response has been processed.
    page.wait_for_event("request", lambda request: "/events/rows?" in request.url)
    assert page.evaluate("document.activeElement.closest('.timeline') !== null")
    send(app, "DELETE", f"/resource_providers/{created['uuid']}")


def test_a_failure_to_follow_events_is_reported(open_page):
    page = open_page("/events")
    page.route("**/events/rows?**", lambda route: route.fulfill(status=410, body=""))
    page.get_by_role("button", name="Follow").click()
    page.get_by_text("Events can no longer be followed (410).").wait_for()
    assert page.get_by_role("button", name="Follow").get_attribute("aria-pressed") == "false"


def test_older_events_can_be_read_without_javascript(open_page, database_url):
    """The test has its own database, with more events than fit on a page."""
    app = console(database_url)
    for number in range(60):
        send(app, "PUT", f"/traits/CUSTOM_{number}")
    with running.embedded(database_url, {"console": CONSOLE}) as service:
        page = open_page("/events", f"{service.url}/console", java_script_enabled=False)
        assert page.get_by_role("button", name="Follow").count() == 0
        newest = page.locator(".timeline .what").all_inner_texts()
        with page.expect_navigation():
            page.locator("a[rel=next]").click()
        older = page.locator(".timeline .what").all_inner_texts()
    assert newest + older == [f"Trait CUSTOM_{number} created, by admin" for number in reversed(range(60))]
    assert older


# --- tables, menu and clipboard ---


def test_a_table_is_sorted_by_a_click_on_the_head_of_a_column(open_page):
    page = open_page("/")
    head = page.locator(".totals thead th", has_text="Class")
    names = page.locator(".totals tbody th")
    by_pressure = names.all_inner_texts()
    head.get_by_role("button").click()
    assert head.get_attribute("aria-sort") == "ascending"
    assert names.all_inner_texts() == sorted(by_pressure) != by_pressure
    head.get_by_role("button").click()
    assert names.all_inner_texts() == sorted(by_pressure, reverse=True)
    page.locator(".totals thead th.number").last.get_by_role("button").click()
    percents = [int(text) for text in page.locator(".totals td:last-child").all_inner_texts()]
    assert percents == sorted(percents, reverse=True)
    assert page.locator(".totals [aria-sort]").count() == 1


def test_rows_without_a_value_come_last_in_both_orders(open_page, database_url):
    """The test has its own database, with three consumers, two of them with leases."""
    app = console(database_url)
    provider(app, "host", DISK_GB=100)
    fleet.lease(app, None)
    for seconds in (7200, 600):
        fleet.lease(app, seconds)
    with running.embedded(database_url, {"console": CONSOLE}) as service:
        page = open_page("/consumers", f"{service.url}/console")
        ends = page.locator(".holders td:nth-child(6)")
        created = ends.all_inner_texts()
        button = page.locator(".holders thead th", has_text="Expires").get_by_role("button")
        button.click()
        ascending = ends.all_inner_texts()
        button.click()
        descending = ends.all_inner_texts()
    assert created[0] == "" < created[2] < created[1]
    assert ascending == [created[2], created[1], ""]
    assert descending == [created[1], created[2], ""]


def test_a_column_of_dates_is_sorted_by_the_second(open_page, database_url):
    """The test has its own database, with two consumers created in the same minute."""
    app = console(database_url)
    provider(app, "host", DISK_GB=100)
    with opened(database_url) as database:
        for second in (30, 10, 20):
            date = datetime.datetime(2026, 11, 1 if second == 20 else 2, 8, 15, second)
            changed = sa.update(consumers).where(consumers.c.uuid == fleet.lease(app, 600)).values(created_at=date)
            database.write(lambda db, changed=changed: db.execute(changed))
    with running.embedded(database_url, {"console": CONSOLE}) as service:
        page = open_page("/consumers", f"{service.url}/console")
        dates = page.locator(".holders td:nth-child(5) time:first-child")
        unsorted = dates.evaluate_all("(found) => found.map((each) => each.dateTime)")
        button = page.locator(".holders thead th", has_text="Since").get_by_role("button")
        button.click()
        ascending = dates.evaluate_all("(found) => found.map((each) => each.dateTime)")
        button.click()
        descending = dates.evaluate_all("(found) => found.map((each) => each.dateTime)")
    assert [date[-3:-1] for date in unsorted] == ["30", "10", "20"]
    assert [date[-3:-1] for date in ascending] == ["20", "10", "30"]
    assert descending == ascending[::-1]


@pytest.mark.parametrize("scripts", [True, False])
def test_the_menu_and_the_filters_are_folded_only_on_a_narrow_screen(open_page, scripts):
    page = open_page("/providers", viewport={"width": 360, "height": 640}, java_script_enabled=scripts)
    link, field = page.get_by_role("link", name="Query"), page.get_by_label("Trait")
    assert (link.is_visible(), field.is_visible()) == (False, False)
    page.get_by_text("Filters").click()
    page.get_by_text("Menu").click()
    assert (link.is_visible(), field.is_visible()) == (True, True)
    page.set_viewport_size({"width": 1440, "height": 900})
    page.reload()
    assert (link.is_visible(), field.is_visible()) == (True, True)
    assert page.get_by_text("Menu").is_visible() is False
    link.click()
    page.wait_for_url("**/query")


def test_a_click_copies_a_command(open_page):
    page = open_page(CANDIDATES, permissions=["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Copy: Explanation with placement-ask").click()
    page.get_by_text("Copied").first.wait_for()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == page.get_by_role("region", name="Explanation with placement-ask").inner_text()
    assert copied.startswith("placement-ask --url http://127.0.0.1:")


def test_names_are_suggested_while_typing(open_page):
    page = open_page("/query")
    page.wait_for_load_state("networkidle")
    page.locator("#resources-1").press_sequentially("VCPU:1,mem")
    page.wait_for_selector("#resources-1-suggestions option", state="attached")
    assert page.locator("#resources-1-suggestions option").evaluate_all("all => all.map((each) => each.value)") == [
        "VCPU:1,MEMORY_MB"
    ]


# --- form and text ---


def test_the_text_changes_with_the_form(open_page):
    page = open_page(CANDIDATES)
    page.wait_for_load_state("networkidle")  # the script for the form is loaded last
    page.get_by_text("Form", exact=True).click()
    for group in ("Unsuffixed group (one tree)", "Group 1 (one provider)"):
        page.get_by_text(group).first.click()
    page.fill("#resources-1", "VCPU:2")
    page.fill("#member_of1-1", "in:a,b")
    text = page.input_value("#raw")
    assert text.replace("\n", "") == "resources=VCPU:2&resources1=VGPU:1&member_of1=in:a,b&group_policy=none"


def test_the_form_changes_with_the_text(open_page):
    page = open_page("/query")
    page.wait_for_load_state("networkidle")
    page.get_by_text("Text", exact=True).click()
    page.fill("#raw", "resources=VCPU:2&resources_GPU=VGPU:1&required_GPU=CUSTOM_RED&group_policy=isolate")
    page.wait_for_selector("#required_GPU-1", state="attached")
    page.get_by_text("Form", exact=True).click()
    assert page.input_value("#required_GPU-1") == "CUSTOM_RED"
    assert page.input_value("#resources-1") == "VCPU:2"
    assert page.input_value("#group_policy") == "isolate"
    page.locator("form", has=page.locator("#resources-1")).get_by_role("button").click()
    page.get_by_role("heading", name="4 candidates").wait_for()


def test_the_page_of_a_query_begins_with_its_result(open_page):
    from playwright.sync_api import expect

    page = open_page(PAGES["none"])
    page.set_viewport_size({"width": 360, "height": 640})
    for heading, press in (
        ("No candidates", page.locator("form", has=page.locator("#raw")).get_by_role("button")),
        ("It fits", page.locator("a.button").first),
    ):
        press.click()
        expect(page.get_by_role("heading", name=heading)).to_be_in_viewport(timeout=60_000)


# --- dry runs ---


@pytest.mark.parametrize("scripts", [True, False])
def test_a_claim_is_tried_from_its_card(open_page, scripts):
    page = open_page(CANDIDATES, java_script_enabled=scripts)
    page.get_by_role("button", name="Try this claim: candidate 2").click()
    wait_for_heading(page, "Dry run: this claim would be accepted")
    assert page.url.endswith("#dry-run")
    assert "204 No Content" in page.inner_text("#dry-run")
    if scripts:
        assert violations(page) == []


@pytest.mark.parametrize("scripts", [True, False])
def test_the_service_chooses_a_place(open_page, scripts):
    page = open_page(CANDIDATES, java_script_enabled=scripts)
    page.get_by_label("Strategy").select_option("pack")
    page.get_by_role("button", name="Let the service choose").click()
    wait_for_heading(page, "Dry run: this claim would be accepted")
    assert page.url.endswith("#dry-run")
    assert "group 1" in page.inner_text("#dry-run .taken-table")
    assert page.get_by_label("Strategy").input_value() == "pack"
    assert_fits_each_width(page)
    if scripts:
        assert violations(page) == []


def test_an_inventory_is_tried_on_the_page_of_its_provider(open_page):
    page = open_page("/providers/cn1-numa0")
    page.get_by_role("region", name="Try an inventory change").locator("summary").click()
    page.get_by_label("Total").fill("8")
    page.get_by_role("button", name="Try this change").click()
    wait_for_heading(page, "Dry run: this change would be accepted")
    assert "48 of 16" in page.inner_text("#dry-run")
    assert page.input_value("#VCPU-total") == "32"  # the dry run changed nothing
    assert violations(page) == []


# --- theme ---


def test_a_theme_is_chosen_and_kept(open_page):
    page = open_page("/", color_scheme="light")

    def ground():
        return page.evaluate("getComputedStyle(document.body).backgroundColor")

    light = ground()
    page.get_by_role("button", name="Theme: system").click()
    assert ground() == light
    page.get_by_role("button", name="Theme: light").click()
    dark = ground()
    assert dark != light
    page.reload()
    page.get_by_role("button", name="Theme: dark").wait_for()
    assert ground() == dark


# --- sign-in ---


@pytest.fixture(scope="module")
def keystone():
    with identity.keystone() as keystone:
        keystone.create_project("mine")
        keystone.create_user("operator", {"mine": ["admin"]})
        keystone.create_user("reader", {"mine": ["reader"]})
        yield keystone


@pytest.fixture(scope="module")
def by_token(module_database_url, uuids, keystone):
    """A service that accepts tokens of an Identity service."""
    access = {
        "auth_type": "password",
        "auth_url": keystone.url,
        "username": "placement",
        "password": identity.PASSWORD,
        "user_domain_id": "default",
        "project_name": "service",
        "project_domain_id": "default",
    }
    options = {"api": {"auth_strategy": "keystone"}, "console": CONSOLE, "keystone_authtoken": access}
    with running.embedded(module_database_url, options) as service:
        yield service


def sign_in(page, token):
    page.get_by_label("Token").fill(token)
    page.get_by_role("button", name="Sign in").click()


def test_a_token_is_sent_in_a_header_and_kept_in_the_tab(open_page, by_token, keystone, uuids):
    token = keystone.token("operator", "mine")
    page = open_page("/providers?name=gpu", f"{by_token.url}/console")
    addresses = []
    page.on("request", lambda request: addresses.append(request.url))
    assert page.inner_text("h1") == "Sign in"
    assert "cn1" not in page.content()
    sign_in(page, token)
    page.get_by_role("link", name="cn1-numa0-gpu", exact=True).click()
    page.wait_for_url(f"**/providers/{uuids['cn1-numa0-gpu']}")
    assert page.inner_text("h1") == "cn1-numa0-gpu"
    page.get_by_role("link", name="Overview").click()
    page.locator("canvas").wait_for()
    page.get_by_role("link", name="Providers").click()
    page.get_by_label("Name or uuid").fill("pool")
    page.get_by_role("button", name="Search").click()
    page.wait_for_url("**/providers?name=pool**")
    page.go_back()
    page.wait_for_url("**/providers")
    page.reload()
    page.get_by_role("heading", name="Providers").wait_for()
    assert page.evaluate("sessionStorage.length") == 1
    assert token not in page.evaluate("JSON.stringify([localStorage, document.cookie, location.href])")
    assert not [address for address in addresses if token in address]
    assert token not in by_token.log.read_text()
    page.get_by_role("button", name="Sign out").click()
    page.get_by_label("Token").wait_for()
    assert page.evaluate("sessionStorage.length") == 0


def test_a_claim_is_tried_with_a_token(open_page, by_token, keystone):
    page = open_page(CANDIDATES, f"{by_token.url}/console")
    sign_in(page, keystone.token("operator", "mine"))
    page.get_by_role("button", name="Try this claim: candidate 1").click()
    wait_for_heading(page, "Dry run: this claim would be accepted")
    assert page.evaluate("document.activeElement.id") == "dry-run"
    page.reload()
    page.get_by_role("heading", name="4 candidates").wait_for()
    assert page.locator("#dry-run").count() == 0


def test_a_token_of_another_tab_is_not_used(open_page, by_token, keystone):
    sign_in(page := open_page("/", f"{by_token.url}/console"), keystone.token("operator", "mine"))
    page.get_by_role("heading", name="Overview").wait_for()
    other_tab = page.context.new_page()
    other_tab.goto(f"{by_token.url}/console/")
    assert other_tab.inner_text("h1") == "Sign in"


def test_a_token_that_is_not_accepted_is_forgotten(open_page, by_token):
    page = open_page("/", f"{by_token.url}/console")
    for wrong in ("nonsense", "not a header\u00e9"):
        sign_in(page, wrong)
        page.get_by_role("alert").wait_for()
        assert page.evaluate("sessionStorage.length") == 0


def test_a_caller_without_the_role_sees_the_refusal(open_page, by_token, keystone):
    page = open_page("/", f"{by_token.url}/console")
    sign_in(page, keystone.token("reader", "mine"))
    page.get_by_role("heading", name="Forbidden").wait_for()
    assert page.get_by_role("button", name="Sign out").is_visible()


def test_axe_finds_nothing_in_the_form_to_sign_in(open_page, by_token):
    page = open_page("/", f"{by_token.url}/console")
    page.get_by_label("Token").wait_for()
    assert violations(page) == []
    photograph(page, "sign-in")


@pytest.fixture(scope="module")
def by_password(module_database_url, uuids):
    """A service with a password for ann."""
    file = children.run_directory() / "console-htpasswd"
    file.write_text(f"ann:{bcrypt.hashpw(b's3cret', bcrypt.gensalt(4)).decode()}\n")
    options = {
        "api": {"auth_strategy": "http_basic"},
        "baremetal": {"enabled": True},
        "oslo_middleware": {"http_basic_auth_user_file": file},
        "console": CONSOLE,
    }
    with running.embedded(module_database_url, options) as service:
        yield service


CREDENTIALS = {"username": "ann", "password": "s3cret"}


def test_a_password_is_asked_for_by_the_browser(open_page, by_password):
    address = f"{by_password.url}/console"
    page = open_page("/", address, http_credentials=CREDENTIALS)
    page.get_by_role("link", name="Providers").click()
    page.get_by_role("link", name="pool").click()
    page.get_by_role("heading", name="pool", exact=True, level=1).wait_for()
    assert "s3cret" not in by_password.log.read_text()
    reply = open_page("/", address, http_credentials={"username": "ann", "password": "x"})
    assert "a name and a password" in reply.inner_text("main")


def test_a_form_of_another_page_writes_nothing(open_page, by_password):
    """The browser adds ann's password to the request, and a form can contain a JSON document."""
    page = open_page("/", f"{by_password.url}/console", http_credentials=CREDENTIALS)
    nodes = f"{by_password.url}/baremetal/v1/nodes"
    field = """<input type="hidden" name='{"driver": "fake-hardware", "name": "forged' value='"}'>"""
    page.goto("about:blank")
    page.set_content(f'<form method="post" enctype="text/plain" action="{nodes}">{field}<button>Win</button></form>')
    with page.expect_response(lambda reply: reply.url == nodes and reply.status != 401) as response:
        page.get_by_role("button").click()
    assert response.value.status == 403
    assert requests.get(nodes, auth=("ann", "s3cret"), timeout=60).json() == {"nodes": []}


# --- the usage history, and the past ---


@pytest.fixture(scope="module")
def usage_shares(module_database_url, uuids):
    """Shares of the usage by project and by aggregate."""
    fleet.share(module_database_url)


@pytest.mark.parametrize(
    "path",
    [
        *(
            "/usage?by=project",
            "/usage?by=project&class=VCPU",
            "/usage?by=aggregate&class=VCPU",
            "/usage?from=yesterday",
        ),
        *("/?at={then}", "/providers/cn1?at={then}", "/?at=30d"),
    ],
)
def test_axe_finds_nothing_in_the_usage_and_the_past_and_they_fit_each_width(open_page, usage_shares, app, path):
    newest = send(app, "GET", "/v1/events?limit=1000")["events"][-1]["at"]
    page = open_page(path.format(then=newest), reduced_motion="reduce")
    page.wait_for_load_state("networkidle")
    unfold(page)
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        assert violations(page) == []
        photograph(page, f"{re.sub(r'[^a-z]+', '-', path)}-{scheme}")
    assert_fits_each_width(page)


def test_a_point_of_a_line_leads_to_the_past_with_the_keyboard(open_page, usage_shares, app):
    page = open_page("/usage?by=project&class=VCPU")
    point = page.locator(".plot a:has(circle)").last  # the service's own samples may have no shares
    at = point.get_attribute("href").partition("at=")[2].partition("&")[0]
    assert at.replace("T", " ").startswith(point.get_attribute("aria-label").partition(" UTC")[0])
    point.focus()
    assert page.evaluate("getComputedStyle(document.activeElement.querySelector('circle')).opacity") == "1"
    page.keyboard.press("Enter")
    page.wait_for_url("**/?at=*")
    # The samples of the tests are older than the first event.
    wait_for_heading(page, "Gone")


#: The class and the colour of each line of the pictures, or of each key of the legend.
COLOURS = """(tag) => [...document.querySelectorAll(`${tag}[class^="line-"]`)]
    .map((each) => [each.getAttribute("class"), getComputedStyle(each).stroke]).sort()"""


def test_each_line_has_the_colour_of_its_key(open_page, usage_shares):
    page = open_page("/usage?by=project&class=VCPU")
    lines, keys = (page.evaluate(COLOURS, tag) for tag in ("polyline", "line"))
    assert lines == keys
    assert len({colour for _, colour in lines}) == 2


def test_a_point_is_followed_with_a_token(open_page, by_token, keystone):
    page = open_page("/usage?class=VCPU&period=week", f"{by_token.url}/console")
    sign_in(page, keystone.token("operator", "mine"))
    wait_for_heading(page, "VCPU")
    page.locator(".plot a").first.click()
    wait_for_heading(page, "Gone")


def test_the_past_heat_map_links_to_past_provider_pages(open_page, usage_shares, app):
    newest = send(app, "GET", "/v1/events?limit=1000")["events"][-1]["at"]
    page = open_page(f"/?at={newest}")
    canvas = page.locator("canvas")
    canvas.wait_for()
    canvas.focus()
    page.keyboard.press("Home")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(f"/providers/.*at={newest}$"))
