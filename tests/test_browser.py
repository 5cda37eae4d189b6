"""A report in a real browser: it opens from disk without a network, and its controls change the picture.

Skipped where there is no Chromium or no driver; `make browser-test` requires both.
"""

import contextlib
import importlib
import importlib.util
import os
import re
import shutil

import numpy as np
import pytest

import reported
from uppertail.cli import main
from uppertail.records import RunFolder

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
BROWSER = next((path for name in BROWSERS if (path := shutil.which(name))), None)
DRIVER = importlib.util.find_spec("playwright") is not None
EXPLAINED = ["gray: exact", "bands: 95%", "few and old"]
REQUIRED = os.environ.get("UPPERTAIL_BROWSER") == "required"

pytestmark = pytest.mark.skipif(
    not (BROWSER and DRIVER) and not REQUIRED,
    reason=f"needs a Chromium ({'found' if BROWSER else 'none of ' + ', '.join(BROWSERS)}) and the extra `browser`",
)


@pytest.fixture(scope="module")
def browser():
    with importlib.import_module("playwright.sync_api").sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A Chain of length 4 whose seeds succeed."""
    folder = tmp_path_factory.mktemp("run") / "run"
    asked = ["--env.length", "4", "--seeds", "2", "--episodes", "150", "--record", "distributions", "--quiet"]
    assert main(["train", *asked, "--out", str(folder)]) == 0
    return folder


@pytest.fixture(scope="module")
def report(run, tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    out = folder / "report.html"
    runs = [str(run), str(reported.elsewhere(folder))]
    assert main(["report", *runs, "--out", str(out), "--quiet"]) == 0
    return out


@pytest.fixture(params=[1200, 400], ids=["wide", "phone"])
def opened(request, browser, report):
    """The page, what its console complained of, and what it asked a network for."""
    with opened_page(browser, report, request.param) as (shown, wrong):
        yield shown, wrong, request.param


@contextlib.contextmanager
def opened_page(browser, report, width=1200, **options):
    """A page, and what its console said and what it asked a network for; by default nothing plays by itself."""
    size = {"width": width, "height": 900}
    context = browser.new_context(**{"viewport": size, "offline": True, "reduced_motion": "reduce", **options})
    shown, wrong = context.new_page(), []
    shown.on("console", lambda message: wrong.append(message.text))
    shown.on("pageerror", lambda error: wrong.append(str(error)))
    shown.on("request", lambda asked: None if asked.url.startswith(("file:", "data:")) else wrong.append(asked.url))
    shown.goto(report.as_uri())
    shown.wait_for_selector("html[data-ready]", timeout=120_000)
    yield shown, wrong
    context.close()


def picture(shown, chart):
    """The first section's chart of this name."""
    return shown.locator(f'section >> nth=0 >> [data-chart="{chart}"] > svg').inner_html()


def control(shown, role):
    return shown.locator(f'section >> nth=0 >> [data-role="{role}"]')


def test_the_report_opens_and_its_controls_change_the_picture(opened):
    shown, wrong, width = opened
    assert shown.evaluate("document.documentElement.scrollWidth") <= width
    for heading in ("h1", "h2"):  # an environment of a package has a name without spaces
        shown.evaluate("([name, text]) => document.querySelector(name).append(text)", [heading, "package.module:" * 9])
    assert shown.evaluate("document.documentElement.scrollWidth") <= width
    assert shown.locator("section").count() == 2
    assert shown.locator("section >> nth=1 >> text=recorded no distributions").is_visible()

    slider, before = control(shown, "moment"), {name: picture(shown, name) for name in ("density", "upper", "map")}
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

    control(shown, "color").select_option("upper")
    control(shown, "state").select_option("1")
    control(shown, "detail").select_option("1")
    control(shown, "zoom").check()
    shown.wait_for_timeout(400)
    assert wrong == []


def test_a_stretch_that_is_brushed_or_typed_is_followed(opened):
    shown, wrong, _ = opened
    before = {name: picture(shown, name) for name in ("upper", "solved")}
    chart = shown.locator('section >> nth=0 >> [data-chart="curves"] > svg')
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
    for chart in ("density", "policies", "upper", "curves"):
        place = shown.locator(f'section >> nth=0 >> [data-chart="{chart}"]')
        assert place.locator("> svg").get_attribute("width") == str(place.evaluate("each => each.clientWidth"))
    assert wrong == []


def test_it_prints_without_controls(opened):
    shown, wrong, _ = opened
    shown.emulate_media(media="print")
    assert not shown.locator(".controls").first.is_visible()
    assert shown.locator('[data-chart="curves"] svg').first.is_visible()
    assert wrong == []


def test_it_opens_where_actions_differ_and_stays_there_where_motion_is_not_wanted(opened, run):
    shown, wrong, _ = opened
    recorded = RunFolder(run).distributions
    assert recorded
    opens = int(recorded.episode[np.ptp(recorded.std[:, 0], axis=2).sum(axis=1).argmax(), 0])
    assert 0 < opens < 150
    shown.locator('[data-role="panels"]').first.scroll_into_view_if_needed()
    shown.wait_for_timeout(2000)
    assert control(shown, "when").inner_text().startswith(f"episode {opens}, ")
    assert wrong == []


def test_it_plays_by_itself_once(browser, report):
    with opened_page(browser, report, reduced_motion="no-preference") as (shown, wrong):
        opening = control(shown, "when").inner_text()
        shown.locator('[data-role="panels"]').first.scroll_into_view_if_needed()
        shown.wait_for_function("() => document.querySelector('[data-role=play]').textContent === 'Pause'")
        shown.wait_for_function("() => document.querySelector('[data-role=when]').textContent.includes('step 0')")
        shown.wait_for_function(
            "() => document.querySelector('[data-role=play]').textContent === 'Play'", timeout=60_000
        )
        assert control(shown, "when").inner_text() == opening
        shown.wait_for_timeout(1500)
        assert control(shown, "play").inner_text() == "Play"
        assert wrong == []


def test_a_cell_of_the_map_that_is_clicked_shows_its_distributions(opened):
    shown, wrong, _ = opened
    control(shown, "state").select_option("0")
    before = picture(shown, "upper")
    shown.locator('section >> nth=0 >> [data-chart="map"] [data-state="2"]').click()
    shown.locator('section >> nth=0 >> [data-chart="density"] .chosen >> text="state 2"').wait_for()
    assert picture(shown, "upper") != before
    assert shown.locator('section >> nth=0 >> [data-chart="map"] .chosen').get_attribute("data-state") == "2"
    assert "★" in shown.locator('section >> nth=0 >> [data-chart="map"] [data-state="3"]').inner_html()
    assert wrong == []


def test_two_seeds_stand_beside_each_other_under_one_slider(opened):
    shown, wrong, width = opened
    control(shown, "beside").select_option("1")
    panels = shown.locator("section >> nth=0 >> .panel")
    boxes = [panels.nth(place).bounding_box() for place in range(2)]
    assert (boxes[0]["y"] == boxes[1]["y"]) == (width > 1000)  # below each other on a phone
    before = [panels.nth(place).locator('[data-chart="density"]').inner_html() for place in range(2)]
    control(shown, "moment").focus()
    shown.keyboard.press("Home")
    shown.wait_for_timeout(400)
    after = [panels.nth(place).locator('[data-chart="density"]').inner_html() for place in range(2)]
    assert before[0] != after[0]
    assert before[1] != after[1]
    assert shown.evaluate("document.documentElement.scrollWidth") <= width
    assert wrong == []


def test_it_is_dark_where_the_system_is(browser, report):
    def luminances(scheme):
        with opened_page(browser, report, color_scheme=scheme) as (shown, wrong):
            paper = shown.evaluate("getComputedStyle(document.body).backgroundColor")
            ink = shown.evaluate("getComputedStyle(document.querySelector('svg text')).fill")
            assert wrong == []
        return [sum(map(int, re.findall(r"\d+", color)[:3])) / 765 for color in (paper, ink)]

    paper, ink = luminances("light")
    assert paper > 0.9
    assert ink < 0.5
    paper, ink = luminances("dark")
    assert paper < 0.2
    assert ink > 0.5


def test_a_vector_is_seen_over_two_of_its_numbers(browser, tmp_path):
    run = ["train", "--env", "Gym", "--env.id", "MountainCar-v0", "--env.num_features", "16", "--seeds", "1"]
    run += ["--steps", "256", "--record", "distributions", "--out", str(tmp_path / "run"), "--quiet"]
    assert main(run) == 0
    assert main(["report", str(tmp_path / "run"), "--quiet"]) == 0
    colored = """() => {
        const copy = new OffscreenCanvas(240, 240).getContext("2d");
        copy.drawImage(document.querySelector("[data-role=evidence]"), 0, 0);
        return copy.getImageData(0, 0, 240, 240).data.reduce((sum, part, k) => sum + (k % 4 === 3 ? part : 0), 0);
    }"""
    with opened_page(browser, tmp_path / "run" / "report.html") as (shown, wrong):
        control(shown, "moment").focus()
        shown.keyboard.press("Home")
        shown.wait_for_timeout(400)
        before = shown.evaluate(colored)
        shown.keyboard.press("End")
        shown.wait_for_timeout(400)
        assert 0 < shown.evaluate(colored) < before  # there is less of the wide start left
        assert "position, from -1.2 to 0.6" in control(shown, "axes").inner_text()
        assert "left" in control(shown, "legend").inner_text()
        words = shown.locator("section").inner_text()
        assert not [each for each in EXPLAINED if each in words]  # one seed, no exact returns, no counts
        assert wrong == []


def test_captions_explain_what_is_drawn(opened):
    shown, wrong, _ = opened
    words = shown.locator("section >> nth=0").inner_text()
    assert [each for each in EXPLAINED if each in words] == EXPLAINED
    assert wrong == []
