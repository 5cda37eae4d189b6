"""How fast a report is in headless Chromium: until it can be used, and for each move of its slider.

Writes results/report.json. Needs the extra `browser` and a Chromium.
"""

import argparse
import json
import os
import shutil
import statistics
from pathlib import Path

from playwright.sync_api import CDPSession, sync_playwright

SLIDE = """() => {
  const slider = document.querySelector("[data-role=moment]"), times = [];
  return new Promise((done) => {
    let place = Number(slider.min);
    const move = () => {
      slider.value = place++;
      const began = performance.now();
      slider.dispatchEvent(new Event("input"));
      requestAnimationFrame(() => {
        document.body.offsetHeight; // lays the page out
        times.push(performance.now() - began);
        if (place <= Number(slider.max)) requestAnimationFrame(move); else done(times);
      });
    };
    move();
  });
}"""
"""Moves the slider from one end to the other: milliseconds from each move to the next frame, laid out."""


def processor_seconds(counts: CDPSession) -> float:
    """Processor time of the page's main thread: scripts, styles, layout."""
    metrics = counts.send("Performance.getMetrics")["metrics"]
    return next(each["value"] for each in metrics if each["name"] == "TaskDuration")


def main() -> None:
    """Opens the report a few times."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("report", type=Path)
    options.add_argument("--out", type=Path, default=Path("results/report.json"))
    options.add_argument("--openings", type=int, default=5)
    asked = options.parse_args()
    seconds, moves, busy = [], [], 0.0
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for _ in range(asked.openings):
            context = browser.new_context(
                offline=True, reduced_motion="reduce", viewport={"width": 1280, "height": 900}
            )
            page = context.new_page()
            counts = context.new_cdp_session(page)
            counts.send("Performance.enable", {"timeDomain": "threadTicks"})
            page.goto(asked.report.resolve().as_uri())
            page.wait_for_selector("html[data-ready]", timeout=60_000)
            seconds.append(round(page.evaluate("performance.now()") / 1000, 2))
            before = processor_seconds(counts)
            moves += page.evaluate(SLIDE)
            busy += processor_seconds(counts) - before
            context.close()
        version = browser.version
        browser.close()
    document = {
        "bytes": asked.report.stat().st_size,
        "seconds_until_all_is_drawn": seconds,
        "milliseconds_a_move": {
            "moves": len(moves),
            "median": round(statistics.median(moves), 1),
            "95%": round(statistics.quantiles(moves, n=20)[-1], 1),
            "processor time": round(1000 * busy / len(moves), 1),
        },
        "browser": f"Chromium {version}, headless, offline",
        "cpu_cores": os.cpu_count(),
        "load_average": [round(each, 1) for each in os.getloadavg()],
    }
    asked.out.write_text(json.dumps(document, indent=2) + "\n")
    print(json.dumps(document, indent=2))


if __name__ == "__main__":
    main()
