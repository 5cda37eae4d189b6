"""`uppertail watch`: its pictures against Gymnasium's own, its returns against those of an evaluation."""

import json
import sys

import gymnasium
import jax
import numpy as np
import pytest
from PIL import Image, ImageSequence

import uppertail as ut
from uppertail.cli import main, output_file, watch
from uppertail.cli.watch import MARK, Animation
from uppertail.environments.gymnasium import watched
from uppertail.errors import InputError

pytestmark = pytest.mark.slow

SMALL = ["--seeds", "2", "--network.width", "4", "--replay_size", "99", "--batch_size", "8", "--quiet"]
SMALL += ["--replay", "Uniform", "--target", "Online"]
TEXT = """
import gymnasium

class Stairs(gymnasium.Env):
    metadata = {"render_modes": ["ansi"]}
    observation_space = gymnasium.spaces.Discrete(5, start=2)
    action_space = gymnasium.spaces.Discrete(2, start=7)

    def __init__(self, render_mode=None):
        self.render_mode = render_mode

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.height = 2
        return self.height, {}

    def step(self, action):
        assert action in (7, 8)
        self.height += 1
        return self.height, float(action - 7), self.height == 6, False, {}

    def render(self):
        return f"step {self.height}"

gymnasium.register("Stairs-v0", Stairs)
"""


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")


@pytest.fixture
def pygame():
    return pytest.importorskip("pygame", reason="Gymnasium draws with pygame: install uppertail[watch]")


def trained(tmp_path_factory, name, arguments):
    folder = tmp_path_factory.mktemp(name) / "run"
    assert main(["train", *arguments, *SMALL, "--out", str(folder)]) == 0
    return folder


@pytest.fixture(scope="module")
def lake(tmp_path_factory):
    env = ["--env", "Gym", "--env.id", "FrozenLake-v1", "--env.kwargs", "{desc: [SFF, FHG]}"]
    env += ["--env.max_episode_steps", "12"]
    return trained(tmp_path_factory, "lake", [*env, "--steps", "128"])


@pytest.fixture(scope="module")
def cart(tmp_path_factory):
    env = ["--env", "Gym", "--env.id", "CartPole-v1"]
    env += ["--env.num_features", "8", "--env.returns", "[0, 50]", "--env.action_repeat", "1"]  # lengths are exact
    return trained(tmp_path_factory, "cart", [*env, "--steps", "128"])


@pytest.fixture(scope="module")
def stairs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("module")
    (folder / "my_stairs.py").write_text(TEXT)
    sys.path.append(str(folder))
    yield trained(tmp_path_factory, "stairs", ["--env", "Gym", "--env.id", "my_stairs:Stairs-v0", "--steps", "32"])
    sys.path.remove(str(folder))


def episodes(printed):
    """Return and length of each episode that was printed."""
    words = [line.split() for line in printed.splitlines() if line.startswith("Episode")]
    return [(float(each[3]), int(each[5].replace(",", ""))) for each in words]


def test_a_gif_shows_what_gymnasium_draws(lake, pygame, capsys):
    """The same episode, played in Gymnasium with the loaded network, and drawn by it."""
    assert main(["watch", str(lake), "--seed", "1", "--gif", "lake.gif"]) == 0
    ((ret, length),) = episodes(capsys.readouterr().out)
    over = ut.load(lake)
    make = {"desc": ["SFF", "FHG"], "is_slippery": True, "max_episode_steps": 12}
    env = gymnasium.make("FrozenLake-v1", render_mode="rgb_array", **make)
    observation, _ = env.reset(seed=int(np.random.SeedSequence((2**31 + 1, 0, 0)).generate_state(1)[0]))
    frames, rewards, ended = [env.render()], [], False
    while not ended:
        z = over.agent.returns(over.network(1), observation)
        action = int(jax.vmap(over.agent.family.mean)(z).argmax())
        observation, reward, *ends, _ = env.step(action)
        frames.append(env.render())
        rewards.append(reward)
        ended = any(ends)
    env.close()
    assert (sum(rewards), len(rewards)) == (ret, length)
    shown = []
    with Image.open("lake.gif") as gif:
        for image in ImageSequence.Iterator(gif):
            shown += [np.asarray(image.convert("RGB"))] * (image.info["duration"] // 250)
    assert len(shown) == len(frames) - 1 + 4  # a quarter of a second each, and the last a second
    for ours, theirs in zip(shown, [*frames, *frames[-1:] * 3], strict=True):
        assert np.abs(ours.astype(int) - theirs).max() <= 2


class Painted(gymnasium.Env):
    """Draws pictures, and does not say how many a second."""

    metadata = {"render_modes": ["rgb_array"]}  # noqa: RUF012
    observation_space = action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, render_mode=None):
        self.render_mode = render_mode

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return 0, {}

    def step(self, action):
        return 1, 1.0, True, False, {}

    def render(self):
        return np.zeros((8, 8, 3), np.uint8)


def test_a_window_needs_no_pace_of_the_environment(pygame):
    gymnasium.register("Testing/Painted-v0", f"{__name__}:Painted")
    shown = ut.Gym("Testing/Painted-v0").watched(pictures=False, frames_per_second=500)
    shown.reset(0, 0)
    assert shown.step(1)[2]
    shown.close()
    assert shown.frames_per_second == 500


def test_the_first_episodes_are_those_of_an_evaluation(cart, pygame, capsys):
    assert main(["evaluate", str(cart), "--episodes", "3", "--quiet"]) == 0
    first, second = json.loads((cart / "evaluation-greedy.json").read_text())["seeds"]
    for seed, found in ((0, first), (1, second)):
        capsys.readouterr()
        assert main(["watch", str(cart), "--seed", str(seed), "--episodes", "3", "--gif", "cart.gif"]) == 0
        assert episodes(capsys.readouterr().out) == list(zip(found["returns"], found["lengths"], strict=True))


def test_a_window_shows_an_episode(cart, pygame, monkeypatch, capsys):
    shown, flip = [], pygame.display.flip
    monkeypatch.setattr(pygame.display, "flip", lambda: shown.append(pygame.display.get_driver()) or flip())
    assert main(["watch", str(cart), "--fps", "1000"]) == 0
    ((_, length),) = episodes(capsys.readouterr().out)
    assert shown == ["dummy"] * (length + 1)


def test_without_a_display_there_is_a_sentence(cart, pygame, monkeypatch, refused):
    monkeypatch.setattr(watched, "VIDEO_DRIVER", "A_VARIABLE_THAT_IS_NOT_SET")
    monkeypatch.setattr(pygame.display, "get_driver", lambda: "offscreen")
    assert "There is no display here to open a window on: --gif FILE needs none." in refused(["watch", str(cart)])


def test_faster_than_a_gif_can_be_leaves_frames_out(cart, pygame, capsys):
    assert main(["watch", str(cart), "--gif", "cart.gif", "--fps", "100"]) == 0
    ((_, length),) = episodes(capsys.readouterr().out)
    with Image.open("cart.gif") as gif:
        times = [image.info["duration"] for image in ImageSequence.Iterator(gif)]
    assert min(times) == 20
    assert abs(sum(times) - (10 * length + 1000)) <= 20


def test_a_gif_ends_where_memory_would(cart, pygame, monkeypatch, capsys):
    monkeypatch.setattr(watch, "MOST_PIXELS", 3 * 600 * 400)
    assert main(["watch", str(cart), "--gif", "cart.gif", "--fps", "50"]) == 0
    assert "0.1 seconds in cart.gif, and there is no room for more" in capsys.readouterr().out


def test_text_is_printed(stairs, capsys):
    """Also with a first state that is not 0, and a first action that is not."""
    assert main(["watch", str(stairs), "--episodes", "2", "--policy", "thompson"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line.startswith("step")] == [f"step {height}" for height in range(2, 7)] * 2
    assert [line.split(":")[0] for line in lines if "Episode" in line] == ["Episode 1", "Episode 2"]
    assert lines[5].endswith(" in 4 steps")


def test_text_makes_no_gif(stairs, refused):
    error = refused(["watch", str(stairs), "--gif", "stairs.gif"])
    assert "my_stairs:Stairs-v0 has render mode ansi, but a GIF needs rgb_array: leave out --gif." in error


@pytest.mark.parametrize("arguments", [["--gif", "cart.gif"], []])
def test_without_pygame_there_is_a_sentence(arguments, cart, monkeypatch, tmp_path, refused):
    for name in [name for name in sys.modules if name.partition(".")[0] == "pygame"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pygame", None)
    error = refused(["watch", str(cart), *arguments])
    assert "Drawing CartPole-v1 needs packages that are not installed: run `pip install" in error
    assert "gymnasium[classic-control]" in error
    assert list(tmp_path.iterdir()) == []


def test_an_environment_without_a_picture_gets_a_sentence(refused):
    assert main(["train", "--env", "Toy", "--steps", "16", *SMALL, "--out", "run"]) == 0
    error = refused(["watch", "run"])
    assert "Toy draws no pictures" in error and "`uppertail inspect`" in error


def test_so_does_the_chain():
    with pytest.raises(ut.InputError, match="Chain draws no pictures"):
        ut.Chain(4).watched(pictures=True)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--seed", "2"], "seed is 2, but the run has the seeds 0 to 1."),
        (["--episodes", "0"], "episodes is 0: use 1 or more"),
        (["--fps", "0"], "fps is 0: use 1 to 1000"),
        (["--gif", "cart.mp4"], "give it a name that ends in .gif"),
        (["--gif", "nowhere/cart.gif"], "There is no folder nowhere"),
        (["--policy", "best"], "Unknown policy 'best': use UCB, PosteriorSampling, Thompson, MemberThompson"),
    ],
)
def test_a_bad_request_gets_a_sentence(arguments, sentence, cart, tmp_path, refused):
    assert sentence in refused(["watch", str(cart), *arguments])
    assert list(tmp_path.iterdir()) == []


def test_only_gifs_of_ours_are_replaced(tmp_path):
    animation = Animation(50)
    animation.add(np.zeros((2, 2, 3), np.uint8), last=True)
    path = tmp_path / "run.gif"
    for _ in range(2):
        animation.write(output_file(str(path), {".gif": MARK}, "a GIF"))
    path.write_bytes(path.read_bytes().replace(MARK, b"taken on holiday"[: len(MARK)]))
    with pytest.raises(InputError, match=r"run.gif' exists already, and this command did not make it"):
        output_file(str(path), {".gif": MARK}, "a GIF")


def test_a_gif_that_cannot_be_written_gets_a_sentence(cart, pygame, tmp_path, refused):
    (tmp_path / "cart.gif").mkdir()
    assert "cart.gif cannot be written" in refused(["watch", str(cart), "--gif", "cart.gif"])
    assert [entry.name for entry in tmp_path.iterdir()] == ["cart.gif"]
