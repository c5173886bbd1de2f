"""The TensorArray of eager code: a Python list of tensors."""

from headrace.context import errors
from headrace.context.properties import read_only
from headrace.control_flow import list_array
from headrace.elements import structure
from headrace.framework import conversion, tensor_shape
from headrace.ops import array_ops


def _out_of_range(text):
    return errors.OutOfRangeError._of(text)


_MOST = 1 << 28  # elements: 2 GiB of places


def _places(size):
    try:
        if size <= _MOST:
            return [None] * size
    except MemoryError:
        pass
    text = f"there is no room for a TensorArray of {size} elements"
    raise errors.ResourceExhaustedError._of(text)


class EagerArray(list_array.Array):
    """Holds the tensors themselves, so that tapes see what goes through."""

    def __init__(self, dtype, size, element_shape, dynamic, infer_shape, clear):
        self._dtype = dtype
        self._items = _places(size)
        self._element_shape = element_shape
        self._dynamic = dynamic
        self._infer_shape = infer_shape
        self._clear = clear
        self._cleared = set()

    element_shape = read_only("_element_shape")

    @property
    def flow(self):
        return conversion.convert_to_tensor(0.0)

    def _components(self):
        return [list_array.list_of(self._dtype, self._element_shape, self._items)]

    def identity(self):
        return self

    def grad(self, source, flow=None, name=None):
        raise NotImplementedError(
            "TensorArray.grad is not supported when executing eagerly; eager's gradient "
            "implementation does not use/need this function to compute gradients of "
            "operations that use TensorArrays."
        )

    def size(self, name=None):
        """The number of elements."""
        return conversion.convert_to_tensor(len(self._items))

    def read(self, index, name=None):
        """The element at `index`; cleared then, unless told otherwise."""
        index = int(index)
        if index < 0:
            raise _out_of_range(
                f"Reading from negative indices (index {index}) is not allowed."
            )
        if index >= len(self._items):
            raise _out_of_range(
                f"Tried to read from index {index} but array size is: "
                f"{len(self._items)} "
            )
        tensor = self._items[index]
        if tensor is None:
            if index in self._cleared:
                raise errors.InvalidArgumentError._of(
                    f"Could not read index {index} twice because it was cleared after a "
                    "previous read (perhaps try setting clear_after_read = false?)"
                )
            tensor = self._items[index] = self._zero()
        if self._clear:
            self._items[index] = None
            self._cleared.add(index)
        return tensor

    def _zero(self):
        return array_ops.zeros(self._element_shape, self._dtype)

    def write(self, index, value, name=None):
        """The array with `value` at `index`."""
        index = int(index)
        if index < 0:
            raise _out_of_range(
                f"Writing to negative indices (index {index}) is not allowed."
            )
        if index >= len(self._items):
            if not self._dynamic:
                raise _out_of_range(
                    f"Tried to write to index {index} but array is not resizeable and "
                    f"size is: {len(self._items)} "
                )
            self._items += _places(index + 1 - len(self._items))
        value = self._value(value, " ")
        self._check_shape(value.shape)
        self._items[index] = value
        return self

    def _check_shape(self, shape):
        if not self._element_shape.is_compatible_with(shape):
            raise ValueError(
                f"Incompatible shape for value ({shape}), expected "
                f"({self._element_shape})"
            )
        if self._infer_shape:
            self._element_shape = self._element_shape.merge_with(shape)

    def _all(self):
        for i, item in enumerate(self._items):
            if item is None:
                self._items[i] = self._zero()
        return self._items

    def stack(self, name=None):
        """All elements along a new first dimension."""
        items = self._all()
        if not items:
            shape = [0]
            if self._element_shape.rank is not None:
                shape += self._element_shape.as_list()
            result = array_ops.zeros(shape, self._dtype)
        else:
            result = array_ops.stack(list(items))
        return result

    def gather(self, indices, name=None):
        """The elements at `indices`, stacked."""
        indices = conversion.convert_to_tensor(indices).numpy().tolist()
        items = self._all()
        return array_ops.stack([items[i] for i in indices])

    def concat(self, name=None):
        """All elements one after the other along their first dimension."""
        items = list(self._all())
        return array_ops.concat(items, 0)

    def unstack(self, value, name=None):
        """The array whose elements are the rows of `value`."""
        value = conversion.convert_to_tensor(value, dtype_hint=self._dtype)
        rows = array_ops.unstack(value)
        if len(rows) > len(self._items) and not self._dynamic:
            raise ValueError(
                "Cannot unstack {} tensors into a TensorArray of static size {} ".format(
                    len(rows), len(self._items)
                )
            )
        if len(rows) < len(self._items):
            rows += [None] * (len(self._items) - len(rows))
        for row in rows[:1]:
            self._check_shape(row.shape)
        self._items = rows
        self._cleared.clear()
        return self

    def scatter(self, indices, value, name=None):
        """The array with the rows of `value` at `indices`."""
        indices = conversion.convert_to_tensor(indices).numpy().tolist()
        value = conversion.convert_to_tensor(value, dtype_hint=self._dtype)
        for i, row in zip(indices, array_ops.unstack(value)):
            self.write(i, row)
        return self

    def split(self, value, lengths, name=None):
        """The array whose elements are stretches of `value` of these lengths."""
        value = conversion.convert_to_tensor(value, dtype_hint=self._dtype)
        lengths = conversion.convert_to_tensor(lengths).numpy().tolist()
        total = value.shape.as_list()[0]
        if sum(lengths) != total:
            raise errors.InvalidArgumentError._of(
                "Expected sum of lengths to be equal to values.shape[0], but sum of "
                f"lengths is {sum(lengths)} and value's shape is: {value.shape}"
            )
        if not self._dynamic and len(lengths) != len(self._items):
            raise errors.InvalidArgumentError._of(
                "TensorArray's size is not equal to the size of lengths "
                f"({len(self._items)} vs. {len(lengths)}), and the TensorArray is not "
                "marked as dynamically resizeable"
            )
        at, self._items = 0, [None] * len(lengths)
        inner = tensor_shape.as_shape([None]).concatenate(value.shape[1:])
        if self._infer_shape:
            self._element_shape = self._element_shape.merge_with(inner)
        for i, n in enumerate(lengths):
            self._items[i] = value[at : at + n]
            at += n
        return self

    def close(self, name=None):
        self._items.clear()


structure.register_element(EagerArray)
