"""Layers that join several inputs."""

import functools
import operator  # noqa: F401 (in the table)

from headrace import _api as tf
from headrace.keras.base.base_layer import Layer
from headrace.keras.classes import add_classes
from headrace.keras.layer.parts import takes


@takes("**kwargs")
class _Merge(Layer):
    """Joins a list of tensors, element by element."""

    supports_masking = True
    _same_batches = True  # whether all inputs have as many samples
    _count = None  # how many inputs; None: two or more
    _says_count = None  # how a text says that, where it says no list otherwise

    def _check(self, inputs, what="inputs", each="tensors"):
        name = f"A `{type(self).__name__}` layer should be called on"
        if not isinstance(inputs, (list, tuple)) and not self._says_count:
            raise ValueError(
                "A merge layer should be called on a list of inputs. Received: "
                f"{what}={inputs} (not a list of {each})"
            )
        count = len(inputs) if isinstance(inputs, (list, tuple)) else 0
        if count < 1 or (self._count and count != self._count):
            said = "exactly 2 inputs" if self._count else "at least 1 inputs"
            raise ValueError(
                f"{name} {self._says_count or said}. Received: {what}={inputs}"
            )

    def build(self, input_shape):
        """Checks that the inputs' shapes can be joined;
        ValueError where they cannot."""
        shapes = input_shape
        if isinstance(shapes, list):
            shapes = [tuple(tf.TensorShape(s).as_list()) for s in shapes]
        self._check(shapes, "input_shape", "shapes")
        shapes = [tf.TensorShape(s) for s in shapes]
        if self._same_batches:
            self._check_batches(shapes)
        self._check_shapes(shapes)
        self.built = True

    @staticmethod
    def _check_batches(shapes):
        sizes = {s[0] for s in shapes if s.rank} - {None}
        if len(sizes) > 1:
            raise ValueError(
                "Cannot merge tensors with different batch sizes. Got tensors with shapes "
                f"{[tuple(s.as_list()) for s in shapes]}"
            )

    def _check_shapes(self, shapes):
        """Raises ValueError where the sizes of two inputs cannot be broadcast."""
        for first, second in zip(shapes, shapes[1:]):
            if first.rank is None or second.rank is None:
                continue
            pairs = zip(reversed(first.as_list()[1:]), reversed(second.as_list()[1:]))
            for a, b in pairs:
                if a is not None and b is not None and 1 not in (a, b) and a != b:
                    raise ValueError(
                        "Inputs have incompatible shapes. Received shapes "
                        f"{tuple(first.as_list()[1:])} and "
                        f"{tuple(second.as_list()[1:])}"
                    )

    def _merge(self, inputs):
        raise NotImplementedError(type(self).__name__)

    def call(self, inputs):
        """The inputs, a list of tensors, joined; those of lower rank get sizes of 1."""
        self._check(inputs)
        ranks = {x.shape.rank for x in inputs}
        if len(ranks) > 1 and None not in ranks:
            most = max(ranks)
            inputs = [self._padded(x, most) for x in inputs]
        return self._merge(list(inputs))

    @staticmethod
    def _padded(x, rank):
        """x with axes of 1 after the batch."""
        for _ in range(rank - x.shape.rank):
            x = tf.expand_dims(x, 1)
        return x

    def compute_mask(self, inputs, mask=None):
        """Shown where all masks show; None where no input has one."""
        if mask is None or all(m is None for m in mask):
            return None
        found = [m for m in mask if m is not None]
        out = found[0]
        for other in found[1:]:
            out = tf.logical_and(out, other)
        return out


class _Fold(_Merge):
    """Joins the first two inputs, then each further one with what came so far."""

    _join = None  # a function of two tensors

    def _merge(self, inputs):
        return functools.reduce(self._join, inputs)


add_classes(
    globals(),
    """
Add(_Fold, _join=staticmethod(operator.add))
    The sum of the inputs, which are broadcast.
Subtract(_Fold, _join=staticmethod(operator.sub), _count=2)
    The first of two inputs less the second.
Multiply(_Fold, _join=staticmethod(operator.mul))
    The product of the inputs, element by element.
Maximum(_Fold, _join=staticmethod(tf.maximum))
    The largest of the inputs, element by element.
Minimum(_Fold, _join=staticmethod(tf.minimum))
    The smallest of the inputs, element by element.
""",
)


class Average(Add):
    """The mean of the inputs, element by element."""

    def _merge(self, inputs):
        return super()._merge(inputs) / len(inputs)


@takes("axis=-1, **kwargs")
class Concatenate(_Merge):
    """Joins along an axis."""

    _same_batches = False
    _says_count = "a list of at least 1 input"

    def _check_shapes(self, shapes):
        if any(s.rank is None for s in shapes):
            return
        rank = shapes[0].rank
        inner = set()
        for shape in shapes:
            sizes = shape.as_list()
            if shape.rank == rank:
                del sizes[self.axis]
            inner.add(tuple(n if n is not None else -1 for n in sizes))
        known = [s for s in inner if -1 not in s]
        if len(known) > 1 or any(s.rank != rank for s in shapes):
            raise ValueError(
                "A `Concatenate` layer requires inputs with matching shapes except for "
                f"the concatenation axis. Received: input_shape="
                f"{[tuple(s.as_list()) for s in shapes]}"
            )

    def _merge(self, inputs):
        return tf.concat(inputs, axis=self.axis)

    def compute_mask(self, inputs, mask=None):
        """The masks one after another, True for inputs without one; None where none has
        one.
        """
        if mask is None or all(m is None for m in mask):
            return None
        masks = []
        for x, m in zip(inputs, mask):
            if m is None:
                masks.append(tf.ones_like(x, dtype=tf.bool))
            elif m.shape.rank < x.shape.rank:
                shown = tf.expand_dims(m, -1)
                masks.append(tf.broadcast_to(shown, tf.shape(x)))
            else:
                masks.append(m)
        return tf.reduce_all(tf.concat(masks, axis=self.axis), axis=-1)


@takes("axes, normalize=False, **kwargs")
class Dot(_Merge):
    """The product of two inputs over an axis of each."""

    _count = 2
    _same_batches = False
    _says_count = "a list of 2 inputs"

    def _check_shapes(self, shapes):
        first, second = self._pair(shapes[0].rank, shapes[1].rank)
        a, b = shapes[0][first], shapes[1][second]
        if a is not None and b is not None and a != b:
            raise ValueError(
                f"Incompatible input shapes: axis values {a} (at axis {first}) != {b} "
                f"(at axis {second}). Full input shapes: {', '.join(map(str, shapes))}"
            )

    def _pair(self, rank_a, rank_b):
        a, b = (self.axes,) * 2 if isinstance(self.axes, int) else self.axes
        return a % rank_a, b % rank_b

    def call(self, inputs):
        """Sums x * y over an axis of each; the other axes of x come before those of y.

        With `normalize` both are divided by their norms along the axis: the cosine.
        """
        self._check(inputs)
        x, y = inputs
        a, b = self._pair(x.shape.rank, y.shape.rank)
        if self.normalize:
            x = tf.math.l2_normalize(x, axis=a)
            y = tf.math.l2_normalize(y, axis=b)
        letters = "abcdefghijklmnopqrstuvwxyz"
        left = ["z"] + list(letters[1 : x.shape.rank])
        right = ["z"] + list(letters[10 : 10 + y.shape.rank - 1])
        left[a] = right[b] = "y"
        out = [c for c in left if c != "y"] + [c for c in right[1:] if c != "y"]
        equation = f"{''.join(left)},{''.join(right)}->{''.join(out)}"
        found = tf.einsum(equation, x, y)
        return tf.expand_dims(found, 1) if found.shape.rank == 1 else found

    def compute_mask(self, inputs, mask=None):
        """None."""
        return None


def _function(layer):
    def merge(inputs, **kwargs):
        return layer(**kwargs)(inputs)

    merge.__name__ = layer.__name__.lower()
    merge.__doc__ = f"A new layer {layer.__name__} called with a list of tensors."
    return merge


add, subtract, multiply = _function(Add), _function(Subtract), _function(Multiply)
average, maximum, minimum = _function(Average), _function(Maximum), _function(Minimum)


def concatenate(inputs, axis=-1, **kwargs):
    """Concatenate as a function."""
    return Concatenate(axis=axis, **kwargs)(inputs)


def dot(inputs, axes, normalize=False, **kwargs):
    """The products of two inputs along `axes`, [batch, ...]: the layer Dot, called.

    `normalize` divides by lengths first, so that products are cosines; `kwargs` are Dot's.
    """
    return Dot(axes=axes, normalize=normalize, **kwargs)(inputs)
