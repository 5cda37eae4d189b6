"""Whose code runs: whether what a run's folder names may be imported."""

from pathlib import Path

from uppertail import records
from uppertail.cli.imports import foreign_names
from uppertail.errors import InputError, printable
from uppertail.yaml_files import read_options


def require_trust(folder: Path, trust: bool | None) -> None:
    """Refuses to run code that a folder names, unless it is ours, the user's own, or wanted (None: it never is)."""
    for name in (records.CONFIG, records.NEXT_CONFIG):
        path = folder / name
        if not path.is_file() or not (named := sorted(set(foreign_names(read_options(path))))):
            continue
        if trust or (trust is not None and records.made_here(path)):
            continue
        what = (
            f"The run in {folder} names code that is neither UpperTail's nor Gymnasium's, or that writes files "
            f"({printable(', '.join(named[:5]))[:300]})"
        )
        if trust is None:
            raise InputError(f"{what}, and this command runs none: train with --record distributions.")
        raise InputError(
            f"{what}, and you did not make it on this machine: read that code, then add --trust (in Python, "
            "trust=True)."
        )
