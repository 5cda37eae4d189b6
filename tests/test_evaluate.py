"""`uppertail evaluate`, and the file of learned networks: against NumPy, and against Gymnasium itself."""

import dataclasses
import json
import os
import re
import shutil
import signal
from pathlib import Path

import gymnasium
import jax
import numpy as np
import pytest
import safetensors.numpy

import uppertail as ut
from uppertail.cli import evaluate, main
from uppertail.cli import train as command
from uppertail.defaults import facts
from uppertail.errors import InputError
from uppertail.records import digest
from uppertail.training import checkpoint
from uppertail.training.train import drive
from uppertail.types import ReturnRange

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("own_folder")]

TOY_REWARD = {0: (-1.0, 1.0), 1: (4.0, 1.0), 2: (1.0, 0.0)}
"""The Toy's table: action 0 of state 0 leads to state 1, action 1 to state 2, and both end the episode."""

SMALL = ["--seeds", "4", "--network.width", "8", "--replay_size", "99", "--batch_size", "16", "--quiet"]
SMALL += ["--learner", "GradientDescent", "--evidence", "NoEvidence"]

TOY = ["--env", "Toy", "--steps", "32", *SMALL, "--adam_epsilon", "1e-4"]
CART = ["--env", "Gym", "--env.id", "CartPole-v1", "--steps", "256", *SMALL, "--seeds", "2"]


def trained(tmp_path_factory, name, arguments):
    folder = tmp_path_factory.mktemp(name) / "run"
    assert main(["train", *arguments, "--out", str(folder)]) == 0
    return folder


@pytest.fixture(scope="module")
def toy_of_module(tmp_path_factory):
    policy = ["--policy", "UCB", "--policy.low", "30", "--policy.high", "30", "--seed", "6"]
    return trained(tmp_path_factory, "toy", [*TOY, *policy])


@pytest.fixture
def toy(toy_of_module, tmp_path):
    """A run on the Toy, whose upper confidence bound is no matter of chance: mean + 30 sd."""
    shutil.copytree(toy_of_module, tmp_path / "toy")
    return tmp_path / "toy"


@pytest.fixture(scope="module")
def cart(tmp_path_factory):
    return trained(tmp_path_factory, "cart", CART)


def document(folder, policy="greedy"):
    return json.loads((folder / f"evaluation-{policy}.json").read_text())


def toy_returns(folder, c):
    """The Toy's return of each seed for the actions of the highest mean + c sd, from the file, in NumPy."""
    arrays = safetensors.numpy.load_file(folder / "networks.safetensors")
    first, last = (arrays[f"weights/{layer}"].astype(np.float64) for layer in (0, 1))  # [seeds, actions, in, out]
    hidden = np.where(first > 0, first, np.expm1(np.minimum(first, 0)))  # one-hot: state s is row s
    mean, spread = np.moveaxis(hidden @ last, -1, 0)  # [seeds, actions, states]
    assert json.loads((folder / "summary.json").read_text())["distribution"]["std_bias"] is None  # 1, but for images
    score = mean + c * np.log1p(np.exp(spread + 1.0))
    action = score.argmax(axis=1)
    returns = []
    for row in action:
        second = (1, 2)[row[0]]
        returns.append(TOY_REWARD[0][row[0]] + TOY_REWARD[second][row[second]])
    return returns


@pytest.mark.parametrize(("policy", "c"), [("greedy", 0), ("ucb", 30), ("trained", 30)])
def test_the_toys_returns_are_those_of_its_table(policy, c, toy, capsys):
    assert main(["evaluate", str(toy), "--episodes", "3", "--policy", policy]) == 0
    printed, found = capsys.readouterr().out, document(toy, policy)
    expected = toy_returns(toy, c)
    assert len(set(expected)) > 1  # or it would be no test
    assert [seed["returns"] for seed in found["seeds"]] == [[ret] * 3 for ret in expected]
    assert [seed["lengths"] for seed in found["seeds"]] == [[2] * 3] * 4
    assert [seed["mean_return"] for seed in found["seeds"]] == expected
    assert [seed["success_rate"] for seed in found["seeds"]] == [float(ret >= 3) for ret in expected]
    assert [seed["seed"] for seed in found["seeds"]] == [6, 7, 8, 9]
    assert found["mean_return"] == np.mean(expected)
    assert min(expected) <= found["interval"][0] <= found["mean_return"] <= found["interval"][1] <= max(expected)
    assert found["episodes"] == 3
    assert (found["policy"].get("low"), found["policy"]["asked"]) == (30.0 if c else None, policy)
    assert found["networks"]["env_steps"] == 32
    rows = [line.split() for line in printed.splitlines() if line.split()[:1] in (["6"], ["7"], ["8"], ["9"])]
    assert rows == [[str(6 + row), f"{ret:.4g}", "2", "100%" if ret >= 3 else "0%"] for row, ret in enumerate(expected)]
    assert f"Mean return {np.mean(expected):.4g}, 95% interval over 4 seeds" in printed


def test_a_policy_that_the_run_did_not_have_comes_with_its_defaults(toy):
    assert main(["evaluate", str(toy), "--episodes", "50", "--policy", "thompson", "--quiet"]) == 0
    found = document(toy, "thompson")
    assert found["policy"] == {"asked": "thompson", "name": "Thompson", "draws": 1}
    assert all(len(set(seed["returns"])) > 1 for seed in found["seeds"])  # it draws
    assert found["mean_return"] == pytest.approx(np.mean([np.mean(seed["returns"]) for seed in found["seeds"]]))


def test_the_same_command_writes_the_same_file(toy, tmp_path, capsys):
    command = ["evaluate", str(toy), "--episodes", "20", "--policy", "thompson"]
    assert main(command) == 0
    printed, written = capsys.readouterr().out, (toy / "evaluation-thompson.json").read_bytes()
    assert main(command) == 0
    assert capsys.readouterr().out == printed
    assert (toy / "evaluation-thompson.json").read_bytes() == written


def test_gymnasium_itself_gives_the_same_returns(cart):
    """Each episode is replayed in an environment of its own, with the network that `load` gives."""
    assert main(["evaluate", str(cart), "--episodes", "3", "--quiet"]) == 0
    over, found = ut.load(cart), document(cart)
    env = gymnasium.make("CartPole-v1")
    for seed in found["seeds"]:
        for episode in range(3):
            entropy = (2**31 + seed["seed"], episode, 0)
            observation, _ = env.reset(seed=int(np.random.SeedSequence(entropy).generate_state(1)[0]))
            ret, ended = 0.0, False
            while not ended:
                observation, reward, *over_or_cut, _ = env.step(over.act(observation, seed=seed["seed"]))
                ret, ended = ret + float(reward), any(over_or_cut)
            assert (seed["returns"][episode], seed["lengths"][episode]) == (ret, ret)
    env.close()


def test_load_gives_what_training_gave():
    settings = ut.Settings(seeds=2, replay_size=999, batch_size=16, episodes=1_000_000, steps=2048)
    result = ut.train(ut.Chain(length=4), settings=settings, network=ut.PerAction(8), evidence=ut.NoEvidence())
    limits = ["--episodes", "1000000", "--steps", "2048", "--replay_size", "999"]
    chain = ["--env", "Chain", "--env.length", "4", *SMALL, "--seeds", "2", *limits]
    assert main(["train", *chain, "--out", "chain"]) == 0
    over = ut.load("chain")
    for ours, theirs in ((over.networks, result.networks), (over.environments, result.environments)):
        for one, other in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
            np.testing.assert_array_equal(one, other)
    assert over.agent.family == result.agent.family
    Path("chain", "networks.safetensors").unlink()
    with pytest.raises(InputError, match=r"has no networks\.safetensors"):
        ut.load("chain")


def test_what_was_measured_of_returns_is_not_measured_again(cart, monkeypatch):
    monkeypatch.setattr(facts, "measured_range", lambda *_: ReturnRange(0.0, 12345.0, known=False))
    scale = json.loads((cart / "summary.json").read_text())["distribution"]["scale"]
    family = ut.load(cart).agent.family
    assert isinstance(family, ut.Gaussian)
    assert family.scale == scale != 12345.0


def test_an_interrupted_run_leaves_its_networks_and_a_resumed_one_others(monkeypatch):
    def stopped(run, on_chunk, *more):
        del on_chunk
        return drive(run, lambda progress: os.kill(os.getpid(), signal.SIGINT), *more)

    long = ["--episodes", "9999", "--steps", "2048", "--checkpoint_every", "1024"]
    with monkeypatch.context() as patch:
        patch.setattr(command, "drive", stopped)
        assert main(["train", *TOY, *long, "--out", "run"]) == 130
    assert main(["evaluate", "run", "--episodes", "1", "--quiet"]) == 0
    assert document(Path("run"))["networks"]["env_steps"] == 1024
    assert main(["resume", "run", "--quiet"]) == 0
    assert not Path("run", "evaluation-greedy.json").exists()  # it was of other networks
    assert main(["evaluate", "run", "--episodes", "1", "--quiet"]) == 0
    assert document(Path("run"))["networks"]["env_steps"] == 2048


def test_a_diverged_run_leaves_its_networks_but_they_do_not_play(refused):
    arguments = [*TOY, "--steps", "64", "--learning_rate", "1e30", "--out", "run"]
    assert main(["train", *arguments]) == 2
    arrays = safetensors.numpy.load_file("run/networks.safetensors")
    assert not np.isfinite(arrays["weights/1"]).all()
    assert "holds NaN or infinite numbers" in refused(["evaluate", "run"])


def test_a_run_whose_environment_failed_leaves_its_networks(tmp_path, monkeypatch, capsys, refused):
    """It fails when it is evaluated, too, in the run and afterwards."""
    (tmp_path / "my_motor.py").write_text(
        "import gymnasium\n"
        "class Motor(gymnasium.Env):\n"
        "    observation_space = gymnasium.spaces.Discrete(2)\n"
        "    action_space = gymnasium.spaces.Discrete(2)\n"
        "    steps = 0\n"
        "    def reset(self, *, seed=None, options=None):\n"
        "        super().reset(seed=seed)\n"
        "        return 0, {}\n"
        "    def step(self, action):\n"
        "        self.steps += 1\n"
        "        if self.steps > 20:\n"
        "            raise RuntimeError('The motor is hot.')\n"
        "        return 1, 1.0, False, False, {}\n"
        "gymnasium.register('Motor-v0', Motor)\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    env = ["--env", "Gym", "--env.id", "my_motor:Motor-v0", "--env.returns", "[0, 9]"]
    assert main(["train", *env, *SMALL, "--steps", "64", "--out", "run"]) == 2
    failed = "raised RuntimeError: The motor is hot (my_motor.py, line 12)."
    assert f"at environment step 21, {failed}" in capsys.readouterr().err
    summary = json.loads(Path("run", "summary.json").read_text())
    assert summary["final_greedy_return"] == [None] * 4
    assert np.isfinite(safetensors.numpy.load_file("run/networks.safetensors")["weights/1"]).all()
    assert f"of seed 0, in an episode by what it learned, {failed}" in refused(["evaluate", "run"])


def no_run(folder):
    (folder / "config.yaml").unlink()
    return "is not the folder of a run"


def no_folder(folder):
    shutil.rmtree(folder)
    return "is not the folder of a run"


def no_networks(folder):
    (folder / "networks.safetensors").unlink()
    return "has no networks.safetensors: train it again, or resume it"


def of_python(folder):
    shutil.rmtree(folder)
    (folder / "checkpoints").mkdir(parents=True)
    return "holds checkpoints of ut.train alone: repeat that call in Python"


def of_another_version(folder):
    def without(header):
        settings = {name: each for name, each in header.asked["settings"].items() if name != "gradient_clip"}
        return dataclasses.replace(header, asked={**header.asked, "settings": settings})

    rewritten(folder, without, dict)
    return "was made with no gradient_clip: use the version of uppertail that made it, or train again in another folder"


def damaged(folder):
    path = folder / "networks.safetensors"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    return "networks.safetensors is damaged"


def cut(folder):
    os.truncate(folder / "networks.safetensors", 100)
    return "networks.safetensors is damaged"


def other_settings(folder):
    config = folder / "config.yaml"
    config.write_text(config.read_text().replace("replay_size: 99\n", "replay_size: 98\n"))
    return "was made with replay_size 99, not 98"


def other_part(folder):
    config = folder / "config.yaml"
    config.write_text(config.read_text().replace("encoding: one_hot", "encoding: scalar"))
    return "was made with encoding one_hot, not scalar"


def rewritten(folder, header, arrays):
    """The file with another header or other arrays, and a checksum that is right."""
    was, its = checkpoint.read(folder / "networks.safetensors")
    checkpoint.write(folder / "networks.safetensors", header(was), arrays(its))


def other_format(folder):
    path = folder / "networks.safetensors"
    header, arrays = checkpoint.read(path)
    text = json.dumps({**dataclasses.asdict(header), "format": 2})
    path.write_bytes(safetensors.numpy.save(arrays, {checkpoint.HEADER: text, checkpoint.DIGEST: digest(arrays, text)}))
    return "has format 2"


def other_environment(folder):
    rewritten(folder, lambda header: dataclasses.replace(header, environments="0"), dict)
    return "in environments that are built differently here"


def other_shape(folder):
    rewritten(folder, lambda header: header, lambda arrays: {**arrays, "weights/2": arrays["weights/1"]})
    return "has another shape: weights/2 is float32[4, 2, 8, 2], not expected"


@pytest.mark.parametrize(
    "harm",
    [
        no_run,
        no_folder,
        no_networks,
        of_python,
        of_another_version,
        damaged,
        cut,
        other_settings,
        other_part,
        other_format,
        other_environment,
        other_shape,
    ],
)
def test_what_cannot_be_evaluated_gets_a_sentence(harm, toy, refused):
    sentence = harm(toy)
    before = sorted(toy.iterdir()) if toy.exists() else []
    assert sentence in refused(["evaluate", str(toy)])
    assert (sorted(toy.iterdir()) if toy.exists() else []) == before


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["DIR", "--episodes", "0"], "episodes is 0: use 1 to 100,000"),
        (["DIR", "--episodes", "1.5"], "episodes is 1.5"),
        (["DIR", "--policy", "best"], "Unknown policy 'best': use UCB, PosteriorSampling, Thompson, MemberThompson"),
        (["DIR", "--episode", "3"], "Did you mean --episodes?"),
    ],
)
def test_a_bad_request_gets_a_sentence(arguments, sentence, refused):
    assert sentence in refused(["evaluate", *arguments])


def test_a_folder_that_cannot_be_written_still_gives_its_table(toy, monkeypatch, capsys):
    def read_only(path, content):
        raise OSError(30, "Read-only file system")

    before = {path: path.read_bytes() for path in toy.rglob("*") if path.is_file()}
    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", read_only)
        assert main(["evaluate", str(toy), "--episodes", "2"]) == 2
    printed = capsys.readouterr()
    assert "Mean return" in printed.out
    assert "evaluation-greedy.json cannot be written (Read-only file system)" in printed.err
    assert printed.err.count("\n") == 1
    assert {path: path.read_bytes() for path in toy.rglob("*") if path.is_file()} == before


def test_inspect_shows_the_first_observation_where_there_are_no_states(cart, capsys):
    assert main(["inspect", str(cart)]) == 0
    shown = capsys.readouterr().out
    assert "First observation" in shown
    assert "State" not in shown and "path" not in shown
    assert main(["inspect", str(cart), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["state"], found["path"]) == (None, [])


def test_evaluations_whose_names_are_long_have_files_of_their_own() -> None:
    """Names that were cut to the same letters replaced each other."""
    changes = ["--env.kwargs={map_name: 8x8, is_slippery: true}", "--env.max_episode_steps=500", "--env.success=1"]
    first, second = (evaluate._name("greedy", [*changes, f"--seed={seed}"]) for seed in (7, 8))
    assert first != second and max(map(len, (first, second))) < 120
    assert evaluate._name("my.own.Policy", ["--seed=3"]) == "evaluation-Policy--seed-3"


def test_a_slow_environment_is_not_silent(cart, monkeypatch, capsys):
    monkeypatch.setattr("uppertail.environments.random_policy.SILENT", -1.0)
    assert main(["evaluate", str(cart), "--episodes", "21"]) == 0
    said = re.findall(r"(\d+) of 42 episodes were played in ", capsys.readouterr().err)
    assert (said[0], said[-1]) == ("0", "42") and said.count("42") == 1, "no environment plays more than its share"
