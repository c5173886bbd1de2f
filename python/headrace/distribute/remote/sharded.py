"""ShardedVariable: a variable in parts along its first dimension."""

import operator
import weakref

from headrace import _api as tf
from headrace.context import strategies
from headrace.context.properties import read_only
from headrace.framework import type_spec
from headrace.framework.trackable import Trackable

_BAD_PARTS = (
    "variable_partitioner must return a list/tuple whose elements are 1 besides the first "
    "element (non-zero), got: {}"
)


_NOTHING = lambda: None


class ShardedVariable(Trackable):
    """Variables that are one tensor in parts, whose first rows the first one has. Functions
    take it for the whole tensor; tf.nn.embedding_lookup asks each part for its rows alone.

    Attributes:
      variables: a list of the parts.
      shape: of the whole.
    """

    _is_composite_tensor = True
    is_sharded_variable = True

    def __init__(self, parts, name="ShardedVariable"):
        self._all_parts, self._name = list(parts), name
        first = self._parts[0].shape.as_list()
        self._shape = tf.TensorShape([sum(self._sizes), *first[1:]])
        self._file_variable = None
        for part in self._all_parts:
            if getattr(part, "_part_of", _NOTHING)() is None:
                part._part_of = weakref.ref(self)

    @property
    def _parts(self):
        # SavedModels have one variable, of the whole.
        if strategies.is_saving(
            getattr(self._all_parts[0], "_distribute_strategy", None)
        ):
            return [self._of_files()]
        return self._all_parts

    _sizes = property(lambda self: [v.shape[0] for v in self._parts])

    variables = property(lambda self: list(self._parts), doc="A list of the parts.")
    name = read_only("_name", "The name, without a number behind it.")
    shape = read_only("_shape", "The TensorShape of the whole.")
    dtype = property(lambda self: self._parts[0].dtype, doc="The DType of the values.")

    def __iter__(self):
        return iter(self._parts)

    def numpy(self):
        """The whole value as an array."""
        return tf.convert_to_tensor(self).numpy()

    def __tf_tensor__(self, dtype=None, name=None):
        return self._read()

    def _read(self):
        return tf.concat([v.value() for v in self._parts], 0)

    def __array__(self, dtype=None, copy=None):
        return self.__tf_tensor__().__array__(dtype, copy)

    # --- changes ---

    def _each(self, method, whole):
        """Calls a method of each part with its rows of a whole value."""
        dtype = self._parts[0].dtype
        value = tf.convert_to_tensor(whole, None if _is_tensor(whole) else dtype)
        if not value.shape.is_compatible_with(self.shape):
            raise tf.errors.InvalidArgumentError(
                None,
                None,
                f"a value of shape {value.shape} for the ShardedVariable {self._name} of "
                f"shape {self.shape}",
            )
        for part, rows in zip(self._parts, tf.split(value, self._sizes)):
            getattr(part, method)(rows)
        return self

    def assign(self, value, use_locking=None, name=None, read_value=True):
        """Gives the parts their rows of a whole value. Returns the variable."""
        return self._each("assign", value)

    def assign_add(self, delta, use_locking=False, name=None, read_value=True):
        """Adds its rows of a whole value to each part. Returns the variable."""
        return self._each("assign_add", delta)

    def assign_sub(self, delta, use_locking=False, name=None, read_value=True):
        """Takes its rows of a whole value from each part. Returns the variable."""
        return self._each("assign_sub", delta)

    def _scatter(self, method, sparse_delta, use_locking=False, name=None):
        indices = tf.convert_to_tensor(sparse_delta.indices)
        which, rows = self._places(indices)
        count = len(self._parts)
        values = tf.convert_to_tensor(sparse_delta.values)
        for part, at, new in zip(
            self._parts,
            tf.dynamic_partition(rows, which, count),
            tf.dynamic_partition(values, which, count),
        ):
            getattr(part, method)(tf.IndexedSlices(new, at))
        return self

    def _places(self, indices):
        """(the part, the row in it) of each index of the whole."""
        ends = tf.cast(tf.math.cumsum(self._sizes), indices.dtype)
        which = tf.searchsorted(ends, tf.reshape(indices, [-1]), side="right")
        starts = ends - tf.cast(self._sizes, indices.dtype)
        which = tf.minimum(which, len(self._parts) - 1)  # its server tells of the error
        return which, tf.reshape(indices, [-1]) - tf.gather(starts, which)

    def sparse_read(self, indices, name=None):
        """The rows at those indices, [*indices.shape, ...]."""
        return tf.nn.embedding_lookup(self, indices, name=name)

    # --- a part of it ---

    def __getitem__(self, key):
        """Rows, as tensors are indexed, of the parts that have some of them.

        TypeError for tensors and lists as indices, IndexError for rows that there are
        not.
        """
        first, rest = (key[0], key[1:]) if isinstance(key, tuple) and key else (key, ())
        if isinstance(first, tf.Tensor):
            raise TypeError(
                "ShardedVariable: using Tensor for indexing is not allowed."
            )
        if isinstance(first, slice):
            return self._rows(first, rest)
        if first is Ellipsis or first is None:
            return tf.convert_to_tensor(self)[key]
        return self._row(operator.index(first), rest)

    def _row(self, index, rest):
        total = sum(self._sizes)
        row = index + total if index < 0 else index
        if not 0 <= row < total:
            raise IndexError(
                f"ShardedVariable: slice index {index} of dimension 0 out of bounds."
            )
        for part, size in zip(self._parts, self._sizes):
            if row < size:
                return part[(row, *rest)]
            row -= size
        raise AssertionError("the sizes of parts are those of the whole")

    def _rows(self, key, rest):
        rows = range(*key.indices(sum(self._sizes)))
        found, start = [], 0
        for part, size in zip(self._parts, self._sizes):
            mine = [r - start for r in rows if start <= r < start + size]
            start += size
            if mine:
                last = mine[-1] + rows.step
                stop = None if last < 0 else last
                found.append(part[(slice(mine[0], stop, rows.step), *rest)])
        if not found:
            return self._parts[0][(slice(0, 0), *rest)]
        return tf.concat(found if rows.step > 0 else found[::-1], 0)

    # --- checkpoints: one value, which readers of slices take for theirs ---

    def _serialize_to_tensors(self):
        return {"VARIABLE_VALUE": tf.convert_to_tensor(self)}

    def _restore_from_tensors(self, restored_tensors):
        return self.assign(restored_tensors["VARIABLE_VALUE"])

    # --- saved models ---

    def _of_files(self):
        """The one variable, of this process, that stands for all parts."""
        if self._file_variable is None:
            with (
                tf.init_scope(),
                strategies.entering(strategies.Mode(None, is_default=True)),
            ):
                self._file_variable = tf.Variable(
                    tf.convert_to_tensor(self),
                    trainable=self._all_parts[0].trainable,
                    name=self._name,
                )
        return self._file_variable

    def _saved_variable(self):
        """The same, with the whole value."""
        self._of_files().assign(tf.convert_to_tensor(self))
        return self._file_variable

    # --- a composite of variables ---

    def _components(self):
        return self.variables

    def _from_components(self, parts):
        return ShardedVariable(parts, self._name)

    def _static_parts(self):
        return (self._type_spec,)

    @property
    def _type_spec(self):
        return ShardedVariableSpec(
            *(tf.TensorSpec(v.shape, v.dtype) for v in self._parts)
        )

    __hash__ = object.__hash__


class ShardedVariableSpec(type_spec.TypeSpec):
    """The specs of the parts of a ShardedVariable."""

    value_type = ShardedVariable

    def __init__(self, *part_specs):
        self._part_specs = tuple(part_specs)

    def _serialize(self):
        return self._part_specs

    @property
    def _component_specs(self):
        return list(self._part_specs)

    def _from_components(self, parts):
        return ShardedVariable(parts)


def _is_tensor(value):
    return isinstance(value, (tf.Tensor, tf.Variable, ShardedVariable))


def _scattering(name):
    def scatter(self, sparse_delta, use_locking=False, name=None):
        return self._scatter(scatter.__name__, sparse_delta)

    scatter.__name__, scatter.__qualname__ = name, f"ShardedVariable.{name}"
    scatter.__doc__ = f"{name} of tf.Variable, by rows of the whole; the variable."
    return scatter


def _binary(function):
    def forward(self, other):
        return function(tf.convert_to_tensor(self), other)

    def reverse(self, other):
        return function(other, tf.convert_to_tensor(self))

    return forward, reverse


def _add_methods():
    for name in "add sub mul div max min update".split():
        setattr(ShardedVariable, f"scatter_{name}", _scattering(f"scatter_{name}"))
    ShardedVariable.batch_scatter_update = _scattering("batch_scatter_update")
    for name in "add sub mul truediv floordiv mod pow matmul and or xor".split():
        forward, reverse = _binary(getattr(operator, f"__{name}__"))
        setattr(ShardedVariable, f"__{name}__", forward)
        setattr(ShardedVariable, f"__r{name}__", reverse)
    for name in "lt le gt ge eq ne".split():
        forward, _ = _binary(getattr(operator, name))
        setattr(ShardedVariable, f"__{name}__", forward)
    for name in ("neg", "abs", "invert"):
        function = getattr(operator, name)
        setattr(
            ShardedVariable,
            f"__{name}__",
            lambda self, f=function: f(tf.convert_to_tensor(self)),
        )


_add_methods()


# --- how variables are divided ---


def partitioned(partitioner, kwargs, make, next_creator):
    """The ShardedVariable that a partitioner makes of a variable; None where it is to stay
    whole. ValueError for parts along other dimensions than the first."""
    value = kwargs["initial_value"]
    value = value() if callable(value) else value
    dtype = kwargs.get("dtype")
    value = tf.convert_to_tensor(value, dtype)
    kwargs["initial_value"], shape = value, tf.TensorShape(value.shape)
    if not shape.rank:
        return None
    counts = partitioner(shape=shape, dtype=value.dtype)
    if not counts or counts[0] == 0 or any(n != 1 for n in counts[1:]):
        raise ValueError(_BAD_PARTS.format(counts))
    count = min(operator.index(counts[0]), shape[0])
    if count <= 1:
        return None
    each, extra = divmod(shape[0], count)
    sizes = [each + (i < extra) for i in range(count)]
    name, parts = kwargs.get("name"), []
    for i, rows in enumerate(tf.split(value, sizes)):
        given = dict(kwargs, initial_value=rows)
        if name is not None:
            given["name"] = f"{name}/part_{i}"
        if kwargs.get("shape") is not None:
            given["shape"] = rows.shape
        parts.append(make(next_creator, given))
    return ShardedVariable(parts, name or "ShardedVariable")
