"""Compiled environments of gymnax and of XLand-MiniGrid, and any in gymnax's form."""

from uppertail.environments.gymnax.gymnax import Gymnax
from uppertail.environments.gymnax.xminigrid import XMiniGrid
