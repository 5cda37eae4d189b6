"""The package: its version, its public names, its extras."""

import importlib.metadata
import tomllib
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import pytest

import uppertail
from uppertail.cli import main
from uppertail.parts import PARTS

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize(("rows", "losses"), [(2, 3), (2.0, 2), ("2", 2)], ids=["sizes", "types", "texts"])
def test_every_test_checks_types_and_that_sizes_of_one_name_are_equal(rows: Any, losses: int) -> None:
    """Both sizes are named `count`."""
    assert uppertail.Uniform().update((), jnp.zeros(2, int), jnp.zeros(2)) == ()
    indices: Any = rows if isinstance(rows, str) else jnp.zeros(2, type(rows))
    with pytest.raises(TypeError, match="violates type hint"):
        uppertail.Uniform().update((), indices, jnp.zeros(losses))


def test_the_version_is_one_everywhere(capsys: pytest.CaptureFixture[str]) -> None:
    version = importlib.metadata.version("uppertail")
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"uppertail {version}\n"
    assert tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"] == version
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text()
    assert f"\n## [{version}] - " in (ROOT / "CHANGELOG.md").read_text()


def test_the_reference_has_every_public_name() -> None:
    text = (ROOT / "docs" / "api.md").read_text()
    names = [name for name in uppertail.__all__ if name != "loggers"]
    assert [name for name in names if f":: uppertail.{name}\n" not in text] == []


def test_every_extra_but_the_projects_own_is_in_all() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    own = {"all", "browser", "dev", "docs", "test", "test-extras"}
    own |= {"bsuite", "gymnax"}  # bsuite installs pandas, plotnine and scikit-image; gymnax holds other packages back
    own |= {"dm_control"}  # it installs 190 MB
    assert extras["all"] == [f"uppertail[{','.join(sorted(set(extras) - own))}]"]


def test_every_contract_of_a_part_and_every_built_in_kind_is_public() -> None:
    named = {part.contract.rpartition(".")[2] for part in PARTS.values()}
    named |= {name for part in PARTS.values() for name in part.kinds}
    assert named - set(uppertail.__all__) == set()
