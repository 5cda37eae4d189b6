"""Draws what is left of the wide start over a pendulum's angle and speed, from episode to episode of one run.

Usage: python -m experiments.tasks.evidence_picture [--out docs/evidence.gif]

It needs `uppertail[dm_control]`. Shares are drawn in the scales of the run's end.
"""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from PIL import Image

import uppertail as ut
from experiments.common import options
from experiments.pictures import frame, write_gif

EPISODES = (*range(1, 13), 14, 16, 18, 20, 25, 30)
SECONDS = 0.6  # how long each picture is seen
LEAST = 1e-3  # all below is white
ANGLES, SPEEDS = np.linspace(-np.pi, np.pi, 121), np.linspace(-12.0, 12.0, 97)


def shares(unknown: Any, count: int) -> np.ndarray:
    """u of the least tried action after so many transitions, [speeds, angles]."""
    angle, speed = map(np.ravel, np.meshgrid(ANGLES, SPEEDS))
    places = jnp.asarray(np.column_stack([np.cos(angle), np.sin(angle), speed]), jnp.float32)
    taken = unknown.taken * (jnp.arange(unknown.taken.shape[0]) < count)[:, None]
    counts = dataclasses.replace(unknown, taken=taken).counted(places)
    share = unknown.there(counts).share(places)
    return np.asarray(jnp.max(share, axis=1)).reshape(len(SPEEDS), len(ANGLES))


def picture(share: np.ndarray, places: np.ndarray, title: str) -> Image.Image:
    """The shares, dark where much is left, and where the episode went."""
    figure = Figure(figsize=(6.4, 3.8), dpi=90, layout="constrained")
    axes = figure.subplots()
    drawn = axes.pcolormesh(ANGLES, SPEEDS, share, cmap="Blues", norm=LogNorm(LEAST, 1), shading="nearest")
    axes.plot(np.arctan2(places[:, 1], places[:, 0]), places[:, 2], ".", color="tab:orange", markersize=4)
    axes.set(xlabel="angle (0: upright)", ylabel="speed", title=title, ylim=(SPEEDS[0], SPEEDS[-1]))
    axes.set_xticks([-np.pi, 0, np.pi], ["hanging", "upright", "hanging"])
    figure.colorbar(drawn, label="u, what is left of the start", extend="min")
    return frame(figure)


if __name__ == "__main__":
    given = options(__doc__, "docs/evidence.gif")
    result = ut.train(
        ut.Gym("dm_control/pendulum-swingup-v0"), settings=ut.Settings(seeds=1, seed=0, episodes=max(EPISODES))
    )
    network: Any = jax.tree.map(lambda leaf: leaf[0], result.networks)
    unknown, episodes = network.unknown, result.record.episodes[0]
    ends = episodes.end_steps // (episodes.lengths[0] // (int(unknown.added) // len(episodes.returns)))
    pictures = []
    for number in EPISODES:
        begin, end = (int(ends[number - 2]) if number > 1 else 0), int(ends[number - 1])
        title = f"episode {number}: return {episodes.returns[number - 1]:,.0f}"
        pictures.append(picture(shares(unknown, end), np.asarray(unknown.places[begin:end]), title))
    write_gif(given.out, pictures, SECONDS)
