"""Spaces of Gymnasium and gymnax: which arrays their observations become for a network.

Spaces are told apart by the names of their classes, since packages that follow gymnax's form copied its spaces.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped

from uppertail.encodings import TEXT_PLACES, Numbers, ObservationSpace, Pixels, States, one_hot_text
from uppertail.errors import ContractError, InputError

UNBOUNDED = 1e10  # a declared bound of this size or more counts as none
IMAGE_SIDE = 10  # an array of numbers with two or three axes is an image if it has as many rows and columns
LARGE = {"f": 1024.0, "i": 2.0**23, "u": 2.0**23}  # 32 bits hold fractions to 6e-5 there, and integers up to 2^24
NOISE = 1e-12  # differences of so small a part of the largest number seen are errors of sums in 64 bits
MOST_WATCHED, WATCHED_BYTES = 10_000, 2**24  # observations that are compared with each other, and their memory
ROUNDED = 256.0  # differences from a large number are rounded to so many of its spacings: sums in another order differ
LARGEST_INTEGER = 2**31 - 1  # of an integer of 32 bits
MOST_STATES = 4096  # observations of several integers are one state if they have at most this many values

SIZES: dict[str, Callable[[Any], Any]] = {
    "Discrete": lambda space: [space.n],
    "MultiDiscrete": lambda space: np.ravel(space.nvec),
    "MultiBinary": lambda space: [2] * math.prod(space.shape),
}
"""How many values each integer of a space has."""

Path = tuple[Any, ...]  # where in an observation something is: keys of Dicts and indices of Tuples
Origins = tuple[tuple[int, float], ...]  # what is subtracted from numbers of a vector, by place


class Reading(NamedTuple):
    """How observations are read: as one array, which is a copy, and the space of that array.

    `shape` is that of an observation before it is read; None: it is a dict, a tuple or a text. `first`
    is the number of the first state of a Discrete. `origins` are subtracted before 32 bits would lose digits. `parts`
    are those that the array is made of, in order; none: it is the observation itself, or a hash of it.
    """

    array: Callable[[Any], Any]
    space: ObservationSpace
    shape: tuple[int, ...] | None = None
    first: int = 0
    origins: Origins = ()
    parts: tuple["Part", ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """What each number of the array is called by the keys of a Dict; an empty text: by none."""
        return tuple(name for part in self.parts for name in part.names)

    def integers(self, arrays: Any) -> Float[np.ndarray, "count integers"]:
        """Observations that consist of integers alone, with each of them as a number from 0 on."""
        sizes = [size for part in self.parts for size in part.sizes]
        if isinstance(self.space, States):
            return np.stack(np.unravel_index(np.asarray(arrays), sizes), axis=1).astype(np.float32)
        widths = [width for part in self.parts for width in (part.sizes if part.is_one_hot else (1,) * len(part.sizes))]
        pieces = np.split(np.asarray(arrays), np.cumsum(widths)[:-1], axis=1)
        of_each = zip(pieces, (part.is_one_hot for part in self.parts for _ in part.sizes), strict=True)
        return np.stack([np.argmax(each, axis=1) if one else each[:, 0] for each, one in of_each], 1).astype(np.float32)


class Part(NamedTuple):
    """A part of an observation: where it is, and how it is read, as numbers between bounds.

    One of integers also says how they are read, counted from 0, how many values each has, and whether its numbers are
    one-hots of them.
    """

    path: Path
    numbers: Callable[[Any], Any]
    low: Float[np.ndarray, " numbers"]
    high: Float[np.ndarray, " numbers"]
    is_continuous: bool = False
    integers: Callable[[Any], Any] | None = None
    sizes: tuple[int, ...] = ()
    is_one_hot: bool = False
    start: Int[np.ndarray, " integers"] | None = None  # the lowest of each integer
    origin: Shaped[np.ndarray, " numbers"] | None = None  # what is subtracted from its numbers; None: nothing

    @property
    def names(self) -> list[str]:
        """What each of its numbers is called by the keys that lead to it."""
        name, count = " ".join(each for each in self.path if isinstance(each, str)), len(self.low)
        return [f"{name} {place}" if name and count > 1 else name for place in range(count)]


def is_a(space: Any, *kinds: str) -> bool:
    """Whether the class of a space, or one that it inherits from, has one of these names."""
    return any(each.__name__ in kinds for each in type(space).__mro__)


def is_text(space: Any) -> bool:
    """Whether its observations are texts, as in Text and in spaces of other packages (MiniGrid's missions)."""
    from_gymnasium = type(space).__module__.startswith("gymnasium.")
    return is_a(space, "Text") or (not from_gymnasium and isinstance(space.sample(), str))


def is_image(space: Any) -> bool:
    """Whether it is an image, if it stands alone."""
    return is_a(space, "Box") and _image(space) is not None


def is_grid(space: Any) -> bool:
    """Whether it is a grid of integers, with or without channels, that is too small for an image."""
    return is_a(space, "Box") and space.dtype.kind in "iu" and len(space.shape) in (2, 3) and _image(space) is None


def leaves(space: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """The parts of a space that are neither Dict nor Tuple, and where they are."""
    if is_a(space, "Dict", "Tuple"):
        for name, part in space.spaces.items() if isinstance(space.spaces, Mapping) else enumerate(space.spaces):
            yield from leaves(part, (*path, name))
    else:
        yield path, space


def at(observation: Any, path: Path) -> Any:
    """The part of an observation that is there: an item, or an attribute; ContractError if there is none."""
    part = observation
    for name in path:
        is_item = isinstance(part, Mapping) or not isinstance(name, str)
        try:
            part = part[name] if is_item else getattr(part, name)
        except (LookupError, AttributeError, TypeError) as error:
            is_array = " is an array and" * hasattr(observation, "dtype")
            raise ContractError(f"the observation{is_array} has no {_named(path)}, which its space has") from error
    return part


def _read_at(read: Callable[[Any], Any], observation: Any, path: Path) -> Any:
    """What is read of the part of an observation that is there; a ContractError names the part."""
    part = at(observation, path)
    if not path:
        return read(part)
    try:
        return read(part)
    except ContractError as error:
        raise ContractError(f"{error}, at {_named(path)}") from error


def _named(path: Path) -> str:
    return "".join(f"[{each!r}]" for each in path)


def read_space(
    xp: Any,
    space: Any,
    left_out: frozenset[Path] = frozenset(),
    images: bool = True,
    states: bool = False,
    origins: Origins = (),
    ordered: bool = False,
) -> Reading:
    """How the observations of a space are read.

    Args:
        xp: NumPy, or `jax.numpy` for compiled environments.
        space: the observation space of one environment.
        left_out: paths of texts that never change.
        images: whether a bounded Box of at least 10 x 10 is an image; else it is flat.
        states: whether several integers are one state, if they have few values together; else they are one-hot.
        origins: what is subtracted from numbers of 64 bits.
        ordered: whether integers are numbers, as near ones are alike; else they are one-hot.

    Raises:
        InputError: they are of no kind that a network can take.
    """
    shape = getattr(space, "shape", None)
    if images and is_a(space, "Box") and (image := _image(space)):
        kind = np.uint8 if np.dtype(space.dtype) in (bool, np.uint8) else np.float32
        return Reading(lambda seen: _pixels(xp, seen, kind, space), image, tuple(space.shape))
    parts = list[Part]()
    for path, part in leaves(space):
        if path not in left_out:
            place = sum(each.low.size for each in parts)
            parts.append(_part(xp, path, part, tuple((index - place, number) for index, number in origins), ordered))
    sizes = (*(size for part in parts for size in part.sizes),)
    count = math.prod(sizes)
    discrete = is_a(space, "Discrete") and not ordered
    if parts and all(part.integers for part in parts) and (discrete or (states and count <= MOST_STATES)):
        first = int(getattr(space, "start", 0)) if discrete else 0
        return Reading(lambda seen: _state(xp, parts, seen), States(count, sizes), shape, first, parts=(*parts,))
    return Reading(
        lambda seen: xp.concatenate([_read_at(part.numbers, seen, part.path) for part in parts]),
        _numbers(space, parts),
        shape,
        origins=origins,
        parts=(*parts,),
    )


def _image(space: Any) -> Pixels | None:
    """A bounded Box as an image: two axes, or three of which the last or the first is that of channels."""
    bounds, axes = _bounds(space), len(space.shape)
    if axes not in (2, 3) or not np.isfinite(bounds).all():
        return None
    shape = space.shape if axes == 3 else (*space.shape, 1)
    first = axes == 3 and shape[0] < min(shape[1:])
    channels, height, width = shape if first else (shape[2], *shape[:2])
    if min(height, width) < IMAGE_SIDE:
        return None
    return Pixels(int(height), int(width), int(channels), first, float(np.abs(bounds).max()) or 1.0)


def _bounds(space: Any) -> Float[np.ndarray, "2 ..."]:
    """The lower and the upper bound of each number of a Box."""
    return np.array([np.broadcast_to(np.asarray(bound, np.float64), space.shape) for bound in (space.low, space.high)])


def _state(xp: Any, parts: list[Part], seen: Any) -> Any:
    """Several integers as one state, as the digits of a number."""
    state = 0
    for part in parts:
        assert part.integers is not None
        for size, integer in zip(part.sizes, _read_at(part.integers, seen, part.path), strict=True):
            state = state * size + integer
    return xp.array(state, np.int32)


def holds_more(space: Any) -> bool:
    """Whether an observation may hold numbers that have more digits than 32 bits."""
    boxes = [np.dtype(part.dtype) for _, part in leaves(space) if is_a(part, "Box")]
    return any(kind.kind in "iuf" and kind.itemsize >= (8 if kind.kind == "f" else 4) for kind in boxes)


def _flat(numbers: Any, space: Any) -> Any:
    """The numbers of a Box in one axis; ContractError if they are more or fewer than it has."""
    if numbers.size != math.prod(space.shape):
        raise ContractError(f"the observation has the shape {numbers.shape}, but its space says {tuple(space.shape)}")
    return numbers.reshape(numbers.size)


def _pixels(xp: Any, seen: Any, kind: Any, space: Any) -> Any:
    """A copy of an image in its declared shape; ContractError if it has other axes, or no bytes."""
    pixels = xp.array(seen, kind)
    if xp is np:
        _flat(pixels, space)
        given, declared = ([side for side in shape if side != 1] for shape in (pixels.shape, space.shape))
        if given != declared:
            raise ContractError(
                f"the observation has the shape {pixels.shape}, but its space says {tuple(space.shape)}"
            )
        _require_same(seen, pixels, space)
    return pixels.reshape(space.shape)


def _require_same(seen: Any, read: np.ndarray, space: Any) -> None:
    """ContractError if a part of an observation is other numbers, such as fractions, where it is read as integers."""
    numbers = np.asarray(seen).reshape(read.shape)
    if read.dtype.kind != "f" and (wrong := numbers != read).any():
        raise ContractError(f"the observation holds {numbers[wrong].flat[0]}, which is not in {space}")


def _centered(numbers: np.ndarray, origin: Float[np.ndarray, " numbers"]) -> Float[np.ndarray, " numbers"]:
    """Numbers less their origins, in 64 bits and then in 32; where the origin is 0, they are as they are."""
    if numbers.dtype.kind in "iu":
        less = numbers.astype(np.int64) - _whole(origin)  # what is beyond 64 bits comes back in the difference
    else:
        step = rounding(origin)
        less = np.round((numbers - origin) / step) * step
    return np.where(origin == 0, numbers, less).astype(np.float32)


def rounding(origin: Float[np.ndarray, " numbers"]) -> Float[np.ndarray, " numbers"]:
    """To which multiples differences from large numbers are rounded."""
    return np.where(origin == 0, 1.0, ROUNDED * np.spacing(np.abs(origin)))


def _whole(origin: Float[np.ndarray, " numbers"]) -> Int[np.ndarray, " numbers"]:
    """Origins as integers of 64 bits; those beyond 2^63 as NumPy converts integers without a sign."""
    return np.array([int(each) % 2**64 for each in origin.tolist()], np.uint64).astype(np.int64)


def chosen_origins(
    space: Any, left_out: frozenset[Path], walk: Sequence[Any], ordered: bool = False
) -> tuple[Origins, bool]:
    """What to subtract from the numbers of 64 bits of these observations; whether 32 bits lose some of them anyway.

    Large ones become differences from the first observation, unless more of them stay apart by themselves, or as
    differences from the median of the large ones: the first one may stand for what is not known yet.
    """
    found, place, lost = list[tuple[int, float]](), 0, False
    for path, part in leaves(space):
        if path in left_out:
            continue
        if is_a(part, "Box") and holds_more(part):
            seen = np.array([np.ravel(np.asarray(at(each, path))) for each in walk])
            for index in _large(seen):
                numbers = seen[:, index]
                origin, kept = _origin(numbers)
                found += [(place + index, origin)] if origin else []
                lost |= kept < _distinct(numbers)
        place += _part(np, path, part, ordered=ordered).low.size
    return tuple(found), lost


class Watched:
    """Reads observations with numbers of 64 bits, and notices if large ones that differ become the same."""

    def __init__(self, read: Callable[[Any], Any], space: Any) -> None:
        self.read, self.merged = read, False
        self._paths = [path for path, part in leaves(space) if is_a(part, "Box") and holds_more(part)]
        self._known, self._room = dict[bytes, list[np.ndarray]](), WATCHED_BYTES

    def __call__(self, seen: Any) -> Any:
        array = self.read(seen)
        if not self.merged and len(self._known) < MOST_WATCHED and self._room > 0:
            wide = [np.array(at(seen, path)) for path in self._paths]
            self._room -= array.nbytes + sum(each.nbytes for each in wide)
            before = self._known.setdefault(array.tobytes(), wide)
            self.merged = any(map(_apart, before, wide))
        return array


def _apart(one: np.ndarray, other: np.ndarray) -> bool:
    """Whether large numbers differ by more than errors of sums."""
    if one.dtype.kind not in LARGE or one.shape != other.shape:
        return False
    large = np.abs(one.astype(np.float64)) >= LARGE[one.dtype.kind]
    return bool((large & differs(one, other)).any())


def differs(one: np.ndarray, other: np.ndarray) -> Bool[np.ndarray, "..."]:
    """Where two arrays of one shape differ by more than errors of sums."""
    return np.asarray(~np.isclose(one, other, NOISE, 0.0) if one.dtype.kind == "f" else one != other)


def _large(seen: np.ndarray) -> list[int]:
    """The places of numbers of which some are too large for 32 bits to hold small differences."""
    if seen.dtype.kind not in LARGE or not np.isfinite(seen).all():
        return []
    return np.flatnonzero((np.abs(seen.astype(np.float64)) >= LARGE[seen.dtype.kind]).any(axis=0)).tolist()


def _origin(numbers: np.ndarray) -> tuple[float, int]:
    """What to subtract from a number that was seen so, and how many of its values stay apart then."""
    sizes = numbers.astype(np.float64)
    large = np.sort(sizes[np.abs(sizes) >= LARGE[numbers.dtype.kind]])
    first = sizes[0] if np.abs(sizes[0]) >= LARGE[numbers.dtype.kind] else 0.0
    kept = {
        origin: np.unique(_centered(numbers, np.full(numbers.size, origin))).size
        for origin in (float(first), 0.0, float(large[large.size // 2]))
    }
    best = max(kept, key=kept.__getitem__)  # of equal ones the first
    return best, kept[best]


def _distinct(numbers: np.ndarray) -> int:
    """How many values of a number are apart by more than errors of sums."""
    if numbers.dtype.kind != "f":
        return np.unique(numbers).size
    return np.unique(np.round(numbers / (NOISE * np.abs(numbers).max()))).size


def _part(xp: Any, path: Path, space: Any, origins: Origins = (), ordered: bool = False) -> Part:
    """How one part of an observation becomes numbers of 32 bits, in a copy: many environments reuse their arrays."""
    if is_a(space, *SIZES):
        return _integers(xp, path, space, ordered)
    if is_a(space, "Box"):
        low, high = _bounds(space).reshape(2, -1)
        is_binary = not np.issubdtype(np.dtype(space.dtype), np.floating) and (low >= 0).all() and (high <= 1).all()
        if here := {place: number for place, number in origins if 0 <= place < low.size}:
            origin = np.array([here.get(place, 0.0) for place in range(low.size)])
            low, high = low - origin, high - origin
            typed = origin if np.issubdtype(space.dtype, np.floating) else _whole(origin)
            return Part(
                path, lambda seen: _centered(_flat(np.asarray(seen), space), origin), low, high, True, origin=typed
            )
        return Part(path, lambda seen: _flat(xp.array(seen, np.float32), space), low, high, not is_binary)
    if xp is np and is_text(space):
        return Part(path, one_hot_text, np.zeros(TEXT_PLACES), np.ones(TEXT_PLACES))
    text, hashed = ("Text, ", ", or use --env.encoding hashed") if xp is np else ("", "")
    raise InputError(
        f"Observations of the space {space} cannot become numbers: wrap the environment so that they are Discrete, "
        f"Box, MultiDiscrete, MultiBinary, {text}or a Dict or Tuple of these{hashed}."
    )


def _integers(xp: Any, path: Path, space: Any, ordered: bool) -> Part:
    """A part of integers: each becomes a one-hot, or a number from 0 on, as those of a MultiBinary are already."""
    kind = next(each.__name__ for each in type(space).__mro__ if each.__name__ in SIZES)
    whole = np.int64 if xp is np else np.int32
    sizes, start = np.array(SIZES[kind](space)), np.ravel(getattr(space, "start", 0)).astype(whole)
    if (sizes > LARGEST_INTEGER).any():
        hashed = ", or use --env.encoding hashed" if xp is np else ""
        raise InputError(
            f"An observation of the space {space} may have more than {LARGEST_INTEGER:,} values: wrap the environment "
            f"so that it has fewer{hashed}."
        )

    def read(seen: Any) -> Any:  # in a compiled program, no error can be raised
        integers = xp.array(seen, whole)
        integers = (_flat(integers, space) if xp is np else integers.reshape(sizes.size)) - start
        if xp is np:
            _require_same(seen, integers + start, space)
            if ((integers < 0) | (integers >= sizes)).any():
                raise ContractError(f"the observation {seen} is not in {space}")
        return integers

    def one_hot(seen: Any) -> Any:
        each = zip(read(seen), sizes.tolist(), strict=True)
        return xp.concatenate([xp.arange(size) == integer for integer, size in each]).astype(np.float32)

    integers = read, (*sizes.tolist(),)
    if kind == "MultiBinary" or ordered:
        numbers = lambda seen: read(seen).astype(np.float32)  # noqa: E731
        return Part(path, numbers, np.zeros(sizes.size), sizes - 1.0, bool((sizes > 2).any()), *integers, False, start)
    low, high = (np.broadcast_to(bound, int(sizes.sum())) for bound in (0.0, 1.0))  # one number in memory: may be many
    return Part(path, one_hot, low, high, False, *integers, True, start)


def _numbers(space: Any, parts: list[Part]) -> Numbers:
    """A vector of numbers, with those of its declared bounds that are bounds; InputError if there are no numbers."""
    low = np.concatenate([np.zeros(0), *(part.low for part in parts)])
    high = np.concatenate([np.zeros(0), *(part.high for part in parts)])
    if low.size == 0:
        raise InputError(f"Observations of the space {space} hold no numbers: wrap the environment so that they do.")
    bounded = (np.abs(low) < UNBOUNDED) & (np.abs(high) < UNBOUNDED)
    low, high = np.where(bounded, low, -np.inf), np.where(bounded, high, np.inf)
    return Numbers(tuple(low.tolist()), tuple(high.tolist()), any(part.is_continuous for part in parts))
