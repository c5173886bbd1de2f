"""tf.lookup: tables from keys to values."""

import weakref

from headrace._load import _headrace, raw
from headrace.context import stack
from headrace.context.properties import read_only
from headrace.framework import conversion, dtypes
from headrace.framework.asset import Asset
from headrace.framework.sparse_tensor import SparseTensor
from headrace.framework.support import signatures
from headrace.framework.trackable import TrackableResource

_unique = [0]


def _raw(op, **arguments):
    """What the op gives; the operation itself where that is nothing, in a graph."""
    result = _headrace.raw_op(op)(**arguments)
    if result is None and (graph := stack.plain_graph()) is not None:
        return graph._last_operation()
    return result


class TextFileIndex:
    """Columns of text files that are not fields."""

    WHOLE_LINE = -2
    LINE_NUMBER = -1


class TableInitializerBase:
    """Gives a table its contents; knows its types."""

    def __init__(self, key_dtype, value_dtype):
        self._key_dtype = dtypes.as_dtype(key_dtype)
        self._value_dtype = dtypes.as_dtype(value_dtype)

    key_dtype = read_only("_key_dtype", "The dtype of the keys.")
    value_dtype = read_only("_value_dtype", "The dtype of the values.")

    def initialize(self, table):
        """Fills the table; returns the operation in a graph. Subclasses define it."""
        raise NotImplementedError

    def files(self):
        """{name: tf.saved_model.Asset} of what saved models have to take along."""
        return {}


class KeyValueTensorInitializer(TableInitializerBase):
    """Contents from two tensors."""

    def __init__(self, keys, values, key_dtype=None, value_dtype=None, name=None):
        self._keys = conversion.convert_to_tensor(keys, key_dtype)
        self._values = conversion.convert_to_tensor(values, value_dtype)
        super().__init__(self._keys.dtype, self._values.dtype)

    def initialize(self, table):
        """Puts the keys and values into the table; TypeError where its dtypes are
        others.
        """
        _check_types(table, self._keys.dtype, self._values.dtype)
        return _raw(
            "LookupTableImportV2",
            table_handle=table.resource_handle,
            keys=self._keys,
            values=self._values,
        )


def _check_column(name, index, dtype):
    """ValueError where a column, or what stands for a line, cannot be of that dtype."""
    if index < -2:
        raise ValueError(f"`{name}_index` should be >= -2, received: {index}.")
    dtype = dtypes.as_dtype(dtype)
    if index == TextFileIndex.LINE_NUMBER and dtype != dtypes.int64:
        joint = "if" if name == "key" else "for"
        of = " is" if name == "key" else ""
        raise ValueError(
            f"`{name}_dtype` must be int64 {joint} `{name}_index`{of} {index}, "
            f"received: {dtype}"
        )
    is_text = dtype.is_integer or dtype == dtypes.string
    if index == TextFileIndex.WHOLE_LINE and not is_text:
        raise ValueError(
            f"`{name}_dtype` should be either integer or string for `{name}_index` "
            f"{index}, received: {dtype}"
        )


class TextFileInitializer(TableInitializerBase):
    """Contents from the lines of a file."""

    def __init__(
        self,
        filename,
        key_dtype,
        key_index,
        value_dtype,
        value_index,
        vocab_size=None,
        delimiter="\t",
        name=None,
        value_index_offset=0,
    ):
        super().__init__(key_dtype, value_dtype)
        if not isinstance(filename, _headrace.Tensor) and not filename:
            raise ValueError(
                "`filename` argument required for tf.lookup.TextFileInitializer"
            )
        _check_column("key", key_index, key_dtype)
        _check_column("value", value_index, value_dtype)
        if vocab_size is not None and vocab_size <= 0:
            raise ValueError(f"`vocab_size` should be > 0, received: {vocab_size}")
        if isinstance(filename, str) and _headrace.is_eager():
            filename = Asset(filename)
        self._filename = filename
        self._attrs = {
            "key_index": key_index,
            "value_index": value_index,
            "vocab_size": -1 if vocab_size is None else vocab_size,
            "delimiter": delimiter,
            "offset": value_index_offset,
        }

    def files(self):
        """The file, where its name is known."""
        return (
            {"_filename": self._filename} if isinstance(self._filename, Asset) else {}
        )

    def initialize(self, table):
        """Reads the file into the table; TypeError where the table has other dtypes.

        A file that is not there, or a line that does not parse, fails as the operation
        does.
        """
        _check_types(table, self._key_dtype, self._value_dtype)
        filename = conversion.convert_to_tensor(self._filename, dtypes.string)
        graph = stack.plain_graph()
        if graph is not None:  # what exports it takes the file along
            graph.add_to_collection("asset_filepaths", filename)
        return _raw(
            "InitializeTableFromTextFileV2",
            table_handle=table.resource_handle,
            filename=filename,
            **self._attrs,
        )


def _check_types(table, key, value):
    if table.key_dtype != key or table.value_dtype != value:
        raise TypeError(
            f"Invalid table types: {table.key_dtype!r} -> {table.value_dtype!r}, got "
            f"{key!r} -> {value!r}"
        )


def looked_up(dtype, keys, find):
    """find(tensor) of keys, which have to be of the dtype; of sparse and ragged ones
    that of their values."""
    if isinstance(keys, SparseTensor):
        return keys.with_values(looked_up(dtype, keys.values, find))
    if getattr(keys, "_is_ragged", False):
        return keys.with_flat_values(looked_up(dtype, keys.flat_values, find))
    if not isinstance(keys, _headrace.Tensor):
        keys = conversion.convert_to_tensor(keys, dtype_hint=dtype)
    if keys.dtype != dtype:
        raise TypeError(
            f"Dtype of argument `keys` must be {dtype}, received: {keys.dtype}"
        )
    return find(keys)


class _Table(TrackableResource):
    """What all tables have: a handle, types, a default."""

    def __init__(self, key_dtype, value_dtype, name):
        self._key_dtype = dtypes.as_dtype(key_dtype)
        self._value_dtype = dtypes.as_dtype(value_dtype)
        _unique[0] += 1
        self._number = _unique[0]
        self._name = name

    key_dtype = read_only("_key_dtype", "The dtype of the keys.")
    value_dtype = read_only("_value_dtype", "The dtype of the values.")
    name = read_only("_name", "The name given to the constructor, or None.")
    default_value = read_only(
        "_default_value", "The value of keys that are absent: a tensor."
    )

    _default_name = None  # of the node, where a graph has one

    def _make(self, op, named, **attrs):
        """The handle: in a graph by name, so that every run finds the same table."""
        attrs["value_dtype"] = self._value_dtype
        if "empty_key" not in attrs:  # which tells the dtype
            attrs["key_dtype"] = self._key_dtype
        self._made_as = named, attrs
        if _headrace.is_eager():
            return _raw(op, **attrs)
        shared = f"table_{self._number}_{id(self)}"
        attrs["name"] = self._name or self._default_name
        return _raw(named, shared_name=shared, use_node_name_sharing=False, **attrs)

    def _create_resource(self):
        """A handle of a table like this one, made where a saved model is loaded."""
        named, attrs = self._made_as
        return _raw(named, shared_name=f"table_{self._number}", **attrs)

    def _ask(self, op, **arguments):
        return _raw(op, table_handle=self.resource_handle, **arguments)

    def size(self, name=None):
        """The number of keys."""
        return raw.LookupTableSizeV2(self.resource_handle, name=name)

    def lookup(self, keys, name=None):
        """The values of keys, the default where a key is absent."""
        return looked_up(self._key_dtype, keys, lambda keys: self._find(keys, name))

    def _find(self, keys, name):
        default = self._default_value
        return raw.LookupTableFindV2(self.resource_handle, keys, default, name=name)

    __getitem__ = lookup

    def export(self, name=None):
        """(keys, values): two tensors, in an order that is the table's own."""
        types = {"Tkeys": self._key_dtype, "Tvalues": self._value_dtype}
        return tuple(raw.LookupTableExportV2(self.resource_handle, name=name, **types))


class StaticHashTable(_Table):
    """A table that an initializer fills once."""

    _default_name = "hash_table"

    def __init__(self, initializer, default_value, name=None):
        super().__init__(initializer.key_dtype, initializer.value_dtype, name)
        self._initializer = initializer
        self._default_value = conversion.convert_to_tensor(
            default_value, self._value_dtype
        )
        self._made_handle = self._make("AnonymousHashTable", "HashTableV2")
        self._init_op = self._initializer.initialize(self)
        self._collect()
        self._hold(self._made_handle)

    _task_key = property(lambda self: f"table_{self._number}_{id(self)}")

    def _on_task(self, task):
        """The handle of a copy on a task of a cluster, which is made and filled when a
        function first uses it there."""
        key = self._task_key
        handle, fill = task.resource(key, lambda: self._copy(task, key))
        if task.users.get(key) is None:
            task.run([], [fill])
            task.users[key] = self._number
            weakref.finalize(self, task.leave, key).atexit = False
        return handle

    def _copy(self, task, key):
        with stack.entering(None):
            keys, values = self.export()
            contents = [(x.numpy(), x.dtype) for x in (keys, values)]
        named, attrs = self._made_as
        handle = _raw(named, shared_name=key, container=task.container, **attrs)
        keys, values = (conversion.convert_to_tensor(*x) for x in contents)
        return handle, raw.LookupTableImportV2(handle, keys, values)._node

    def _initialize(self):
        """Fills the table, where a saved model is loaded."""
        self._initializer.initialize(self)

    def _model_children(self):
        return self._initializer.files()

    def _collect(self):
        """In a plain graph tables_initializer() runs what fills the table."""
        graph = stack.plain_graph()
        if graph is not None:
            graph.add_to_collection("table_initializer", self._init_op)

    initializer = read_only(
        "_init_op",
        "The operation that fills the table: to run in a graph; eagerly it has been "
        "run.",
    )


class MutableHashTable(_Table):
    """A table to add to and remove from."""

    def __init__(
        self,
        key_dtype,
        value_dtype,
        default_value,
        name="MutableHashTable",
        checkpoint=True,
        experimental_is_anonymous=False,
    ):
        super().__init__(key_dtype, value_dtype, name)
        self._checkpointed = checkpoint
        self._default_value = conversion.convert_to_tensor(
            default_value, self._value_dtype
        )
        kind, more = self._kind(self._default_value.shape)
        self._made_handle = self._make(f"Anonymous{kind}", f"{kind}V2", **more)

    def _kind(self, shape):
        """The op that makes a table of values of `shape`, and its arguments."""
        if shape.rank:
            return "MutableHashTableOfTensors", {"value_shape": shape}
        return "MutableHashTable", {}

    def _keys(self, keys):
        keys = conversion.convert_to_tensor(keys, dtype_hint=self._key_dtype)
        if keys.dtype != self._key_dtype:
            raise TypeError(
                f"Signature mismatch. Keys must be dtype {self._key_dtype}, got "
                f"{keys.dtype}."
            )
        return keys

    def insert_or_assign(self, keys, values, name=None):
        """The same as insert()."""
        return self.insert(keys, values, name)

    def insert(self, keys, values, name=None):
        """Adds or replaces keys."""
        return self._ask(
            "LookupTableInsertV2",
            keys=self._keys(keys),
            values=conversion.convert_to_tensor(values, self._value_dtype),
            name=name,
        )

    def remove(self, keys, name=None):
        """Removes keys; absent ones are no error."""
        return self._ask("LookupTableRemoveV2", keys=self._keys(keys), name=name)

    erase = remove

    def lookup(self, keys, dynamic_default_values=None, name=None):
        """The values of keys, the default where a key is absent.

        `dynamic_default_values` has the default of each key in the place of the
        table's.
        """
        if dynamic_default_values is None:
            return super().lookup(keys, name)
        keys = self._keys(keys)
        defaults = conversion.convert_to_tensor(
            dynamic_default_values, self._value_dtype
        )
        return raw.LookupTableFindV2(self.resource_handle, keys, defaults, name=name)

    def __getitem__(self, keys):
        return self.lookup(keys)

    _checkpoint_attribute = "table"

    def _serialize_to_tensors(self):
        if not self._checkpointed:
            return {}
        keys, values = self.export()
        return {"table-keys": keys, "table-values": values}

    def _restore_from_tensors(self, restored_tensors):
        if not self._checkpointed:
            return None
        return self._import(
            restored_tensors["table-keys"], restored_tensors["table-values"]
        )

    def _import(self, keys, values):
        return self._ask("LookupTableImportV2", keys=keys, values=values)


class DenseHashTable(MutableHashTable):
    """A mutable table that is told a key that is empty and one that is deleted."""

    @signatures.having(
        "self, key_dtype, value_dtype, default_value, empty_key, deleted_key, "
        "initial_num_buckets=None, name='MutableDenseHashTable', checkpoint=True, "
        "experimental_is_anonymous=False"
    )
    def __init__(self, empty_key, deleted_key, initial_num_buckets, **given):
        count = 1 << 17 if initial_num_buckets is None else int(initial_num_buckets)
        self._bucket_arguments = {
            "empty_key": empty_key,
            "deleted_key": deleted_key,
            "initial_num_buckets": count,
        }
        super().__init__(**given)

    def _kind(self, shape):
        arguments = dict(self._bucket_arguments, value_shape=shape)
        for name in ("empty_key", "deleted_key"):
            key = conversion.convert_to_tensor(arguments[name], self._key_dtype)
            # A constant in each graph that makes the table.
            arguments[name] = key.numpy() if _headrace.is_eager() else key
        return "MutableDenseHashTable", arguments
