"""Numbers of rows and batch shapes that are parameters: numbers, or tensors of them."""

from headrace._load import _headrace
from headrace.context import stack
from headrace.framework import conversion, dtypes, execution, tensor_shape
from headrace.ops import array_ops, check_ops, math_ops, shape_check_ops
from headrace.ops.linalg.operators import dense_ops


def _after(asserted, make):
    """What `make` gives, in graphs once the assertions hold."""
    asserted = [a for a in asserted if a is not None]
    if not asserted or _headrace.is_eager():
        return make()
    with stack.current().control_dependencies(asserted):
        return make()


class _Sizes:
    """Sizes, `static` where they are known before a graph runs, else None there."""

    def __init__(self, given, name, rank, asserting):
        if isinstance(given, _headrace.VariableBase):
            raise TypeError(
                f"Argument {name} cannot be reference type. Found: {type(given)}."
            )
        found = conversion.convert_to_tensor(given, name=name)
        if not found.dtype.is_integer:
            raise TypeError(f"Argument {name} must be integer type.  Found: {found!s}")
        wanted = f"Argument {name} must be a {rank}-D Tensor."
        not_less = f"Argument {name} must be non-negative."
        known = execution.get_static_value(found)
        if found.shape.rank not in (None, rank):
            raise ValueError(f"{wanted}  Found: {given if known is None else known}")
        if known is not None and (known < 0).any():
            raise ValueError(f"{not_less}  Found:{' ' * (rank == 0)}{known}")
        if known is None and asserting:
            checks = [
                shape_check_ops.assert_rank(found, rank, wanted),
                check_ops.assert_non_negative(found, not_less),
            ]
            found = _after(checks, lambda: array_ops.identity(found))
        self._found = math_ops.cast(found, dtypes.int32)
        self._known = known


class Count(_Sizes):
    """How many rows or columns there are: `static` is an int, or None."""

    def __init__(self, given, name, asserting):
        if type(given) is int and 0 <= given < 2**31:
            self.static = given
            return
        super().__init__(given, name, 0, asserting)
        self.static = None if self._known is None else int(self._known)

    def value(self):
        """The number, or the tensor of it."""
        return self._found if self.static is None else self.static

    given = value  # what the constructor of an operator takes for it


class Batch(_Sizes):
    """A batch shape, none where None is given: `static` is a TensorShape."""

    def __init__(self, given, asserting):
        if given is None or (isinstance(given, (list, tuple)) and not len(given)):
            self.static = tensor_shape.TensorShape(())
            return
        super().__init__(given, "batch_shape", 1, asserting)
        known, size = (
            self._known,
            self._found.shape[0] if self._found.shape.rank else None,
        )
        if known is None:
            known = [None] * size if size is not None else None
        self.static = tensor_shape.TensorShape(known)

    def value(self):
        """The sizes, or the tensor of them."""
        known = self.static.is_fully_defined()
        return self.static.as_list() if known else self._found

    given = value

    def broadcast(self, x):
        """x with a batch shape that this one broadcasts to."""
        if self.static.rank == 0:
            return x
        mine, its = self.static, x.shape[:-2]
        if mine.is_fully_defined() and its.is_fully_defined():
            whole = array_ops.broadcast_static_shape(mine, its)
            if whole == its:
                return x
            return dense_ops.with_batch(x, whole.as_list())
        whole = dense_ops.broadcast(self.value(), dense_ops.batch_of(x, 2))
        return dense_ops.with_batch(x, whole)


def joined(batch, *counts):
    """A batch shape and numbers behind it as one shape: a list, or a tensor."""
    parts = [batch.value(), *(c.value() for c in counts)]
    return dense_ops.joined(parts[0], parts[1:])


def field(operator, name):
    """What an operator's parameter became: values where these are known."""
    value = getattr(operator, "_" + name)
    if isinstance(value, Count):
        return value.value()
    if isinstance(value, Batch):
        known = value.static.is_fully_defined()
        return value.static if known else value.value()
    return value


def checked(operator, x, count):
    """x, asserted to have as many rows if the operator is to assert shapes."""
    if not operator._assert_proper_shapes:
        return x
    same = check_ops.assert_equal(
        dense_ops.sizes(x)[-2],
        count.value(),
        "Dimensions are not compatible.  shape[-2] of argument to be the same as this "
        "operator",
    )
    return _after([same], lambda: array_ops.identity(x))


def nothing_to_assert():
    """What an assertion gives that always holds."""
    return execution.group()
