"""A pole on a cart: how both move when the cart is pushed (Barto, Sutton and Anderson 1983)."""

import math
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

CART, POLE, HALF_LENGTH = 1.0, 0.1, 0.5
"""Masses in kg, and half the pole's length in m."""
PUSH, GRAVITY = 10.0, 9.8
"""The force of an action in N, and the acceleration of free fall in m/s^2."""

TIME_STEP = 0.01
"""The length of a step, in s."""


class CartpoleState(NamedTuple):
    """Where cart and pole are, how fast they move, and how many steps were made.

    Args:
        x: the cart's place, in m from the centre.
        x_dot: its speed, in m/s.
        theta: the pole's angle in radians; 0: upright.
        theta_dot: its angular speed, in radians/s.
        steps: steps since the episode began.
    """

    x: Float[Array, ""]
    x_dot: Float[Array, ""]
    theta: Float[Array, ""]
    theta_dot: Float[Array, ""]
    steps: Int[Array, ""]

    def after(self, force: Float[Array, ""]) -> "CartpoleState":
        """The state a step later, by Euler's method; without friction, as in bsuite.

        Args:
            force: what pushes the cart to the right, in N.
        """
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
