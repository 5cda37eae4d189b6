"""`uppertail report`: runs in one interactive HTML file."""

import shlex
from pathlib import Path

from uppertail import records
from uppertail.cli import require_parent
from uppertail.cli.options import Values
from uppertail.errors import InputError
from uppertail.reports.groups import groups
from uppertail.reports.page import MARK, page


def main(config: Values) -> int:
    """Runs the command."""
    if not config.folders:
        raise InputError("Which runs? `uppertail report DIR...`, with folders that `uppertail train` wrote to.")
    folders = [Path(folder) for folder in config.folders]
    out = Path(config.out) if config.out else (folders[0] if len(folders) == 1 else Path()) / "report.html"
    states = [config.states] if isinstance(config.states, int) else list(config.states)
    if any(state < 0 for state in states):
        raise InputError(f"states is {states}: use the numbers of states, 0 or more.")
    runs = records.find_runs(folders)
    _require_free(out)
    made = groups(runs, states)
    if states and not any(group.details for group in made):
        raise InputError(
            f"states is {states}, but these runs recorded no distributions: train with --record distributions, or "
            "leave it out."
        )
    title = f"UpperTail: {'; '.join(dict.fromkeys(group.environment for group in made))}"
    content = page(title, made, f"uppertail report {shlex.join(config.folders)}")
    with records.write_errors(f"The report {out}", "make room, or choose another --out"):
        records.write_text(out, content)
    if not config.quiet:
        print(f"Report in {out} ({out.stat().st_size / 1000:,.0f} kB): open it in a browser.")
    return 0


def _require_free(out: Path) -> None:
    """Refuses to replace a file that is not a report."""
    if out.is_dir():
        raise InputError(f"The output {out} is a folder: give the name of a file, such as {out / 'report.html'}.")
    require_parent(out)
    if out.is_file():
        with out.open("rb") as file:
            if MARK.encode() not in file.read(200):
                raise InputError(f"The output {out} exists already, and is no report: choose another --out.")
