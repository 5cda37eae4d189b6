"""Warnings about valid requests from which nothing can be learned."""

from collections.abc import Iterator

from uppertail.encodings import Encoding, Scalar
from uppertail.training.method import Method


def traps(method: Method, encoding: Encoding) -> Iterator[str]:
    """A sentence for each thing that keeps this method from learning or exploring.

    Args:
        method: the parts of a run.
        encoding: how observations enter its network.
    """
    family, policy = type(method.distribution).__name__, type(method.policy).__name__
    if method.policy.explores_by_spread and not method.distribution.has_spread:
        yield (
            f"{policy} explores by the spread of the return, and {family} has none: it always takes the greedy action; "
            "use --policy EpsilonGreedy, or a distribution with a spread."
        )
    if isinstance(encoding, Scalar) and getattr(method.network, "bias", None) is False:
        yield (
            "Scalar states enter a network without biases, which gives them all but one function of the same sign: it "
            "hardly tells them apart. Use --bias true, or --env.encoding one_hot."
        )
