"""`uppertail exact`: the distribution of the return of a fixed policy, computed instead of learned."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np

from uppertail import records
from uppertail.cli import picture, print_table
from uppertail.cli.commands import EXACT_POLICY
from uppertail.cli.options import Values
from uppertail.environments import EnvironmentBuilder, FiniteMDP, require_tables_fit
from uppertail.errors import InputError
from uppertail.exact import ExactReturn, exact_returns, optimal_policy, uniform_policy
from uppertail.training.loop import seed_keys
from uppertail.training.process import require_device

Returns = dict[tuple[int, int], ExactReturn]

FIGURE = "exact.png"
ROWS, FEW_ATOMS = 24, 4


def main(config: Values) -> int:
    """Runs the command."""
    if not 0 <= config.seed < 2**31:
        raise InputError(f"seed is {config.seed}: use 0 or more, below 2^31.")
    builder = config.env.build()
    env, mdp = type(builder).__name__, _table(builder, config.seed)
    policy = _policy(config.policy, mdp, config.discount)
    if config.out:
        records.require_unused(Path(config.out))  # an error here comes before the work
    returns = exact_returns(mdp, policy, config.discount, config.tolerance)
    title = f"{env}, policy {Path(config.policy).name}, discount {config.discount:g}"
    try:
        if config.json:
            asked = {name: config[name] for name in ("policy", "discount", "seed")}
            print(json.dumps({"env": {"name": env, **dataclasses.asdict(builder)}, **asked, "returns": _rows(returns)}))
        else:
            _show(title, returns)
    finally:
        if config.out or not config.json:
            _draw(config.out, env, title, returns, quiet=config.json)
    return 0


def _table(builder: EnvironmentBuilder, seed: int) -> FiniteMDP:
    require_device()
    key = seed_keys(seed).environment  # as training builds it for this seed
    require_tables_fit(builder, key[None], copies=4)
    mdp = builder.build(key)
    if not isinstance(mdp, FiniteMDP):
        raise InputError(f"{type(builder).__name__} builds no table of a finite MDP: use an environment that does.")
    mdp.require_sound()
    return mdp


def _policy(name: str, mdp: FiniteMDP, discount: float) -> Any:
    if name == "uniform":
        return uniform_policy(mdp)
    if name == "optimal":
        return optimal_policy(mdp, discount)
    if not name.endswith(".npy"):
        raise InputError(f"Unknown policy {name!r}: use {EXACT_POLICY}.")
    try:
        policy: Any = np.load(name, allow_pickle=False)
        if policy.dtype.kind in "biuf":
            return policy.astype(np.float64)
        why = None
    except Exception as error:  # NumPy raises many kinds of errors for a damaged file
        why = error
    raise InputError(f"The policy file {name!r} cannot be read as an array of numbers: use {EXACT_POLICY}.") from why


def _draw(out: str | None, env: str, title: str, returns: Returns, quiet: bool) -> None:
    folder = Path(out) if out else records.claim_unused(Path("runs"), f"exact-{env}")
    if out:
        records.claim_folder(folder)
    with records.output_errors(folder), picture(folder / FIGURE):
        from uppertail.analysis.figures import return_panels

        return_panels(folder / FIGURE, title, returns)
    if (folder / FIGURE).is_file() and not quiet:
        print(f"Figure in {folder / FIGURE}")


def _show(title: str, returns: Returns) -> None:
    rows = [
        {
            "state": str(state),
            "action": str(action),
            "mean": f"{z.mean:.4g}",
            "sd": f"{z.std:.4g}",
            "method": _method(z),
            "return (probability)": _atoms(z),
        }
        for (state, action), z in list(returns.items())[:ROWS]
    ]
    print_table(rows, title, texts=("method", "return (probability)"))
    if len(returns) > ROWS:
        print(f"First {ROWS} of {len(returns)} states and actions; --json prints all of them.")
    if error := max(z.error for z in returns.values()):
        print(f"Wasserstein-1 distance to the true distribution: at most {error:.2g}.")


def _atoms(z: ExactReturn) -> str:
    """All atoms if they are few, else their range."""
    if z.atoms.size > FEW_ATOMS:
        return f"{z.atoms.size:,} atoms from {z.atoms[0]:.4g} to {z.atoms[-1]:.4g}"
    return ", ".join(f"{z:.4g} ({p:.3g})" for z, p in zip(z.atoms, z.probabilities, strict=True))


def _method(z: ExactReturn) -> str:
    return "grid" if z.error else "enumeration"


def _rows(returns: Returns) -> list[dict[str, Any]]:
    return [
        {"state": state, "action": action, "method": _method(z), "mean": z.mean, "std": z.std, "error": z.error}
        | {"atoms": z.atoms.tolist(), "probabilities": z.probabilities.tolist()}
        for (state, action), z in returns.items()
    ]
