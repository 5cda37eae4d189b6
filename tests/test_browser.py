"""A report in a real browser: it opens from disk without a network, and its controls change the picture.

Skipped where there is no Chromium or no driver; `make browser-test` requires both.
"""

import importlib
import importlib.util
import os
import shutil

import pytest

import reported
from uppertail.cli import main
from uppertail.reports import page

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
BROWSER = next((path for name in BROWSERS if (path := shutil.which(name))), None)
DRIVER = importlib.util.find_spec("playwright") is not None
CHARTS = all(importlib.util.find_spec(name) for name in page.NEEDED)
REQUIRED = os.environ.get("UPPERTAIL_BROWSER") == "required"

pytestmark = pytest.mark.skipif(
    not (BROWSER and DRIVER and CHARTS) and not REQUIRED,
    reason=f"needs a Chromium ({'found' if BROWSER else 'none of ' + ', '.join(BROWSERS)}) and the extra `browser`",
)


@pytest.fixture(scope="module")
def browser():
    with importlib.import_module("playwright.sync_api").sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    out = folder / "report.html"
    runs = [str(reported.run()), str(reported.elsewhere(folder))]
    assert main(["report", *runs, "--out", str(out), "--quiet"]) == 0
    return out


@pytest.fixture(params=[1200, 390], ids=["wide", "phone"])
def opened(request, browser, report):
    """The page, what its console complained of, and what it asked a network for."""
    context = browser.new_context(viewport={"width": request.param, "height": 900}, offline=True)
    shown, wrong = context.new_page(), []
    shown.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
    shown.on("pageerror", lambda error: wrong.append(str(error)))
    shown.on("request", lambda asked: None if asked.url.startswith(("file:", "data:")) else wrong.append(asked.url))
    shown.goto(report.as_uri())
    shown.wait_for_selector("html[data-ready]", timeout=120_000)
    yield shown, wrong, request.param
    context.close()


def picture(shown, chart):
    """The first section's chart of this name."""
    return shown.locator(f'section >> nth=0 >> [data-chart="{chart}"] svg').inner_html()


def control(shown, role):
    return shown.locator(f'section >> nth=0 >> [data-role="{role}"]')


def test_the_report_opens_and_its_controls_change_the_picture(opened):
    shown, wrong, width = opened
    assert shown.evaluate("document.documentElement.scrollWidth") <= width
    assert shown.locator("section").count() == 2
    assert shown.locator("section >> nth=1 >> text=recorded no distributions").is_visible()

    slider, before = control(shown, "moment"), {name: picture(shown, name) for name in ("density", "upper", "grid")}
    said = control(shown, "when").inner_text()
    slider.focus()
    shown.keyboard.press("Home")  # by the keyboard alone
    shown.wait_for_function("() => document.querySelector('[data-role=when]').textContent.startsWith('episode 0,')")
    shown.wait_for_timeout(400)
    assert control(shown, "when").inner_text() != said
    assert all(picture(shown, name) != before[name] for name in before)

    early = picture(shown, "density")
    control(shown, "play").click()
    shown.wait_for_timeout(1500)
    assert picture(shown, "density") != early
    if control(shown, "play").inner_text() == "Pause":
        control(shown, "play").click()
    assert control(shown, "play").inner_text() == "Play"

    control(shown, "seeds").check()
    lines = picture(shown, "curves")
    control(shown, "seeds").uncheck()
    shown.wait_for_timeout(400)
    assert picture(shown, "curves") != lines

    control(shown, "colour").select_option("upper")
    control(shown, "state").select_option("1")
    control(shown, "detail").select_option("1")
    control(shown, "zoom").check()
    shown.wait_for_timeout(400)
    assert wrong == []


def test_a_stretch_that_is_brushed_or_typed_is_followed(opened):
    shown, wrong, _ = opened
    before = {name: picture(shown, name) for name in ("upper", "solved")}
    chart = shown.locator('section >> nth=0 >> [data-chart="curves"] svg')
    chart.scroll_into_view_if_needed()
    box = chart.bounding_box()
    assert box
    shown.mouse.move(box["x"] + 0.4 * box["width"], box["y"] + 0.6 * box["height"])
    shown.mouse.down()
    shown.mouse.move(box["x"] + 0.7 * box["width"], box["y"] + 0.6 * box["height"], steps=6)
    shown.mouse.up()
    shown.wait_for_timeout(600)
    start, end = (float(control(shown, role).input_value()) for role in ("start", "end"))
    assert 0 < start < end < 150
    assert all(picture(shown, name) != before[name] for name in before)
    control(shown, "whole").click()
    shown.wait_for_timeout(600)
    assert control(shown, "end").input_value() == "150"
    control(shown, "end").fill("50")
    control(shown, "end").press("Enter")
    shown.wait_for_timeout(600)
    assert picture(shown, "upper") != before["upper"]
    size = shown.viewport_size
    shown.set_viewport_size({"width": size["width"] - 30, "height": size["height"]})  # a phone that is turned
    shown.wait_for_timeout(800)
    assert control(shown, "end").input_value() == "50"
    assert wrong == []


def test_it_prints_without_controls(opened):
    shown, wrong, _ = opened
    shown.emulate_media(media="print")
    assert not shown.locator(".controls").first.is_visible()
    assert shown.locator('[data-chart="curves"] svg').first.is_visible()
    assert wrong == []
