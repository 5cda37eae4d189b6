"""Seeds side by side: on a CPU each for itself, on several devices, batched on an accelerator; always the same run."""

import functools
import json
import os
import subprocess
import sys
import textwrap
from typing import Any

import jax
import numpy as np
import pytest

from test_first_reward import Corridor
from uppertail.distributions import Gaussian
from uppertail.environments import Chain, FromGymnasium
from uppertail.errors import InputError
from uppertail.policies import UCB
from uppertail.training import programs
from uppertail.training.programs import Groups
from uppertail.training.settings import Settings
from uppertail.training.train import train

pytestmark = pytest.mark.slow

SMALL: dict[str, Any] = {"episodes": 60, "batch_size": 16, "replay_size": 256}


@functools.cache
def run(seed: int, seeds: int) -> Any:
    return train(Chain(5), Gaussian(), UCB(), Settings(seed=seed, seeds=seeds, **SMALL))


def assert_equal(found: Any, expected: Any) -> None:
    for ours, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_array_equal(ours, other)


def test_a_seed_is_bit_for_bit_the_same_however_many_run_beside_it() -> None:
    together = run(7, 3)
    for row in range(3):
        alone = run(7 + row, 1)
        assert_equal(alone.network(0), together.network(row))
        for name in ("returns", "lengths", "end_steps"):
            assert_equal(getattr(alone.record.episodes[0], name), getattr(together.record.episodes[row], name))
    assert len({tuple(each.end_steps) for each in together.record.episodes}) == 3


@pytest.mark.parametrize("index", [-1, 1])
def test_a_seed_that_is_not_there_has_no_network(index: int) -> None:
    with pytest.raises(InputError, match=rf"^network\({index}\): the run has 1 seeds, so give a number from 0 to 0\.$"):
        run(7, 1).network(index)


def test_groups_share_all_seeds_among_the_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    class Accelerator:
        platform = "gpu"

    monkeypatch.setattr(programs.jax, "local_devices", lambda: [Accelerator()] * 3)
    shared = Groups(8)
    assert [np.arange(8)[group.rows].tolist() for group in shared] == [[0, 1], [2, 3, 4], [5, 6, 7]]
    assert shared.workers == 3
    assert [group.rows for group in Groups(2)] == [slice(0, 1), slice(1, 2)]


SCRIPT = """
    import json, sys
    import jax
    import numpy as np
    import uppertail as ut
    from uppertail.training import programs

    def run():
        result = ut.train(ut.Chain(5), ut.Gaussian(), ut.UCB(), ut.Settings(seed=7, seeds=3, **json.loads(sys.argv[1])))
        weights = [np.asarray(leaf).tolist() for leaf in jax.tree.leaves(result.networks)]
        return {"weights": weights, "env_steps": result.record.env_steps}

    alone = run()
    programs.ALONE = ()
    print(json.dumps({"devices": len(jax.local_devices()), "alone": alone, "batched": run()}))
"""


def on_two_devices(script: str, *arguments: str) -> Any:
    """What a script prints last, as JSON, where two CPU devices are forced."""
    flags = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=2"
    environment = {**os.environ, "XLA_FLAGS": flags, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-c", textwrap.dedent(script), *arguments]
    printed = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True).stdout
    return json.loads(printed.splitlines()[-1])


def test_several_devices_share_the_seeds() -> None:
    """Seeds alone give the same bits, batched ones (as accelerators do) nearly the same."""
    found = on_two_devices(SCRIPT, json.dumps(SMALL))
    assert found["devices"] == 2
    expected, alone, batched = run(7, 3), found["alone"], found["batched"]
    assert alone["env_steps"] == expected.record.env_steps
    assert_equal([np.asarray(leaf, np.float32) for leaf in alone["weights"]], jax.tree.leaves(expected.networks))
    assert np.isfinite(np.concatenate([np.ravel(leaf) for leaf in batched["weights"]])).all()
    assert min(batched["env_steps"]) >= 60


def in_python() -> dict[str, Any]:
    """A run whose environments Python steps, with a first reward that sets the range, and with the best networks."""
    builder = FromGymnasium(functools.partial(Corridor, 1.0), id="Corridor", success=0.5)
    result = train(builder, settings=Settings(seeds=2, steps=1024, episodes=10**6, evaluate_every=256))
    assert "set by the first reward" in result.opening
    return {"env_steps": result.record.env_steps, "greedy": result.record.greedy_returns}


def test_several_devices_share_seeds_that_python_steps() -> None:
    script = "import json, test_groups; print(json.dumps(test_groups.in_python(), default=float))"
    assert on_two_devices(script) == json.loads(json.dumps(in_python(), default=float))
