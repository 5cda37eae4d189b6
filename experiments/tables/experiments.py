"""The experiments themselves: what each says, how it is run, and on which seeds anything was chosen."""

from experiments.provenance import UNKNOWN, entries
from experiments.registry import EXPERIMENTS


def index() -> list[list[str]]:
    """A row for each experiment; how many of its results were born before births were noted."""
    rows = [["name", "what", "chosen on", "reported on", "pages", "hours", "results", "of unknown birth"]]
    for name, each in EXPERIMENTS.items():
        files = list(each.files())
        unknown = sum(entries(path.parent).get(path.name, {}).get("birth") == UNKNOWN for path in files)
        pages = ", ".join("README" if page == "README" else f"[{page}]({page}.md)" for page in each.pages)
        hours = "-" if each.hours is None else f"{each.hours:g}"
        rows.append([
            f"`{name}`", each.about, each.chosen_on, each.reported_on, pages, hours, str(len(files)), str(unknown),
        ])  # fmt: skip
    return rows
