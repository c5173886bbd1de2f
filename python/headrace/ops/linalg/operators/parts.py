"""Lists of operators that another one is made of."""

import functools
import operator as python_operator

from headrace.framework import execution, tensor_shape
from headrace.ops import array_ops, check_ops, math_ops
from headrace.ops.linalg.operators import base, dense_ops

EMPTY = "Expected a non-empty list of operators. Found: []"
EMPTY_ARGUMENT = "Argument `operators` must be a list of >=1 operators. Received: []."


def listed(operators, empty=EMPTY):
    """The operators as a list: TypeError for others, ValueError where there is none."""
    check_ops.assert_proper_iterable(operators)
    operators = list(operators)
    if not operators:
        raise ValueError(empty)
    for operator in operators:
        if not isinstance(operator, base.LinearOperator):
            raise TypeError(
                f"Expected LinearOperators in `operators`. Found: {type(operator)}."
            )
    return operators


def listed_rows(rows):
    """Rows of operators as lists; ValueError unless row i has i + 1 of them."""
    check_ops.assert_proper_iterable(rows)
    rows = list(rows)
    if not rows:
        raise ValueError(EMPTY_ARGUMENT)
    made = []
    for i, row in enumerate(rows):
        check_ops.assert_proper_iterable(row)
        row = list(row)
        if len(row) != i + 1:
            raise ValueError(
                f"Argument `operators[{i}]` must contain `{i + 1}` blocks. Received: "
                f"{len(row)} blocks."
            )
        made.append(listed(row))
    return made


def ndims(operator):
    """What slicing has to know of the parameter."""
    return {"operators": [0] * len(operator.operators)}


def common_dtype(operators):
    """The dtype of all of them; TypeError where they have several."""
    dtype = operators[0].dtype
    if any(operator.dtype != dtype for operator in operators):
        found = "   ".join(str((o.name, o.dtype)) for o in operators)
        raise TypeError(
            f"Expected all operators to have the same dtype.  Found {found}"
        )
    return dtype


def static_batch(operators):
    """The batch shape that theirs broadcast to, as far as it is known."""
    if all(operator.shape.rank == 2 for operator in operators):
        return tensor_shape.TensorShape(())
    return joined_static([operator.batch_shape for operator in operators])


def joined_static(shapes):
    """The shape that static shapes broadcast to, as far as they are known."""
    return functools.reduce(array_ops.broadcast_static_shape, shapes)


def batch_sizes(operators):
    """The same: a list where it is known, else a tensor."""
    batches = [operator._sizes()[:-2] for operator in operators]
    return functools.reduce(dense_ops.broadcast, batches)


def static_shape(operators, rows, columns):
    """The shape of a matrix of blocks, of whose sizes lists of Dimensions are given."""
    counts = [sum_of([size.value for size in sizes]) for sizes in (rows, columns)]
    return static_batch(operators).concatenate(counts)


def sum_of(sizes):
    """The sum of sizes, None where one is not known."""
    return None if None in sizes else sum(sizes)


def shape_tensor(operators, rows, columns):
    """The same as a tensor, of lists of tensors."""
    counts = [total(rows), total(columns)]
    return dense_ops.joined(batch_sizes(operators), counts)


def dense_of_rows(rows, columns):
    """The matrix of blocks. A row of blocks is (the place of the first, the blocks);
    elsewhere are zeros. `columns` are the blocks' numbers of columns."""
    counts = [len(blocks) for _, blocks in rows]
    flat = iter(dense_ops.joined_batches(*(b for _, blocks in rows for b in blocks)))
    whole = []
    for (first, _), count in zip(rows, counts):
        blocks = [next(flat) for _ in range(count)]
        before, after = columns[:first], columns[first + count :]
        sizes = dense_ops.sizes(blocks[0])[:-1]
        for place, missing in ((0, before), (len(blocks) + 1, after)):
            if missing:
                zeros = dense_ops.joined(sizes, [total(missing)])
                blocks.insert(place, array_ops.zeros(zeros, blocks[0].dtype))
        whole.append(array_ops.concat(blocks, -1))
    return array_ops.concat(whole, -2)


def all_square(operators):
    """Whether each is square: True, False, or None where it is not known."""
    each = [operator.is_square for operator in operators]
    return False if False in each else True if all(each) else None


def vectors_of(operators, method):
    """The vectors that a method of each gives, behind each other."""
    vectors = [getattr(operator, method)() for operator in operators]
    if all(vector._rank() == 1 for vector in vectors):
        return array_ops.concat(vectors, 0)
    columns = [array_ops.expand_dims(vector, -1) for vector in vectors]
    whole = array_ops.concat(dense_ops.joined_batches(*columns), -2)
    return array_ops.squeeze(whole, [-1])


def log_abs_determinant(operators, dtype):
    """The logarithm of the determinant of a product of operators."""
    logs = [operator.log_abs_determinant() for operator in operators]
    return total(x if x.dtype is dtype else math_ops.cast(x, dtype) for x in logs)


def product(values):
    """The product of numbers or tensors."""
    return functools.reduce(python_operator.mul, values)


def total(values):
    """Their sum."""
    return functools.reduce(python_operator.add, values)


def asserted(operators, method):
    """An assertion of each, as one."""
    made = [getattr(operator, method)() for operator in operators]
    return execution.group(*[m for m in made if m is not None])
