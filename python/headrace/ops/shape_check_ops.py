"""tf.debugging: assertions about ranks and shapes."""

import numpy as np

from headrace._load import _headrace
from headrace.framework import conversion, dtypes, execution
from headrace.framework.name_scopes import graph_scope
from headrace.framework.sparse_tensor import SparseTensor
from headrace.framework.support import signatures
from headrace.ops import array_ops, check_ops, math_ops, reduction_ops


def _checked_rank(rank):
    """`rank` as a number where it is known, else as a scalar tensor; then also what
    has to run first."""
    tensor = conversion.convert_to_tensor(rank)
    check_ops.assert_type(tensor, dtypes.int32)
    value = execution.get_static_value(tensor)
    if value is not None:
        if np.ndim(value):
            raise ValueError("Rank must be a scalar.")
        return int(value), None
    scalar = assert_rank_with_data(
        tensor, 0, data=["Rank must be a scalar. Received rank: ", tensor]
    )
    return tensor, scalar


def _shape_of(x):
    """Static shape and, as a function, the shape tensor."""
    if isinstance(x, SparseTensor):
        return x.shape, lambda: x.dense_shape
    return x.shape, lambda: array_ops.shape(x)


def _static_rank_of(x):
    if isinstance(x, SparseTensor) and x.shape.rank is None:
        return x.dense_shape.shape[0]
    return x.shape.rank


def _label(x):
    """x in the words about its rank."""
    return f"Tensor {x.name if isinstance(x, _headrace.SymbolicTensor) else ''}"


def _check_rank(x, ranks, wanted, holds, message, name, data, summarize):
    """`holds(rank, ranks)` tells of a rank, an integer or a tensor, whether it is
    right; `wanted` are the words of it."""
    with graph_scope(name, "assert_rank"):
        if not isinstance(x, SparseTensor):
            x = conversion.convert_to_tensor(x, name="x")
        pairs = [_checked_rank(rank) for rank in ranks]
        ranks = [rank for rank, _ in pairs]
        first = [check for _, check in pairs if check is not None]
        known = all(isinstance(rank, int) for rank in ranks)
        rank = _static_rank_of(x)
        if rank is not None and known:
            if not holds(rank, ranks):
                raise ValueError(
                    f"{check_ops._prefix(message)}{_label(x)} must have rank "
                    f"{wanted(ranks)}.  Received rank {rank}, shape {x.shape}"
                )
            return execution.no_op()
        shape = _shape_of(x)[1]()
        if data is None:
            data = [message or "", f"{_label(x)} must have rank {wanted(())}".strip()]
            data += [*ranks, "Received shape: ", shape]
        with execution.control_dependencies(first):
            found = array_ops.size(shape)
            return check_ops.Assert(holds(found, ranks), data, summarize)


def assert_rank_with_data(x, rank, message=None, name=None, data=None, summarize=None):
    """Asserts that x has that rank.

    Args:
      x: a tensor, a SparseTensor or what can become a tensor.
      rank: an int32 scalar, which may be a tensor.

    Returns:
      None eagerly, else an operation that checks what is not known while tracing.

    Raises:
      ValueError: the rank is known and another; `rank` is no scalar.
      InvalidArgumentError: as it runs, where only then the rank is known.
      TypeError: `rank` is not int32.
    """
    return _check_rank(
        x,
        [rank],
        lambda ranks: ranks[0] if ranks else "",
        lambda found, ranks: (
            found == ranks[0]
            if isinstance(found, int) and isinstance(ranks[0], int)
            else math_ops.equal(found, ranks[0])
        ),
        message,
        name or "assert_rank",
        data,
        summarize,
    )


def assert_rank_at_least_with_data(
    x, rank, message=None, name=None, data=None, summarize=None
):
    """Asserts that x has at least that rank; `assert_rank` says the rest."""
    return _check_rank(
        x,
        [rank],
        lambda ranks: f"at least {ranks[0] if ranks else ''}".strip(),
        lambda found, ranks: found >= ranks[0],
        message,
        name or "assert_rank_at_least",
        data,
        summarize,
    )


def assert_rank_in_with_data(
    x, ranks, message=None, name=None, data=None, summarize=None
):
    """Asserts that x has one of the ranks; `assert_rank` says the rest."""

    def holds(found, ranks):
        if isinstance(found, int) and all(isinstance(rank, int) for rank in ranks):
            return found in ranks
        return reduction_ops.reduce_any(
            array_ops.stack([math_ops.equal(found, rank) for rank in ranks])
        )

    return _check_rank(
        x,
        list(ranks),
        lambda ranks: f"in {tuple(ranks) if ranks else ''}".strip(),
        holds,
        message,
        name or "assert_rank_in",
        data,
        summarize,
    )


def assert_shapes(shapes, data=None, summarize=None, message=None, name=None):
    """Asserts sizes, which are numbers or symbols that agree between tensors.

    Args:
      shapes: pairs of a tensor (or SparseTensor) and its shape, or a dictionary of
        them. A shape is an iterable of integers, of symbols (any other object, which
        stands for one size in all shapes), and of None or "." for any size; its first
        entry may be `...` or "*", any number of sizes. None says nothing; an empty
        one says that there is one element, of rank 0 or 1.

    Returns:
      None eagerly, else an operation that checks what is not known while tracing.

    Raises:
      ValueError: a shape is known and does not fit, or is no iterable.
      InvalidArgumentError: as it runs, where only then the shape is known.
    """
    items = list(shapes.items() if isinstance(shapes, dict) else shapes)
    message_prefix = check_ops._prefix(message)
    checks = []
    with graph_scope(name, "assert_shapes"):
        sizes = {}  # of a symbol: the size, an integer or a tensor, and whose it is
        for x, symbols in items:
            x = x if isinstance(x, SparseTensor) else conversion.convert_to_tensor(x)
            if symbols is None:
                continue
            symbols, any_before = _read_symbols(symbols, x)
            rank = len(symbols)
            if rank <= 1 and not any_before:  # a scalar counts as a list of one
                check, rank = assert_rank_in_with_data, (0, 1)
                symbols = symbols or [1]
            elif any_before:
                check = assert_rank_at_least_with_data
            else:
                check = assert_rank_with_data
            checks.append(check(x, rank, message, None, data, summarize))
            for i, symbol in enumerate(symbols):
                if symbol in (None, "."):
                    continue
                place = i - rank if any_before else i
                checks.append(
                    _check_size(
                        x, place, symbol, sizes, message_prefix, data, summarize
                    )
                )
        return execution.group(*[check for check in checks if check is not None])


def _read_symbols(symbols, x):
    """The list of a shape's symbols, and whether other sizes may come before."""
    label = f"Tensor {_described(x)}"
    if not hasattr(symbols, "__iter__") and not hasattr(symbols, "__getitem__"):
        raise ValueError(
            f"{label}.  Specified shape must be an iterable.  An iterable has the "
            "attribute `__iter__` or `__getitem__`.  Received specified shape: "
            f"{symbols}"
        )
    symbols = list(symbols)
    for i, symbol in enumerate(symbols):
        if i and (symbol is Ellipsis or _is_text(symbol, "*")):
            raise ValueError(
                f"{label} specified shape index {i}.  Symbol `...` or `*` for a "
                "variable number of unspecified dimensions is only allowed as the "
                "first entry"
            )
    any_before = bool(symbols) and (symbols[0] is Ellipsis or _is_text(symbols[0], "*"))
    return symbols[any_before:], any_before


def _is_text(symbol, text):
    return isinstance(symbol, str) and symbol == text


def _described(x):
    if isinstance(x, SparseTensor):
        return f"shape={x.shape} dtype={x.dtype.name}"
    return check_ops._describe(x)


def _as_number(symbol):
    """The size that a symbol writes, None where it stands for any."""
    if isinstance(symbol, (int, np.integer)):
        return int(symbol)
    if isinstance(symbol, str) and symbol.isdigit():
        return int(symbol)
    return None


def _check_size(x, place, symbol, sizes, prefix, data, summarize):
    """Checks one size of x, or notes it as the size of its symbol."""
    shape, shape_tensor = _shape_of(x)
    if shape.rank is None or shape.rank and shape[place] is None:
        size = (
            array_ops.concat([shape_tensor(), [1]], 0)[place]
            if place == 0
            else (shape_tensor()[place])
        )
    else:
        size = shape.as_list()[place] if shape.rank else 1
    subject = f"ensor {_described(x)} dimension"
    label = f"{subject} {place}"
    wanted = _as_number(symbol)
    origin = "explicitly"
    if wanted is None:
        if symbol not in sizes:
            sizes[symbol] = (size, label)
            return None
        wanted, source = sizes[symbol]
        origin = f"by t{source}"
    if isinstance(size, int) and isinstance(wanted, int):
        if size != wanted:
            raise ValueError(
                f"{prefix}Specified {origin}.  T{label} must have size {wanted}.  "
                f"Received size {size}, shape {shape}"
            )
        return None
    if data is None:
        data = [
            f"{prefix}Specified {origin}",
            f"T{subject}",
            place,
            "must have size",
            wanted,
            "Received shape: ",
            shape_tensor(),
        ]
    wanted = math_ops.cast(wanted, dtypes.int64)
    same = math_ops.equal(math_ops.cast(size, dtypes.int64), wanted)
    return check_ops.Assert(same, data, summarize)


def _of_version_2(function, text):
    name = function.__name__.removesuffix("_with_data")
    return signatures.twin(function, name, function.__doc__, text)


assert_rank = _of_version_2(assert_rank_with_data, "x, rank, message=None, name=None")
assert_rank_at_least = _of_version_2(
    assert_rank_at_least_with_data, "x, rank, message=None, name=None"
)
assert_rank_in = _of_version_2(
    assert_rank_in_with_data, "x, ranks, message=None, name=None"
)
