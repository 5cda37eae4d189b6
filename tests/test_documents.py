"""Tables and numbers of pages are those of the results, and examples of public names hold."""

import doctest
import re
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest

import uppertail
from experiments import documents
from experiments.certificates import faults
from uppertail import loggers
from uppertail.networks.perceptrons import Perceptrons

DOCS = Path(__file__).parents[1] / "docs"


def test_pages_and_results_are_as_they_were_made() -> None:
    """`python -m experiments check`; `python -m experiments tables` writes pages anew."""
    assert list(faults()) == []


@pytest.mark.parametrize(
    ("name", "first_number"),
    [
        ("README.md", r"(<!-- table: [\w-]+ -->\n\n\|.*\n\|.*\n\|.*?)\d+"),
        ("docs/minigrid.md", r"(<!-- value: minigrid.median.max -->)[\d,]+"),
        ("docs/comparison.md", r"(<!-- table: table-first -->\n\n\|.*\n\|.*\n\|.*?)\d+"),
    ],
)
def test_a_number_that_drifted_is_put_right(name: str, first_number: str) -> None:
    text = (DOCS.parent / name).read_text(encoding="utf-8")
    wrong = re.sub(first_number, r"\g<1>98765", text, count=1)
    assert wrong != text and documents.renewed(wrong) == text


def test_methods_that_the_table_of_equations_names_are_in_the_code() -> None:
    code = [path.read_text(encoding="utf-8") for path in (DOCS.parent / "src").rglob("*.py")]
    named = set(re.findall(r"`([A-Z]\w+)\.(\w+)`", (DOCS / "equations.md").read_text(encoding="utf-8")))
    assert len(named) > 20
    for owner, name in named:
        files = [text for text in code if re.search(rf"^class {owner}\b", text, re.M)]
        assert any(re.search(rf"^    (def {name}\b|{name}:)", text, re.M) for text in files), f"{owner}.{name}"


TRAINED_WITH = (
    "ActionReturns",
    "GradientDescent",
    "Progress",
    "Stop",
    "TrainingDivergedError",
    "TrainingFailedError",
    "TrainingResult",
    "load",
    "train",
)
"""Names whose examples train."""


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if name in TRAINED_WITH else ()) for name in uppertail.__all__]
)
def test_every_public_name_has_an_example_and_it_holds(name: str) -> None:
    runner = tried(getattr(uppertail, name))
    assert runner.tries > 0
    assert runner.failures == 0


@pytest.mark.parametrize("named", [Perceptrons, loggers.Logger, loggers.named])
def test_so_have_the_other_names_of_the_reference(named: Any) -> None:
    runner = tried(named)
    assert runner.tries > 0
    assert runner.failures == 0


def tried(named: Any) -> doctest.DocTestRunner:
    """What came of the examples of a name."""
    runner, examples = doctest.DocTestRunner(), doctest.DocTestFinder(recurse=False)
    for each in examples.find(named, named.__name__, globs={"jax": jax, "jnp": jnp, "ut": uppertail}):
        runner.run(each)
    return runner
