"""A finite MDP without loops, drawn as a tree from its tables."""

import itertools

from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from experiments.paper.drawing import shapes
from experiments.paper.drawing.shapes import Point
from experiments.paper.drawing.transitions import start, transitions
from uppertail.analysis.figures import COLORS
from uppertail.environments import FiniteMDP

Node = tuple[int, int | None]
"""A state (its index, None), or the end of the episode after a state and action."""
OPTIMAL = COLORS[2]
LABEL = 0.62
"""How far along an arrow its label is."""
COUSINS = 1.6
"""How much farther apart ends of different states are than those of the same one."""


def draw_tree(axes: Axes, mdp: FiniteMDP, optimal: set[tuple[int, int]], boxed: tuple[int, ...]) -> None:
    """Draws the start state above its successors, the end of an episode as a square.

    Args:
        axes: see `shapes.canvas`.
        mdp: deterministic tables.
        optimal: states and actions of the optimal paths, drawn heavier.
        boxed: states around which a dotted box is drawn, with the ends that they lead to.
    """
    edges = transitions(mdp)
    places = _places(mdp, axes.get_xlim()[1], axes.get_ylim()[1])
    for (state, action), edge in edges.items():
        if (state, None) not in places:
            continue  # out of reach
        ends = edge.next_state is None
        tail, head = (
            places[state, None],
            places[(state, action) if edge.next_state is None else (edge.next_state, None)],
        )
        heavy = (state, action) in optimal
        gap = 0.55 * shapes.SQUARE if ends else shapes.RADIUS
        color, width = (OPTIMAL, shapes.HEAVY) if heavy else (shapes.INK, shapes.LIGHT)
        shapes.arrow(axes, tail, head, (shapes.RADIUS, gap), color, width)
        label = f"{shapes.subscript('a', action)}\nr = {shapes.number(edge.reward)}"
        shapes.write(axes, _along(tail, head, LABEL), label, covers=True)
    for (state, action), place in places.items():
        if action is None:
            shapes.circle(axes, place, shapes.subscript("s", state))
        else:
            shapes.square(axes, place)
    _box(axes, [place for (state, _), place in places.items() if state in boxed])


def _places(mdp: FiniteMDP, width: float, height: float) -> dict[Node, Point]:
    """The ends beside each other on the width, a state in the middle above what it leads to, a level for each step."""
    edges = transitions(mdp)
    below: dict[Node, list[Node]] = {}
    level: dict[Node, int] = {(start(mdp), None): 0}

    def descend(state: int) -> None:
        for action in range(mdp.num_actions):
            following = edges[state, action].next_state
            node = (state, action) if following is None else (following, None)
            if node not in level:  # a state that several lead to hangs below the first
                level[node] = level[state, None] + 1
                below.setdefault((state, None), []).append(node)
                if following is not None:
                    descend(following)

    descend(start(mdp))
    leaves = [node for node in level if node not in below]
    hangs = {node: parent for parent, nodes in below.items() for node in nodes}
    units = [0.5]
    for one, other in itertools.pairwise(leaves):
        units.append(units[-1] + (1.0 if hangs[one] == hangs[other] else COUSINS))
    across = {leaf: unit * width / (units[-1] + 0.5) for leaf, unit in zip(leaves, units, strict=True)}
    for node in sorted(below, key=lambda node: -level[node]):
        across[node] = (across[below[node][0]] + across[below[node][-1]]) / 2
    margin = shapes.RADIUS + 0.15
    step = (height - 2 * margin) / max(level.values(), default=1)
    return {node: (across[node], height - margin - step * depth) for node, depth in level.items()}


def _along(tail: Point, head: Point, share: float) -> Point:
    return tail[0] + share * (head[0] - tail[0]), tail[1] + share * (head[1] - tail[1])


def _box(axes: Axes, places: list[Point]) -> None:
    if places:
        pad = shapes.RADIUS + 0.06
        left, right = min(x for x, _ in places) - pad, max(x for x, _ in places) + pad
        low, high = min(y for _, y in places) - pad, max(y for _, y in places) + pad
        axes.add_patch(
            Rectangle(
                (left, low),
                right - left,
                high - low,
                fill=False,
                edgecolor=shapes.FAINT,
                linestyle=":",
                linewidth=1.3,
                zorder=1,
            )
        )
