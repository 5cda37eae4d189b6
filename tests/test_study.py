"""`uppertail study`: what is refused before anything runs, and small studies from beginning to end."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
import yaml

from test_study_work import leave_run, save_episodes
from uppertail.cli import main
from uppertail.cli import study as command
from uppertail.cli.study_tables import show_cells
from uppertail.errors import InputError
from uppertail.records import RunFolder, write_summary
from uppertail.records.run_folder import title_of
from uppertail.studies.cells import Cell, Outcome, differences, environment_of, label, method_of, name_of
from uppertail.studies.definition import Definition
from uppertail.studies.folder import effective

DOCUMENTATION = Path(__file__).parents[1] / "docs"
TINY = {"seeds": 1, "episodes": 3, "network.width": 4, "replay_size": 99}


pytestmark = pytest.mark.usefixtures("own_folder")


@pytest.fixture
def inline(monkeypatch):
    """Cells are worked on in this process; what trains is replaced."""
    monkeypatch.setattr(command, "_workers", lambda config: 1)
    return lambda trains: monkeypatch.setattr(command, "train", trains)


def study(**document):
    return written(yaml.safe_dump(document, sort_keys=False))


def written(text):
    with open("mine.yaml", "w", encoding="utf-8") as file:  # noqa: PTH123
        file.write(text)
    return "mine.yaml"


def read(**document):
    return Definition.read(Path(study(**document))).cells


def test_a_grid_is_a_product_and_cells_are_combined_with_it():
    cells = read(
        base={"seeds": 3, "env": "Chain"},
        grid={"env.length": [5, 10]},
        cells=[{"policy": "UCB"}, {"name": "as released", "distribution": "GaussianMixture", "seeds": 4}],
    )
    assert [title_of(cell.name) for cell in cells] == [
        "policy=UCB, env.length=5",
        "as released, env.length=5",
        "policy=UCB, env.length=10",
        "as released, env.length=10",
    ]
    assert [(label(environment_of(cell.varying)), label(method_of(cell.varying))) for cell in cells[:2]] == [
        ("env.length=5", "UCB"),
        ("env.length=5", "as released"),
    ]
    assert cells[3].options == {"seeds": 4, "env": "Chain", "distribution": "GaussianMixture", "env.length": 10}
    assert cells[1].arguments[0] == "--seeds=4"


def test_options_are_arguments():
    cell = Cell("", {"policy.low": 0.1, "policy": "UCB", "steps": None, "env.slip": 0, "logger": ["a.B"]}, {})
    assert cell.arguments == [
        "--policy.low=0.1",
        "--policy=UCB",
        "--steps=null",
        "--env.slip=0",
        '--logger=["a.B"]',
    ]


def test_names_are_those_of_folders_and_differ_where_options_do():
    assert name_of({"env.length": 5, "policy": "UCB"}) == "env.length=5,policy=UCB"
    odd = [name_of({"env.id": value}) for value in ("ALE/Pong", "ALE-Pong", "ALE\\Pong", "..", "a" * 300, "a" * 301)]
    assert len(set(odd)) == len(odd)
    assert all("/" not in name and "\\" not in name and len(name) < 140 for name in odd)
    assert [title_of(name) for name in odd[:3]] == ["env.id=ALE/Pong", "env.id=ALE-Pong", "env.id=ALE\\Pong"]


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ({"grids": {}}, r"it is not a study: it has none of the keys base, grid, cells"),
        ({"base": {}, "gird": {"seed": [0]}}, r"no key 'gird'.* Did you mean grid\?"),
        ({"grid": {}}, "grid is empty"),
        ({"grid": {"env.length": []}}, "grid has no values of env.length"),
        ({"grid": {"env.length": 5}}, "grid has env.length: 5, but it must be a list"),
        ({"grid": [1]}, "grid is .*must hold options"),
        ({"base": {"seeds": 2}}, "neither grid nor cells"),
        ({"base": {"out": "x"}, "grid": {"seed": [0]}}, "base has out, which is no setting of a run"),
        ({"cells": []}, "cells must be a list"),
        ({"cells": [{}]}, "one of cells is empty"),
        ({"grid": {"env.length": [5, 5]}}, "2 cells have the name 'env.length=5'"),
        ({"grid": {"seed": [1]}, "cells": [{"seed": 2}]}, "seed is in grid and in cells"),
        ({"grid": {"--seed": [1]}}, "'--seed', which is not the name of an option"),
        ({"grid": {"seed": [1]}, "jobs": [4]}, "jobs is \\[4\\], but it must hold parameters"),
        (
            {"grid": {key: list(range(1000)) for key in "abc"}},
            "it has 1,000,000,000 cells: use 10,000 or fewer, or a search",
        ),
    ],
)
def test_what_is_no_study_is_said(document, said):
    with pytest.raises(InputError, match=f"In the study 'mine.yaml': .*{said}"):
        read(**document)


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ({"grid": {"env.lenght": [5]}}, "In the cell env.lenght=5: Chain has no setting 'lenght'"),
        ({"grid": {"widht": [5]}}, r"In the cell widht=5: There is no option --widht. Did you mean --network.width\?"),
        ({"grid": {"distribution": ["Gaussian", "Gausian"]}}, r"Unknown distribution 'Gausian'.*Did you mean Gaussian"),
        ({"grid": {"env.length": [5, 0]}}, "In the cell env.length=0: length is 0, but"),
        ({"grid": {"env.length": [5, 100]}, "cells": [{"policy": "UCB"}, {"name": "b"}]}, "have the same settings"),
        ({"grid": {"network.width": [8, 0]}}, "In the cell network.width=0: width is 0: use a whole number, 1 or more"),
        ({"grid": {"seed": [0]}, "base": {"checkpoint_every": 0}}, "checkpoint_every is 0"),
        ({"grid": {"seed": [0]}, "base": {"logger": "nobody.Here"}}, "nobody"),
    ],
)
def test_every_cell_is_checked_before_anything_runs(document, said, tmp_path, refused):
    error = refused(["study", study(**document), "--out", "there"])
    assert re.search(said, error), error
    assert not (tmp_path / "there").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "Which study?"),
        (["nowhere.yaml"], "The study 'nowhere.yaml' cannot be read"),
        (["torn.yaml"], "not valid YAML at line 1"),
        (["mine.yaml", "--workers", "0"], "workers is 0"),
        (["mine.yaml", "--workers", "2", "--scheduler", "tcp://there:1"], "tcp://there:1 has workers already"),
        (["folder"], "folder is not the folder of a study"),
        (["mine.yaml", "--out", "folder"], "exists and is not a study's folder"),
        (["mine.yaml", "--out", "torn.yaml"], "exists and is not a study's folder"),
        (["--compare", "policy=UCB", "policy=Thompson"], "Of which study are the cells with policy=UCB?"),
        (["--compare", "folder", "folder"], "folder is neither the folder of a run nor of a study"),
    ],
)
def test_bad_calls_are_said(arguments, said, tmp_path, refused):
    study(grid={"seed": [0]})
    (tmp_path / "torn.yaml").write_text("grid: [")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "thesis.tex").touch()
    assert said in refused(["study", *arguments])


@pytest.mark.slow
def test_the_files_in_the_documentation_are_studies(capsys):
    pytest.importorskip("optuna", reason="Optuna is not installed")
    blocks = re.findall(r"```yaml\n(.*?)```", (DOCUMENTATION / "studies.md").read_text(), flags=re.DOTALL)
    assert len(blocks) == 4
    for block in blocks:
        assert main(["study", written(block), "--dry-run"]) == 0
    counts = re.findall(r"(\d+) cells", capsys.readouterr().out)
    assert counts == ["4", "12", "9", "40"]


@pytest.mark.slow
def test_a_dry_run_says_how_many_and_writes_nothing(capsys, tmp_path):
    assert main(["study", study(grid={"env.length": [3, 4], "seed": [0, 5]}), "--dry-run", "--workers", "3"]) == 0
    assert capsys.readouterr().out == "4 cells\nTime left with 3 at a time: unknown, as no cell is done\n"
    assert not (tmp_path / "runs").exists()


def test_a_dry_run_names_a_cell_that_training_would_refuse(refused):
    """Not its options alone: what they mean together, and to its environment."""
    cells = study(base={"env.length": 3, "learner": "LeastSquares"}, grid={"target": ["null", "Online"]})
    said = refused(["study", cells, "--dry-run"])
    assert "In the cell target=Online: target is a part or setting of gradient descent, which LeastSquares" in said
    assert not Path("runs").exists()


def test_the_time_left_is_that_of_cells_like_those_that_are_done():
    waiting, pruned = Outcome("waiting"), Outcome("pruned", seconds=5)
    cells = {
        "a": Outcome("done", seconds=80),
        "b": Outcome("done", seconds=120),
        "c": waiting,
        "d": waiting,
        "e": pruned,
    }
    assert command.time_left(cells, 2) == "about 100 seconds"
    assert command.time_left(cells, 1) == "about 3 minutes"
    assert command.time_left({"a": Outcome("done", seconds=9000), "b": waiting}, 4) == "about 2.5 hours"
    assert command.time_left({"c": waiting}, 2) == "unknown, as no cell is done"
    assert command.time_left({"a": pruned}, 2) == "about 0 seconds"
    assert command.counts(cells | {"f": Outcome("failed"), "g": Outcome("begun")}) == "3 done, 1 begun, 1 failed"
    assert command.progress(cells, 2) == "3 of 5 cells have ended; time left: about 100 seconds"


def test_settings_are_compared_under_the_names_of_options():
    was = effective({"env": "Chain", "env.length": 5, "network.width": 3, "logger": []})
    assert was == {"env": "Chain", "env.length": 5, "network.width": 3}
    assert list(differences(was, was | {"env.length": 6})) == ["env.length is 5, not 6"]


def leaves_a_run(cell, place, beside=()):
    """What `uppertail train` leaves, with the settings asked for, without training."""
    leave_run(cell, place)
    (place / "config.yaml").write_text(command.parse_request(cell.arguments).config)


@pytest.fixture
def there(inline, tmp_path):
    """A finished study of two cells."""
    inline(leaves_a_run)
    assert main(["study", study(base=TINY, grid={"env.length": [2, 3]}), "--out", "study", "--quiet"]) == 0
    return tmp_path / "study"


def summary(folder):
    return json.loads((folder / "study.json").read_text())


@pytest.mark.slow
@pytest.mark.parametrize("launched", [1, 2], ids=["in this process", "by a worker"])
def test_a_study_is_run_folders_and_a_summary(launched, tmp_path, capsys):
    """It really trains."""
    lengths = [2, 3][:launched]
    file = study(base=TINY, grid={"env.length": lengths})
    assert main(["study", file, "--out", "study", "--workers", str(launched)]) == 0
    assert f"{launched} of {launched} cells have ended" in capsys.readouterr().out
    folder = tmp_path / "study" / "cells" / "env.length=2"
    assert yaml.safe_load((folder / "config.yaml").read_text())["env.length"] == 2
    cell = summary(tmp_path / "study")["cells"][0]
    assert (cell["state"], cell["environment"], cell["seeds"]) == ("done", "env.length=2", 1)


def test_the_same_command_again_does_nothing_more(there, inline, capsys):
    inline(lambda *_: pytest.fail("nothing is left to do"))
    assert main(["study", "mine.yaml", "--out", "study"]) == 0
    assert main(["study", "study"]) == 0
    assert "2 of 2 cells have ended; all numbers in study/study.json" in capsys.readouterr().out.replace("\n", "")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["config.yaml", "episodes.npz", "networks.safetensors", "summary.json"])
@pytest.mark.parametrize("harm", ["cut", "changed", "missing"])
def test_a_damaged_cell_is_named_and_done_again(there, inline, capsys, name, harm):
    path = there / "cells" / "env.length=3" / name
    content = path.read_bytes()
    if harm == "missing":
        path.unlink()
    else:
        path.write_bytes(content[:-9] if harm == "cut" else content[:-9] + b"123456789")
    again = []
    inline(lambda cell, place, beside: again.append(cell.name) or leaves_a_run(cell, place))
    assert main(["study", "study"]) == 0
    assert again == ["env.length=3"]
    assert f"The cell env.length=3 is damaged ({name} is " in capsys.readouterr().out
    assert main(["study", "study"]) == 0
    assert again == ["env.length=3"]


def test_a_study_that_grows_keeps_its_cells(there, inline):
    again = []
    inline(lambda cell, place, beside: again.append(cell.name) or leaves_a_run(cell, place))
    assert main(["study", study(base=TINY, grid={"env.length": [2, 3, 4]}), "--out", "study", "--quiet"]) == 0
    assert again == ["env.length=4"]


def test_a_cell_folder_of_other_settings_is_refused(there, refused):
    other = study(base={**TINY, "network.width": 8}, grid={"env.length": [2]})
    assert "has other settings (network.width is 4, not 8): choose another --out" in refused(
        ["study", other, "--out", "study"]
    )
    checkpointed = study(base={**TINY, "checkpoint_every": 99}, grid={"env.length": [2]})
    assert main(["study", checkpointed, "--out", "study", "--dry-run"]) == 0  # that changes no result


def test_failed_cells_are_listed_and_tried_again_by_the_next_command(inline, capsys):
    count = []

    def fails(cell, place, beside):
        count.append(1)
        raise OSError("no such luck")

    inline(fails)
    assert main(["study", study(base=TINY, grid={"env.length": [2, 3]}), "--out", "study"]) == 1
    assert "The cell env.length=3 failed: OSError: no such luck" in capsys.readouterr().err
    assert len(count) == 2
    inline(leaves_a_run)
    assert main(["study", "mine.yaml", "--out", "study"]) == 0


def test_a_full_disk_is_a_sentence(there, capsys, monkeypatch):
    def full(self, *_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    assert main(["study", "study"]) == 2
    assert capsys.readouterr().err == (
        "uppertail: The output study cannot be written (No space left on device): choose another --out.\n"
    )


@pytest.fixture
def made(inline, tmp_path):
    """A study whose numbers are known: B solves earlier, the last seed of A never does."""

    def trains(cell, place, beside):
        leaves_a_run(cell, place)
        slow, length = cell.options["policy"] == "UCB", cell.options["env.length"]
        solved = [length * each * (4 if slow else 1) for each in (10, 11, 12, 13, 14, 15)]
        document = RunFolder(place).summary
        document |= {name: value * 6 for name, value in document.items() if isinstance(value, list)}
        document |= {"seeds": 6, "episodes": [300] * 6, "success": {"return": 1.0, "episodes": 1}}
        document |= {"first_success_episode": solved, "solved_episode": [*solved[:5], None]}
        write_summary(place / "summary.json", document)
        last = np.arange(600.0).reshape(6, 100) / 600 + (0 if slow else 1)
        save_episodes(place, np.hstack([np.zeros((6, 200)), last]))

    inline(trains)
    file = study(base=TINY, grid={"env.length": [2, 4], "policy": ["UCB", "Thompson"]})
    assert main(["study", file, "--out", "made", "--quiet"]) == 0
    return tmp_path / "made"


def test_the_summary_by_hand(made):
    document = summary(made)
    cell = document["cells"][0]
    assert (cell["environment"], cell["method"]) == ("env.length=2", "UCB")
    assert cell["first_success"]["median"] == 2 * 12.5 * 4
    assert cell["solved"]["seeds"] == 5
    assert cell["final_return"]["mean"] == pytest.approx(np.arange(600).mean() / 600, abs=1e-4)
    (pair,) = document["improvement"]
    assert (pair["a"], pair["b"]) == ("UCB", "Thompson")
    assert pair["first_success"]["probability"] == 1.0
    assert pair["first_success"]["ratio"]["value"] == pytest.approx(0.25)
    assert pair["final_return"]["difference"]["value"] == 1.0
    growth = {row["method"]: row for row in document["growth"]}
    assert growth["UCB"]["over"] == "env.length"
    assert growth["UCB"]["first_success"]["value"] == pytest.approx(1.0)
    assert document["methods"][1] == {"method": "Thompson", "environments": ["env.length=2", "env.length=4"]}


def test_a_table_counts_successes_only_where_they_are_defined(capsys):
    """It said that no seed was solved."""
    never = {"median": None, "low": None, "high": None, "seeds": 0}
    cell = {"name": "a", "seeds": 2, "first_success": None, "solved": None, "final_return": None}
    other = cell | {"name": "b", "first_success": never, "solved": never}
    show_cells({"cells": [cell], "growth": []})
    assert "solved" not in capsys.readouterr().out
    show_cells({"cells": [cell, other], "growth": []})
    printed = capsys.readouterr().out
    assert printed.count("0/2") == 1
    assert printed.count("never") == 2


def test_where_success_is_not_defined_only_returns_are_compared(made, capsys):
    """Both methods were said to need as many episodes."""
    for cell in (made / "cells").iterdir():
        document = RunFolder(cell).summary
        write_summary(cell / "summary.json", document | {"success": None})
    assert main(["study", "made", "--compare", "policy=UCB", "policy=Thompson"]) == 0
    printed = capsys.readouterr().out
    assert "Final return: B is better." in printed
    assert "Success is not defined (--env.success RETURN). Effect: final return" in printed
    assert "olved" not in printed


def test_comparisons_say_who_is_better(made, capsys, refused):
    assert main(["study", "made", "--compare", "policy=UCB", "policy=Thompson"]) == 0
    printed = capsys.readouterr().out
    assert printed.count("B is better.") == 3
    assert "0.25 [" in printed
    assert "Environments: Chain env.length=2; Chain env.length=4" in printed
    assert main(["study", "made", "--compare", "policy=UCB,env.length=2", "policy=Thompson"]) == 0
    assert "Left out, as only one of them was run there: Chain env.length=4" in capsys.readouterr().out
    one = made / "cells" / "env.length=2,policy=UCB"
    assert main(["study", "--compare", str(one), str(one)]) == 0
    assert capsys.readouterr().out.count("no clear difference") == 3
    error = refused(["study", "--compare", str(one), str(made / "cells" / "env.length=4,policy=UCB")])
    assert "only runs in the same environment can be compared" in error
    error = refused(["study", "made", "--compare", "policy=UCB", "policy=Tomson"])
    assert "has policy=Tomson: it is Thompson or UCB." in error
