"""Seeded random arguments for the recipes of ops: shapes, values, attributes."""

import ml_dtypes
import numpy as np

FLOATS = ("float32", "float64", "float16", "bfloat16")
WIDE = ("float32", "float64")
INTEGERS = ("int32", "int64", "int8", "int16", "uint8", "uint16", "uint32", "uint64")
COMPLEX = ("complex64", "complex128")
REALS = (*FLOATS, *INTEGERS)
NUMBERS = (*REALS, *COMPLEX)
INDEX = ("int32", "int64")
WORDS = (
    b"",
    b"a",
    b"Ab c",
    b"x,y,,z",
    b" pad ",
    "gr\u00fc\u00df".encode(),
    b"12",
    b"-3.5",
)


class Type(str):
    """An attribute that is a dtype, by name."""


class Held:
    """A variable with this value: the op gets its handle, and what it holds after
    the call is one more result."""

    def __init__(self, value):
        self.value = value


class Quantized:
    """A tensor of a quantized dtype by its integers."""

    def __init__(self, value, dtype):
        self.value, self.dtype = value, dtype


class Program:
    """A call of several ops: `RECIPES[name]` of `module` with draws from `seed`."""

    def __init__(self, module, name, seed):
        self.module, self.name, self.seed = module, name, seed


def numpy_type(name):
    return np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)


class Draw:
    """Draws from one seeded generator: a case is known by its op and number."""

    def __init__(self, seed):
        self._random = np.random.default_rng(seed)

    def integer(self, low, high):
        """In [low, high]."""
        return int(self._random.integers(low, high + 1))

    def pick(self, *options):
        return options[self.integer(0, len(options) - 1)]

    def maybe(self, chance=0.5):
        return bool(self._random.random() < chance)

    def uniform(self, low, high):
        return float(self._random.uniform(low, high))

    def shape(self, least=0, most=4, largest=5, empty=0.06):
        """A shape; now and then with a dimension of 0."""
        rank = self.integer(least, most)
        sizes = [self.integer(1, largest) for _ in range(rank)]
        if rank and self.maybe(empty):
            sizes[self.integer(0, rank - 1)] = 0
        return tuple(sizes)

    def like(self, shape):
        """A shape that broadcasts with `shape`."""
        kept = shape[self.integer(0, len(shape)) :] if self.maybe(0.3) else shape
        return tuple(1 if self.maybe(0.25) else n for n in kept)

    def array(self, dtype, shape, scale=2.0, special=0.0):
        """Numbers of any dtype; `special`: the share of inf, nan and zeros."""
        count = int(np.prod(shape))
        kind = numpy_type(dtype).kind if dtype != "string" else "S"
        if kind == "S":
            flat = np.empty(count, object)
            flat[:] = [WORDS[self.integer(0, len(WORDS) - 1)] for _ in range(count)]
            return flat.reshape(shape)
        if kind == "b":
            return self._random.integers(0, 2, shape).astype(bool)
        if kind in "iu":
            low = 0 if kind == "u" else -9
            return self._random.integers(low, 10, shape).astype(dtype)
        values = self._random.normal(size=shape) * scale
        if kind == "c":
            values = values + 1j * self._random.normal(size=shape) * scale
        values = np.asarray(values)
        if special:
            other = self._random.choice([0.0, -0.0, np.inf, -np.inf, np.nan], shape)
            values = np.where(self._random.random(shape) < special, other, values)
        return values.astype(numpy_type(dtype))

    def between(self, dtype, shape, low, high):
        if numpy_type(dtype).kind in "iu":
            return self._random.integers(int(low), int(high) + 1, shape).astype(dtype)
        values = self._random.uniform(low, high, shape)
        return np.asarray(values).astype(numpy_type(dtype))

    def distinct(self, dtype, shape):
        """Values of which no two are equal, so that extremes are one each."""
        count = int(np.prod(shape))
        values = self._random.permutation(count) - count // 3
        return (values.reshape(shape) / 2).astype(numpy_type(dtype))

    def permutation(self, n):
        return [int(i) for i in self._random.permutation(n)]

    def axes(self, rank, negative=True):
        """Some of the axes, some of them counted from the end."""
        chosen = [a for a in self.permutation(rank) if self.maybe()]
        return [a - rank if negative and self.maybe(0.3) else a for a in chosen]
