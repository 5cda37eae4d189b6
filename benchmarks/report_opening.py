"""How long a report takes to open in headless Chromium: until all charts are drawn, and processor time of the page.

Writes results/report.json. Needs the extra `browser` and a Chromium.
"""

import argparse
import json
import os
import shutil
from pathlib import Path

from playwright.sync_api import sync_playwright

OPENINGS = 5


def main() -> None:
    """Opens the report a few times."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("report", type=Path)
    options.add_argument("--out", type=Path, default=Path("results/report.json"))
    asked = options.parse_args()
    seconds, processor = [], []
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for _ in range(OPENINGS):
            context = browser.new_context(offline=True, viewport={"width": 1200, "height": 900})
            page = context.new_page()
            session = context.new_cdp_session(page)
            session.send("Performance.enable", {"timeDomain": "threadTicks"})
            page.goto(asked.report.resolve().as_uri())
            page.wait_for_selector("html[data-ready]", timeout=60_000)
            seconds.append(round(page.evaluate("performance.now()") / 1000, 2))
            metrics = {each["name"]: each["value"] for each in session.send("Performance.getMetrics")["metrics"]}
            processor.append(round(metrics["TaskDuration"], 2))
            context.close()
        version = browser.version
        browser.close()
    document = {
        "bytes": asked.report.stat().st_size,
        "seconds_until_all_is_drawn": seconds,
        "processor_seconds_of_the_page": processor,
        "browser": f"Chromium {version}, headless, offline",
        "cpu_cores": os.cpu_count(),
        "load_average": [round(each, 1) for each in os.getloadavg()],
    }
    asked.out.write_text(json.dumps(document, indent=2) + "\n")
    print(json.dumps(document, indent=2))


if __name__ == "__main__":
    main()
