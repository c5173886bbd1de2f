"""Variables in parts along one axis, and what says how many parts."""

import inspect
import math

from headrace._load import _headrace
from headrace.context.properties import read_only
from headrace.framework import conversion, dtypes, execution, tensor_shape
from headrace.framework.support.save_slice_info import SaveSliceInfo
from headrace.ops import array_ops


class PartitionInfo:
    """What an initializer is told of the part that it is to make."""

    def __init__(self, full_shape, var_offset):
        self.full_shape = tensor_shape.as_shape(full_shape)
        self.var_offset = list(var_offset)
        for offset, size in zip(self.var_offset, self.full_shape):
            if offset < 0 or offset >= max(size, 1):
                raise ValueError(
                    f"Expected 0 <= offset < shape but found offset={offset}, "
                    f"shape={size} for var_offset={self.var_offset}, "
                    f"full_shape={self.full_shape.as_list()}"
                )

    def single_slice_dim(self, shape):
        """The axis along which parts of that shape lie; None: there is one part."""
        if len(shape) != self.full_shape.rank:
            raise ValueError(
                f"Expected equal length, but received shape={shape} of length "
                f"{len(shape)} while self.full_shape={self.full_shape} is of length "
                f"{self.full_shape.rank}."
            )
        axes = [i for i, n in enumerate(shape) if n != self.full_shape[i]]
        if len(axes) > 1:
            raise ValueError(f"Cannot use single_slice_dim() with shape={shape}")
        return axes[0] if axes else None

    def single_offset(self, shape):
        """Where the part begins on that axis."""
        axis = self.single_slice_dim(shape)
        return 0 if axis is None else self.var_offset[axis]


class PartitionedVariable:
    """A variable in parts; as a tensor, all of them one after another."""

    def __init__(self, name, shape, dtype, variable_list, partitions):
        self._name = name
        self._shape = list(shape)
        self._dtype = dtypes.as_dtype(dtype)
        self._variable_list = sorted(
            variable_list, key=lambda v: v._save_slice_info.var_offset
        )
        self._partitions = list(partitions)

    name = read_only("_name")
    dtype = read_only("_dtype")

    @property
    def shape(self):
        return tensor_shape.TensorShape(self._shape)

    def get_shape(self):
        return self.shape

    def __iter__(self):
        return iter(self._variable_list)

    def __len__(self):
        return len(self._variable_list)

    def _get_variable_list(self):
        return self._variable_list

    def _get_partitions(self):
        return self._partitions

    def _axis(self):
        split = [i for i, n in enumerate(self._partitions) if n > 1]
        return split[0] if split else 0

    def as_tensor(self):
        """All the parts together, whatever code around waits for."""
        with execution.control_dependencies(None):
            return self._concat()

    def _concat(self):
        parts = [conversion.convert_to_tensor(v) for v in self._variable_list]
        if len(parts) == 1:
            return array_ops.identity(parts[0])
        return array_ops.concat(parts, self._axis())

    def __tf_tensor__(self, dtype=None, name=None):
        return self.as_tensor()

    def _pieces(self, value):
        """A tensor of the whole's shape, cut like the parts; a list has one for each."""
        if isinstance(value, PartitionedVariable):
            return list(value)
        if isinstance(value, list):
            if len(value) != len(self):
                raise ValueError(
                    f"a list of {len(value)} values for a variable of {len(self)} parts"
                )
            return value
        value = conversion.convert_to_tensor(value, dtype=self._dtype)
        infos = [v._save_slice_info for v in self._variable_list]
        return [array_ops.slice(value, i.var_offset, i.var_shape) for i in infos]

    def _to_all(self, method, value, use_locking, name, read_value):
        done = [
            getattr(part, method)(
                piece, use_locking=use_locking, name=name, read_value=read_value
            )
            for part, piece in zip(self._variable_list, self._pieces(value))
        ]
        return done if read_value else [getattr(x, "op", x) for x in done]

    def assign(self, value, use_locking=False, name=None, read_value=True):
        return self._to_all("assign", value, use_locking, name, read_value)

    def assign_add(self, value, use_locking=False, name=None, read_value=True):
        return self._to_all("assign_add", value, use_locking, name, read_value)

    def assign_sub(self, value, use_locking=False, name=None, read_value=True):
        return self._to_all("assign_sub", value, use_locking, name, read_value)


# --- how many parts ---


def fixed_size_partitioner(num_shards, axis=0):
    """A partitioner for get_variable: `num_shards` parts along `axis`, or as many as there
    are rows."""

    def partitioner(shape, **unused):
        parts = [1] * len(shape)
        parts[axis] = min(num_shards, int(shape[axis]))
        return parts

    return partitioner


def _bytes_of_element(shape, dtype, string_bytes):
    shape = tensor_shape.as_shape(shape)
    if not shape.is_fully_defined():
        raise ValueError(f"shape is not fully defined: {shape}")
    dtype = dtypes.as_dtype(dtype)
    return shape, string_bytes if dtype == dtypes.string else dtype.size


def variable_axis_size_partitioner(
    max_shard_bytes, axis=0, bytes_per_string_element=16, max_shards=None
):
    """A partitioner for get_variable: along `axis` parts of at most so many bytes, and at
    most `max_shards`. ValueError for numbers below 1."""
    if max_shard_bytes < 1 or bytes_per_string_element < 1:
        raise ValueError(
            "Both max_shard_bytes and bytes_per_string_element must be positive. "
            f"Currently, max_shard_bytes is {max_shard_bytes} and"
            f"bytes_per_string_element is {bytes_per_string_element}"
        )
    if max_shards and max_shards < 1:
        raise ValueError("max_shards must be positive.")

    def partitioner(shape, dtype):
        shape, size = _bytes_of_element(shape, dtype, bytes_per_string_element)
        parts = [1] * shape.rank
        slice_bytes = shape.num_elements() // max(1, shape[axis]) * size
        per_shard = max(1, max_shard_bytes // max(1, slice_bytes))
        count = math.ceil(shape[axis] / per_shard)
        parts[axis] = max(1, min(max_shards, count) if max_shards else count)
        return parts

    return partitioner


def min_max_variable_partitioner(
    max_partitions=1, axis=0, min_slice_size=256 << 10, bytes_per_string_element=16
):
    """Parts of at least so many bytes, and not more than a number."""

    def partitioner(shape, dtype):
        shape, size = _bytes_of_element(shape, dtype, bytes_per_string_element)
        if axis >= shape.rank:
            raise ValueError(
                f"Cannot partition variable along axis {axis} when shape is only "
                f"{shape}"
            )
        parts = [1] * shape.rank
        wanted = math.ceil(shape.num_elements() * size / min_slice_size)
        parts[axis] = max(1, min(shape[axis], max_partitions, wanted))
        return parts

    return partitioner


# --- get_variable in parts ---


def _checked(parts, name, shape):
    parts = list(parts)
    if len(parts) != shape.rank:
        raise ValueError(
            f"Partitioner returned a partition list that does not match the "
            f"Variable's rank: {parts} vs. {shape}"
        )
    if any(p < 1 for p in parts):
        raise ValueError(f"Partitioner returned zero partitions for some axes: {parts}")
    if sum(p > 1 for p in parts) > 1:
        raise ValueError(
            "Can only slice a variable along one dimension: "
            f"shape: {shape}, partitioning: {parts}"
        )
    return parts


def _ranges(shape, parts):
    """(offset, shape) of each part; the first ones take what is left over."""
    split = [i for i, n in enumerate(parts) if n > 1]
    axis = split[0] if split else 0
    base, extra = divmod(shape[axis], parts[axis])
    at = 0
    for i in range(parts[axis]):
        offset, sizes = [0] * len(shape), list(shape)
        offset[axis], sizes[axis] = at, base + (i < extra)
        at += sizes[axis]
        yield offset, sizes


def make(name, shape, dtype, initializer, partitioner, make_part):
    """A PartitionedVariable; `make_part` makes a variable of a name and value."""
    value = None
    if not callable(initializer):
        value = conversion.convert_to_tensor(initializer)
        shape, dtype = value.shape, value.dtype
    shape = tensor_shape.as_shape(shape)
    if not shape.is_fully_defined():
        raise ValueError(
            "Shape of a new partitioned variable "
            f"({name}) must be fully defined, but instead was {shape}."
        )
    sizes = shape.as_list()
    parts = _checked(partitioner(shape=shape, dtype=dtype), name, shape)
    made = []
    for i, (offset, part) in enumerate(_ranges(sizes, parts)):
        if value is None:
            first = _calling(initializer, part, dtype, PartitionInfo(sizes, offset))
        else:
            first = array_ops.slice(value, offset, part)
        variable = make_part(f"{name}/part_{i}", first, dtype)
        variable._set_save_slice_info(SaveSliceInfo(name, sizes, offset, part))
        made.append(variable)
    return PartitionedVariable(name, sizes, dtype, made, parts)


def _calling(initializer, shape, dtype, info):
    if isinstance(initializer, type):
        initializer = initializer()
    extra = {"partition_info": info} if _wants_info(initializer) else {}
    return lambda: initializer(shape, dtype=dtype, **extra)


def _wants_info(initializer):
    """Whether it takes a PartitionInfo."""
    try:
        return "partition_info" in inspect.signature(initializer).parameters
    except (TypeError, ValueError):  # builtins that do not say
        return False


def refuse_eager():
    if _headrace.is_eager():
        raise NotImplementedError(
            "Partitioned variables are not supported when eager execution is enabled; "
            "tf.Graph().as_default() makes a graph for them"
        )
