"""Every program and every command that README.md and the pages in docs/ show: programs run, commands are understood."""

import dataclasses
import importlib
import importlib.util
import json
import re
import shlex
import sys
import types
from pathlib import Path
from typing import Any, NamedTuple

import jax
import pytest

import uppertail
from uppertail.cli import main
from uppertail.cli.commands import COMMANDS

ROOT = Path(__file__).parents[1]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "docs").rglob("*.ipynb")])

BLOCK = re.compile(
    r"(?:^<!-- test(?:: needs (?P<needs>\S+)|: not run: (?P<why>[^\n]+?))?(?P<before>\n.*?\n)? ?-->\n+)?"
    r"^```(?P<kind>python|sh|\{code-cell\} ipython3)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
"""A block of a page. A comment before it may hold lines to run first, what it needs, or why it is not run."""

NOT_PYTHON = re.compile(r"^(:.*|%matplotlib inline)\n", re.MULTILINE)
"""Lines of a page's programs that are for the page or for Jupyter."""


class Block(NamedTuple):
    """A program of a page."""

    needs: str | None
    why: str | None
    before: str | None
    text: str


def text_of(page: Path) -> str:
    """The text of a page; the cells of a notebook that hold code are blocks, as on other pages."""
    text = page.read_text(encoding="utf-8")
    if page.suffix != ".ipynb":
        return text
    sources = [(cell["cell_type"], "".join(cell["source"])) for cell in json.loads(text)["cells"]]
    return "\n".join(f"```python\n{source}\n```" if kind == "code" else source for kind, source in sources)


def blocks(page: Path, *kinds: str) -> list[Block]:
    found = BLOCK.finditer(text_of(page))
    return [Block(*each.group("needs", "why", "before", "text")) for each in found if each["kind"] in kinds]


def named(pages: list[Path]) -> list[Any]:
    return [pytest.param(page, id=str(page.relative_to(ROOT))) for page in pages]


PROGRAMS = {page: found for page in PAGES if (found := blocks(page, "python", "{code-cell} ipython3"))}


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Runs are in an empty folder, and have if they are long, two seeds and 1,000 steps."""
    check = uppertail.Settings.__post_init__

    def fewer(settings: uppertail.Settings) -> None:
        check(settings)
        if settings.most_episodes > 300:
            object.__setattr__(settings, "steps", min(settings.steps or 1000, 1000))
            object.__setattr__(settings, "seeds", min(settings.seeds, 2))

    monkeypatch.setattr(uppertail.Settings, "__post_init__", fewer)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    if importlib.util.find_spec("IPython") is None:
        display = types.SimpleNamespace(HTML=str)
        monkeypatch.setitem(sys.modules, "IPython.display", display)


@pytest.mark.slow
@pytest.mark.parametrize("page", named(list(PROGRAMS)))
@pytest.mark.usefixtures("short")
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_every_program_runs(page: Path) -> None:
    names: dict[str, Any] = {"__name__": "document", "command": lambda line: main(shlex.split(line))}
    ran = 0
    for block in PROGRAMS[page]:
        if block.why or (block.needs and importlib.util.find_spec(block.needs) is None):
            continue
        for text in (block.before or "", NOT_PYTHON.sub("", block.text)):
            with jax.numpy_dtype_promotion("standard"):  # readers' own environments are not as strict as our tests
                exec(compile(text, str(page), "exec"), names)
        ran += 1
    if page.name == "parts.md":
        assert names["result"].record.episodes[0].returns.size == 64
        assert isinstance(names["Boltzmann"](), uppertail.ExplorationPolicy)
    if page.name == "notebook.ipynb":
        assert max(names["result"].record.greedy_returns) == 1.0  # its text says so
        assert names["z"].mean.shape == (15, 2)
    if not ran:
        pytest.skip(f"{page.name} needs {PROGRAMS[page][0].needs}")


def test_few_programs_are_exceptions() -> None:
    found = [block for each in PROGRAMS.values() for block in each]
    assert len(found) > 40
    assert sum(block.why is not None for block in found) <= 2
    assert sum(block.needs is not None for block in found) <= 6


def commands(page: Path) -> list[list[str]]:
    """The `uppertail` commands of a page, of its blocks and in its text."""
    text = text_of(page)
    lines = [line for block in blocks(page, "sh") for line in block.text.replace("\\\n", " ").splitlines()]
    lines += [" ".join(found.split()) for found in re.findall(r"`(uppertail [^`]+)`", text)]
    split = [shlex.split(line, comments=True) for line in lines if line.startswith("uppertail ")]
    return [[each for each in arguments[1:] if each != "..."] for arguments in split]


@pytest.fixture
def reader(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Stands for a reader's folder, in which there is a configuration file and a package of classes."""
    package: Any = types.ModuleType("my_package")
    package.Laplace = package.Logistic = Wide
    package.Boltzmann = Warm
    monkeypatch.setitem(sys.modules, "my_package", package)
    for file in (tmp_path / "FILE", tmp_path / "runs" / "first" / "config.yaml"):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("seeds: 3\n")
    monkeypatch.chdir(tmp_path)


@dataclasses.dataclass(frozen=True)
class Wide(uppertail.Gaussian):
    """A distribution of a reader's own."""

    width: float = 1.0


@dataclasses.dataclass(frozen=True)
class Warm(uppertail.EpsilonGreedy):
    """A policy of a reader's own."""

    temperature: float = 1.0


@pytest.mark.parametrize("page", named([page for page in PAGES if commands(page)]))
@pytest.mark.usefixtures("reader")
def test_every_command_is_understood(page: Path) -> None:
    for name, *arguments in commands(page):
        if not arguments or name in ("--version", "--help") or "--help" in arguments:
            continue
        asked = ["1" if argument == "N" else argument for argument in arguments]
        is_help = any(argument.endswith(".help") for argument in asked)
        assert COMMANDS[name].help(asked) if is_help else COMMANDS[name].parse(asked)


COLUMN = 88
"""How many letters of a line of code the site shows."""


@pytest.mark.parametrize("page", named([page for page in PAGES if ROOT / "docs" in page.parents]))
def test_comments_fit_the_column_of_the_site(page: Path) -> None:
    code = re.findall(r"^```[\w{].*?\n(.*?)^```$", text_of(page), re.MULTILINE | re.DOTALL)
    assert [line for line in "".join(code).splitlines() if re.search(r"(^|\s)# ", line) and len(line) > COLUMN] == []


def test_readme_is_a_first_page() -> None:
    """A reader's own environment comes first; what is more is on other pages."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.encode()) <= 6000
    numbers = re.sub("`[0-9a-f]{7}`", "", text)  # trees are none
    assert len(re.findall(r"\d[\d,.]*", numbers)) <= 40
    assert "MyEnvironment" in "".join(text.splitlines()[:30]) and "make test" in text
