"""The order in which a backward sweep goes through the states of a table."""

from typing import NamedTuple

import numpy as np
import scipy.sparse
from jaxtyping import Int
from scipy.sparse.csgraph import breadth_first_order, connected_components

from uppertail.environments import FiniteMDP


class Order(NamedTuple):
    """The states that an episode can reach, from the first layer to the last.

    Args:
        layers: states of each layer, filled up with the number of states; an edge to an earlier layer, or within one,
            is part of a loop.
        layer_of: the layer of each state; -1 for states that no episode reaches.
        sweeps: how many backward sweeps carry all values as far as they can travel: 1 without loops, else the most
            steps of an episode, or the number of states if that is less.
    """

    layers: Int[np.ndarray, "layers width"]
    layer_of: Int[np.ndarray, " states"]
    sweeps: int


def backward_order(mdp: FiniteMDP) -> Order:
    """Layers by the longest way from the start; states in one loop with each other by the shortest."""
    size = mdp.num_states
    states, actions, outcomes = np.nonzero((np.asarray(mdp.probability) > 0) & ~np.asarray(mdp.terminated))
    after = np.asarray(mdp.next_state)[states, actions, outcomes]
    starts = np.asarray(mdp.start_state)[np.asarray(mdp.start_probability) > 0]
    root = np.full(starts.size, size)  # an extra state before all others, one step before each start
    rows, columns = np.concatenate([states, root]), np.concatenate([after, starts])
    graph = scipy.sparse.csr_array((np.ones(rows.size), (rows, columns)), shape=(size + 1, size + 1))
    reached, came_from = breadth_first_order(graph, size, directed=True)
    distance = np.zeros(size + 1, int)
    for state in reached[1:].tolist():
        distance[state] = distance[came_from[state]] + 1
    within = np.isin(states, reached)
    states, after = states[within], after[within]

    _, component = connected_components(graph, directed=True, connection="strong")
    onward = component[states] != component[after]
    depth = _longest(
        np.unique(np.stack([component[states], component[after]])[:, onward], axis=1), int(component.max()) + 1
    )
    real = np.sort(reached[1:])
    ranks = np.stack([depth[component[real]], distance[real]], axis=1)
    _, layer = np.unique(ranks, axis=0, return_inverse=True)
    layer_of = np.full(size, -1, np.int32)
    layer_of[real] = layer.ravel()
    members = [np.flatnonzero(layer_of == index) for index in range(layer_of.max() + 1)]
    layers = np.full((len(members), max(map(len, members))), size, np.int32)
    for row, found in zip(layers, members, strict=True):
        row[: len(found)] = found
    return Order(layers, layer_of, 1 if onward.all() else min(mdp.time_limit, real.size))


def _longest(edges: Int[np.ndarray, "2 edges"], size: int) -> Int[np.ndarray, " components"]:
    """The number of edges of the longest way to each node of a graph without loops."""
    depth = np.zeros(size, int)
    while True:
        deeper = depth.copy()
        np.maximum.at(deeper, edges[1], depth[edges[0]] + 1)
        if np.array_equal(deeper, depth):
            return depth
        depth = deeper
