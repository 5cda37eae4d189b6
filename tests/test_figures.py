"""Drawings: both files, searchable text that comes from the tables, the same bytes twice, nothing left behind."""

import json
from pathlib import Path

import equinox as eqx
import jax
import numpy as np
import pytest
import scipy.stats
from matplotlib.figure import Figure

from experiments.paper.chain_domain import chain_domain_figure
from experiments.paper.drawing.chain_distributions import chain_distributions_figure
from experiments.paper.drawing.curve_panels import curve_panels
from experiments.paper.drawing.learned_returns import LearnedReturn, Moment
from experiments.paper.drawing.toy import optimal_paths, toy_figure
from experiments.paper.drawing.transitions import chain_walk
from uppertail.analysis.figures import save, styles
from uppertail.environments import Chain, FrozenLake, Toy
from uppertail.errors import InputError
from uppertail.records import Episodes

TOY = Toy().build(jax.random.key(0))
EXACT = {(0, 0): 3.0, (0, 1): 2.0, (1, 0): 4.0, (1, 1): 1.0, (2, 0): 1.0, (2, 1): 0.0}
CHAIN = Chain(length=3, ordered=True).build(jax.random.key(0))


def gaussian(state, action, mean, std):
    returns = np.linspace(mean - 4 * std, mean + 4 * std, 99)
    density = scipy.stats.norm.pdf(returns, mean, std)
    return LearnedReturn(state, action, returns, density, False, mean, std, {"Thompson": 0.52, "UCB": 0.61})


def moment(label, std, mean=None):
    return Moment(label, [gaussian(*pair, value if mean is None else mean, std) for pair, value in EXACT.items()])


def categorical(label, weights):
    atoms, probabilities = np.linspace(-0.2, 1.2, 7), np.array(weights) / np.sum(weights)
    mean = float(probabilities @ atoms)
    pairs = np.ndindex(CHAIN.num_states, CHAIN.num_actions)
    return Moment(label, [LearnedReturn(s, a, atoms, probabilities, True, mean, 0.1, {}) for s, a in pairs])


def episodes_of(returns):
    lengths = np.ones(len(returns), int)
    return Episodes(np.asarray(returns, np.float32), lengths, np.cumsum(lengths))


def draw_curves(stem: Path) -> None:
    seeds = [episodes_of([0, 0, 1, 1, 1]), episodes_of([0, 1, 0, 1, 1])]
    panels = {"length 10": {"A": seeds, "B": seeds[:1]}, "length 25": {"B": seeds, "C": [Episodes.none()]}}
    marks = {"length 25": {"A": [3.0, 70.0], "D": [4.0]}}
    curve_panels(stem, "Chains", panels, smoothing=2, marks=marks, marks_label="solved by others")


def draw_toy(stem: Path) -> None:
    toy_figure(stem, TOY, [moment("at first", 1.5, 0.0), moment("at last", 0.0001)], EXACT, (0, 1))


def draw_chain_distributions(stem: Path) -> None:
    chain_distributions_figure(stem, CHAIN, [categorical("at first", [1] * 7), categorical("at last", [0] * 6 + [1])])


def draw_chain_domain(stem: Path) -> None:
    chain_domain_figure(stem, {"ordered": CHAIN, "long": Chain(length=12).build(jax.random.key(0))})


DRAWINGS = {
    draw_curves: ("Chains", "length 10", "length 25", "A (2 seeds)", "B (1 to 2 seeds)", "solved by others", "Episode"),
    draw_toy: ("s₀", "s₂", "r = −1", "r = 4", "at first", "Thompson p", "0.61", "1.50", "&lt;0.001", "optimal path"),
    draw_chain_distributions: ("state 3", "goes on", "ends, r = 0", "ends, r = 1", "at last", "correct action"),
    draw_chain_domain: ("ordered", "long", "a₁", "a₂", "r = 0", "r = 1", "12"),
}


def svg(stem: Path) -> str:
    return stem.with_name(f"{stem.name}.svg").read_text()


@pytest.mark.slow
@pytest.mark.parametrize("draw", DRAWINGS)
def test_a_drawing_is_an_svg_and_a_png_with_the_same_bytes_twice(draw, tmp_path):
    for name in ("a-0.5", "b-0.5"):  # a dot is part of the name
        draw(tmp_path / name)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a-0.5.png", "a-0.5.svg", "b-0.5.png", "b-0.5.svg"]
    assert (tmp_path / "a-0.5.png").read_bytes().startswith(b"\x89PNG")
    for kind in ("png", "svg"):
        assert (tmp_path / f"a-0.5.{kind}").read_bytes() == (tmp_path / f"b-0.5.{kind}").read_bytes()
    missing = [text for text in DRAWINGS[draw] if f">{text}</" not in svg(tmp_path / "a-0.5")]
    assert not missing


def test_save_fails_without_a_trace_on_earlier_files(tmp_path, monkeypatch):
    draw_chain_domain(tmp_path / "a")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    monkeypatch.setattr(Path, "replace", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        save(Figure(), tmp_path / "a")
    assert {path.name: path.read_bytes() for path in tmp_path.glob("a.*")} == before
    monkeypatch.setattr(Figure, "savefig", lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        save(Figure(), tmp_path / "b")
    assert not list(tmp_path.glob("*b.*"))


def test_one_method_has_one_style_whatever_panel_it_is_in():
    looks = styles(["A", "B", "A", *"CDEFGH"])
    assert list(looks) == list("ABCDEFGH") and len(set(looks.values())) == 8


def test_marks_of_a_panel_that_is_not_drawn_are_refused(tmp_path):
    with pytest.raises(InputError, match="'length 5'"):
        curve_panels(tmp_path / "a", "", {"length 10": {}}, marks={"length 5": {"A": [1.0]}})


def test_panels_without_any_episode_are_drawn(tmp_path):
    panels = {f"panel {index}": {"A": [Episodes.none()]} for index in range(3)}
    curve_panels(tmp_path / "a", "", panels, marks={"panel 0": {"A": []}})
    assert ">panel 2</" in svg(tmp_path / "a")


def test_rewards_and_paths_of_the_tree_come_from_the_tables(tmp_path):
    other = eqx.tree_at(lambda mdp: mdp.reward, TOY, TOY.reward.at[2, 1, 0].set(7.25))
    toy_figure(tmp_path / "a", TOY, [moment("now", 0.5)], EXACT)
    toy_figure(tmp_path / "b", other, [moment("now", 0.5)], EXACT)
    assert ">r = 7.25</" not in svg(tmp_path / "a") and ">r = 7.25</" in svg(tmp_path / "b")
    assert ">shown on the right</" not in svg(tmp_path / "a")  # all are
    assert optimal_paths(TOY, EXACT) == {(0, 0), (1, 0)}
    assert optimal_paths(other, EXACT | {(0, 1): 8.25, (2, 1): 7.25}) == {(0, 1), (2, 1)}
    assert optimal_paths(TOY, dict.fromkeys(EXACT, 1.0)) == set(EXACT)  # several are optimal


def test_correct_actions_of_the_chain_come_from_the_tables(tmp_path):
    backward = jax.tree.map(lambda table: table[:, ::-1] if table.ndim == 3 else table, CHAIN)
    assert chain_walk(CHAIN) == [(0, 1), (1, 1), (2, 1)]
    assert chain_walk(backward) == [(0, 0), (1, 0), (2, 0)]
    chain_domain_figure(tmp_path / "a", {"": CHAIN})
    chain_domain_figure(tmp_path / "b", {"": backward})
    # the label of a correct action is drawn before that of the wrong one
    assert [svg(tmp_path / name).index("a₁") < svg(tmp_path / name).index("a₂") for name in "ab"] == [False, True]


def test_what_cannot_be_drawn_is_refused():
    with pytest.raises(InputError, match="no Chain"):
        chain_walk(TOY)
    with pytest.raises(InputError, match="3 outcomes"):
        chain_walk(FrozenLake(is_slippery=True).build(jax.random.key(0)))


def test_moments_survive_json():
    before = moment("after 64 episodes", 0.3)
    after = Moment.from_json(json.loads(json.dumps(before.to_json(), allow_nan=False)))
    assert after.to_json() == before.to_json() and after.label == before.label
    for one, other in zip(before.returns, after.returns, strict=True):
        np.testing.assert_array_equal(one.density, other.density)
    assert after.of(2, 1).mean == 0.0
    with pytest.raises(KeyError, match="state 2, action 5"):
        after.of(2, 5)
