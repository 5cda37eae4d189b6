"""The table of the parts of a run, from the registry and from their contracts."""

from uppertail.parts import PARTS


def parts() -> list[list[str]]:
    """A row for each part: its option, its contract with the methods that must be written, and its built-in kinds."""
    rows = [["option", "contract", "must be written", "built in"]]
    for option, part in PARTS.items():
        contract = part.load()
        written = sorted(contract.__abstractmethods__)
        names = ", ".join(f"`{name}`" for name in written)
        rows.append([f"`--{option}`", f"`{contract.__name__}`", f"{len(written)}: {names}", ", ".join(part.kinds)])
    return rows
