"""One HTML file, with its charts, data and scripts in it: it opens from a disk, without a network."""

import base64
import gzip
import html
import importlib.resources
import json
import shlex
import string
from typing import Any

import yaml

from uppertail.parts import PARTS
from uppertail.records import RunFolder
from uppertail.records.folder import CONFIG
from uppertail.reports.groups import NOTHING, Group

COLUMNS = {
    "times minimum": "<em>Times minimum</em>: the first success, in multiples of what perfect memory needs on average.",
    "stays solved": "<em>Stays solved</em>: the share of successes after a seed was solved, for the worst seed.",
}
"""What a column of the table means, where its name alone does not say it."""

MARK = "<!-- uppertail report -->"  # in the first line of a report's file


def page(title: str, groups: list[Group], command: str) -> str:
    """The page about some runs, made by a command."""
    data = json.dumps({"groups": [each.document() for each in groups]}, separators=(",", ":"), allow_nan=False)
    runs = sum(len(group.runs) for group in groups)
    parts = {
        "title": html.escape(title),
        "subtitle": f"{runs} run{'s'[: runs > 1]}. Made by <code>{html.escape(command)}</code>; "
        "nothing in it comes from a network.",
        "css": _file("page.css"),
        "sections": "\n".join(_section(number, group) for number, group in enumerate(groups)),
        "data": base64.b64encode(gzip.compress(data.encode(), mtime=0)).decode(),
        "script": "".join(_file(name) for name in ("charts.js", "panel.js", "page.js")),
    }
    return string.Template(_file("page.html")).substitute(parts)


def _section(number: int, group: Group) -> str:
    rows = _without_empty(group.table)
    parts = {
        "id": f"environment-{number}",
        "number": str(number),
        "environment": html.escape(group.environment),
        "table": _table(rows),
        "columns": " ".join(words for name, words in COLUMNS.items() if name in rows[0]),
        "made": "\n".join(_provenance(label, run) for label, run in zip(group.methods, group.runs, strict=True)),
    }
    return string.Template(_file("section.html")).substitute(parts)


def _without_empty(rows: list[dict[str, str]]) -> list[dict[str, str]]:
    """The rows of a table, without the columns that are empty in all of them."""
    full = [name for name in rows[0] if any(row[name] != NOTHING for row in rows)]
    return [{name: row[name] for name in full} for row in rows]


def _table(rows: list[dict[str, str]]) -> str:
    head = "".join(f'<th scope="col">{html.escape(name)}</th>' for name in rows[0])
    body = "".join(f"<tr>{''.join(f'<td>{html.escape(value)}</td>' for value in row.values())}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _provenance(label: str, run: RunFolder) -> str:
    """Settings, versions, hardware and the command of a run, folded."""
    summary = run.summary
    hardware = ", ".join(f"{name} {value}" for name, value in summary["hardware"].items())
    given = run.config or {name: summary[name] for name in (*PARTS, "settings")}
    settings = yaml.safe_dump(given, sort_keys=False, allow_unicode=True)
    first, last = run.seeds[0], run.seeds[-1]
    seeds = f"seed {first}" if first == last else f"{len(run.seeds)} seeds, from {first} to {last}"
    again = f"uppertail train --config {shlex.quote(str(run.path / CONFIG))} --out NEW"
    times = f"{summary['wall_seconds']:,.0f} s, {summary['compile_seconds']:,.0f} s of it compiling"
    name = label if label == run.title else f"{label} ({run.title})"
    return (
        f"<details><summary>{html.escape(name)}: {times}</summary>"
        f"<p>{html.escape(hardware)}; {summary['env_steps']:,} environment steps of {seeds}. "
        f"The command that makes it again:</p><pre>{html.escape(again)}</pre>"
        f"<p>Its settings (null: left open):</p><pre>{html.escape(settings)}</pre>"
        f"{_chosen(given, summary.get('plan', {}))}</details>"
    )


def _chosen(given: dict[str, Any], plan: dict[str, dict[str, Any]]) -> str:
    """What a plan chose where it was left open, and why."""
    chosen = [
        f"{name}: {json.dumps(each['value'])}{f' ({reason})' if (reason := each.get('reason')) else ''}"
        for name, each in plan.items()
        if given.get(name) != each["value"]
    ]
    lines = html.escape("\n".join(chosen))
    return f"<p>What was chosen where it was left open:</p><pre>{lines}</pre>" if chosen else ""


def _file(name: str) -> str:
    return importlib.resources.files("uppertail.reports").joinpath(name).read_text(encoding="utf-8")
