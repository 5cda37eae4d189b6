"""Cartpole swing-up (bsuite): deep exploration where states are numbers, and standing still is free."""

import dataclasses
import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

import uppertail as ut
from uppertail import TimeStep
from uppertail.environments.base import discounted_steps

CART, POLE, HALF_LENGTH = 1.0, 0.1, 0.5  # masses in kg, and half the pole's length in m
PUSH, GRAVITY, TIME_STEP = 10.0, 9.8, 0.01  # an action's force in N, free fall in m/s^2, the length of a step in s
EDGE = 3.0  # how far from the center the track ends, in m
CENTRAL, SLOW = 1.0, 1.0  # a pole is paid for nearer to the center than this, in m, and below this speed, in radians/s
MOVE_COST = 0.1  # of a push
MAX_TIME, STEPS = 10.0, 1_001  # an episode ends once more than these seconds are over, after so many steps
INIT_RANGE = 0.05  # how far each number of the first state may be from hanging still at the center
NUMBERS = ut.Numbers(  # the share of the episode that is over is 1.001 at its last step, as bsuite's
    low=(-1.0, -math.inf, -1.0, -1.0, -math.inf, 0.0, -1.0, -1.0),
    high=(1.0, math.inf, 1.0, 1.0, math.inf, 1.0, 1.0, 1.0),
)


class CartpoleState(NamedTuple):
    """Where cart and pole are, how fast they move, and how many steps were made."""

    x: Float[Array, ""]  # in m from the center
    x_dot: Float[Array, ""]  # in m/s
    theta: Float[Array, ""]  # in radians; 0: upright
    theta_dot: Float[Array, ""]  # in radians/s
    steps: Int[Array, ""]

    def after(self, force: Float[Array, ""]) -> "CartpoleState":
        """The state a step later, by Euler's method without friction, as in bsuite; the force in N is to the right."""
        cos, sin, mass = jnp.cos(self.theta), jnp.sin(self.theta), CART + POLE
        swing = (force + POLE * HALF_LENGTH * self.theta_dot**2 * sin) / mass
        theta_acc = (GRAVITY * sin - cos * swing) / (HALF_LENGTH * (4 / 3 - POLE * cos**2 / mass))
        x_acc = swing - POLE * HALF_LENGTH * theta_acc * cos / mass
        return CartpoleState(
            self.x + TIME_STEP * self.x_dot,
            self.x_dot + TIME_STEP * x_acc,
            jnp.remainder(self.theta + TIME_STEP * self.theta_dot, 2 * math.pi),
            self.theta_dot + TIME_STEP * theta_acc,
            self.steps + 1,
        )


class SwingUp(ut.Environment):
    """One seed's cart and pole; the pole is upright where the cosine of its angle is above `height`."""

    height: Float[Array, ""]

    @property
    def observations(self) -> ut.Numbers:
        return NUMBERS

    @property
    def num_actions(self) -> int:
        return 3

    def reset(self, key: PRNGKeyArray) -> tuple[CartpoleState, TimeStep]:
        x, x_dot, theta, theta_dot = jax.random.uniform(key, (4,), minval=-INIT_RANGE, maxval=INIT_RANGE)
        pose = CartpoleState(x, x_dot, math.pi + theta, theta_dot, jnp.zeros((), jnp.int32))
        no = jnp.zeros((), bool)
        return pose, TimeStep(self._observation(pose), jnp.zeros(()), no, no)

    def step(self, key: PRNGKeyArray, state: CartpoleState, action: Int[Array, ""]) -> tuple[CartpoleState, TimeStep]:
        push = action.astype(jnp.float32) - 1
        pose = state.after(PUSH * push)
        upright = (jnp.cos(pose.theta) > self.height) & jnp.all(self._central_and_slow(pose))
        reward = jnp.where(upright, 1.0, 0.0) - MOVE_COST * jnp.abs(push)
        over = (pose.steps >= STEPS) | (jnp.abs(pose.x) > EDGE)
        return pose, TimeStep(self._observation(pose), reward, over, jnp.zeros((), bool))

    def return_range(self, discount: float) -> tuple[Float[Array, ""], Float[Array, ""]]:
        horizon = discounted_steps(STEPS, discount)
        return jnp.full((), -MOVE_COST * horizon), jnp.full((), horizon)

    def _central_and_slow(self, pose: CartpoleState) -> Bool[Array, "2"]:
        return jnp.stack([jnp.abs(pose.x) < CENTRAL, jnp.abs(pose.theta_dot) < SLOW])

    def _observation(self, pose: CartpoleState) -> Float[Array, "8"]:
        place = [pose.x / EDGE, pose.x_dot / EDGE]
        pole = [jnp.sin(pose.theta), jnp.cos(pose.theta), pose.theta_dot]
        time = pose.steps.astype(jnp.float32) * (TIME_STEP / MAX_TIME)
        return jnp.stack([*place, *pole, time, *jnp.where(self._central_and_slow(pose), 1.0, -1.0)])


@dataclasses.dataclass(frozen=True)
class CartpoleSwingup(ut.VectorBuilder):
    """A pole hangs from a cart: swinging it up and keeping it there earns 1 per step, every push costs a little.

    An agent that does not explore deeply learns to stand still, which is free. Actions: push left, nothing, push right.
    Observation: the cart's place and speed (as shares of the track's half), sine and cosine of the pole's angle, its
    angular speed, the share of the episode that is over, and 1 or -1 for whether the cart is near the center and for
    whether the pole is slow. An episode terminates after 1,001 steps of 0.01 seconds, or where the track ends. As in
    bsuite 0.3.6, whose sweep also narrows the center as it raises `height_threshold` from 0 to 0.95.

    Args:
        height_threshold: the pole is upright where the cosine of its angle is above this, in [-1, 1).
    """

    height_threshold: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        if not -1 <= np.float32(self.height_threshold) < 1:
            raise ut.InputError(
                f"height_threshold is {self.height_threshold}, but it is the cosine of an angle that a pole must be "
                "able to exceed: use a number in [-1, 1), in 32 bits; bsuite's are 0 to 0.95."
            )

    @property
    def success_return(self) -> float:
        """What bsuite's score calls a swing-up."""
        return 100.0

    def build(self, key: PRNGKeyArray) -> SwingUp:
        return SwingUp(jnp.float32(self.height_threshold))
