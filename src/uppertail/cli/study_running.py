"""The workers of `uppertail study`, here or as Slurm's jobs, and the summary at their end."""

import datetime
import json
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from uppertail.studies import progress
from uppertail.studies.definition import Definition
from uppertail.studies.folder import SUMMARY, StudyFolder

if TYPE_CHECKING:
    from collections.abc import Mapping

    from uppertail.studies.claims import Standing
    from uppertail.studies.summary import Settings


def run(definition: Definition, folder: StudyFolder, workers: int, quiet: bool) -> None:
    """Runs the cells that are left, in worker processes."""
    from rich.console import Console

    from uppertail.studies.crew import Crew

    claims = folder.claims()
    names = [cell.name for cell in definition.cells]
    left = folder.left(definition)
    crew = Crew([sys.executable, "-m", "uppertail.cli.study_worker", str(folder.path)], min(workers, left))
    with Console(stderr=True, quiet=quiet).status("") as status:

        def show() -> None:
            status.update(progress.line(claims.standings(names), workers, datetime.datetime.now(datetime.UTC)))

        try:
            crew.run(claims.claimed_by, show)
        except KeyboardInterrupt:
            if not quiet:
                print(f"Finished cells are kept: `uppertail study {folder.path}` goes on from there.")
            raise


def submit(definition: Definition, folder: StudyFolder, workers: int | None, say: Callable[[str], object]) -> int:
    """Submits workers to Slurm, and does not wait for them."""
    from uppertail.cli.study_worker import work_in
    from uppertail.studies import slurm

    jobs = slurm.submit(folder.path, work_in, workers or folder.left(definition), definition.slurm)
    say(f"Slurm has {len(jobs)} jobs: {', '.join(job.job_id for job in jobs)}.")
    say(f"`uppertail study {folder.path} --dry-run` says how far they are, and without --dry-run sums up at their end.")
    return 0


def conclude(definition: Definition, folder: StudyFolder, settings: "Settings", quiet: bool) -> int:
    """Writes study.json, shows a table, and lists the cells that failed."""
    from uppertail.cli.study_tables import show_cells, show_trials
    from uppertail.studies.search import search_results

    standings = folder.standings(definition)
    if definition.space is not None:
        document = search_results(folder.path, definition.space)
    else:
        document = _summary(definition, folder, settings, standings)
    folder.write(SUMMARY, json.dumps(document, indent=1, allow_nan=False) + "\n")
    if not quiet:
        (show_cells if definition.space is None else show_trials)(document)
        line = progress.line(standings, 1, datetime.datetime.now(datetime.UTC))
        print(f"{line}; all numbers in {folder.path / SUMMARY}")
    for name, standing in standings.items():
        if standing.state == "failed":
            print(f"uppertail: The cell {name} failed: {standing.message}", file=sys.stderr)
    return 0 if all(standing.state == "done" for standing in standings.values()) else 1


def _summary(
    definition: Definition, folder: StudyFolder, settings: "Settings", standings: "Mapping[str, Standing]"
) -> dict[str, Any]:
    from uppertail.studies.results import read_result
    from uppertail.studies.summary import summary

    over = [cell for cell in definition.cells if standings[cell.name].state in ("done", "failed")]
    results = {cell.name: result for cell in over if (result := read_result(folder.cell(cell)))}
    return summary(definition, settings, standings, results)
