"""A worker process of `uppertail study`: `python -m uppertail.cli.study_worker FOLDER`."""

import functools
import os
import sys
from pathlib import Path

from uppertail.cli import main as command
from uppertail.errors import InputError
from uppertail.studies.crew import SETTINGS, end_with_parent


def work_in(folder: str) -> int:
    """Runs a study's cells until all are done or failed, and returns the exit code."""
    from uppertail.studies.definition import Definition
    from uppertail.studies.folder import StudyFolder
    from uppertail.studies.search import Search, open_study
    from uppertail.studies.worker import run_cell, work

    for name, value in SETTINGS.items():
        os.environ.setdefault(name, value)
    study = StudyFolder(Path(folder))
    try:
        definition = Definition.read(study.definition)
        run = functools.partial(run_cell, study.cells, command)
        if definition.space is not None:
            run = Search(open_study(study.path), definition.space, study.cells, command)
        return 0 if work(definition.cells, study.claims(), run) else 130
    except InputError as error:
        print(f"uppertail: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    end_with_parent()
    sys.exit(work_in(sys.argv[1]))
