"""tf.linalg.LinearOperator: a matrix, or a batch of them, that is known by what it does."""

import abc

import numpy as np

from headrace._load import _headrace
from headrace.context.properties import read_only
from headrace.framework import conversion, dtypes, name_scopes, tensor_shape
from headrace.framework.dimension import Dimension
from headrace.framework.module import Module
from headrace.framework.settings import logging
from headrace.framework.support import signatures
from headrace.ops import array_ops, check_ops, elementwise_ops, reduction_ops
from headrace.ops.linalg import linalg_ops
from headrace.ops.linalg.operators import dense_ops, hints
from headrace.ops.linalg.operators.dense_ops import adjoint_if
from headrace.ops.linalg.operators.spec import CompositeOperator, LinearOperatorSpec

_is_eager, _fits = _headrace.is_eager, _headrace.fits


def takes(text, ndims=None, static=()):
    """Decorates a class: gives it a constructor, and a spec to know its operators by.

    The constructor has the parameters in a text, where HINTS stands for those of hints.
    The class's `_begin(self, known, **given)` keeps them, checks the hints in the dict
    `known`, which it may change, and gives the operator's dtype. `ndims` says how many
    sizes of a parameter belong to the matrix, or is a function of an operator; `static` are parameters that the spec has
    as values where these are known.
    """
    text = text.replace("HINTS", ", ".join(f"{name}=None" for name in hints.NAMES))
    parameters = signatures.from_text(f"self, {text}", dtypes=dtypes)
    names = [p.name for p in parameters[1:]]
    fields = tuple(n for n in names if n not in (*hints.NAMES, "name"))

    def decorate(cls):
        def begin(self, **own):
            name = own["name"]
            known = hints.in_dict(own)
            given = {n: own[n] for n in fields}
            with name_scopes.graph_scope(name, cls.__name__):
                dtype = cls._begin(self, known, **given)
                name = name or cls._default_name(self)
                LinearOperator.__init__(self, dtype, **known, name=name, parameters=own)

        like = signatures.named("__init__", module=cls.__module__)
        like.__qualname__ = f"{cls.__qualname__}.__init__"
        cls.__init__ = signatures.function_of(like, parameters, begin)
        cls._composite_tensor_fields = fields
        cls._composite_tensor_prefer_static_fields = tuple(static)
        cls._is_composite_tensor = True
        cls._has_one_shape = True
        cls._ndims = staticmethod(ndims) if callable(ndims) else ndims or {}
        members = {"value_type": cls, "saved_as": f"tf.linalg.{cls.__name__}Spec"}
        cls._spec_class = type(f"{cls.__name__}Spec", (LinearOperatorSpec,), members)
        return cls

    return decorate


class LinearOperator(CompositeOperator, Module, metaclass=abc.ABCMeta):
    """A matrix [..., M, N], or a batch of them, that is used without being built.

    Subclasses say what the matrix is. A class of one's own has `_shape()`, a TensorShape,
    and `_matmul(x, adjoint=False, adjoint_arg=False)`; by these the other methods work
    already, through a dense matrix. It may have better ways for what it can do itself:
    `_shape_tensor`, `_solve`, `_to_dense`, `_diag_part`, `_trace`, `_determinant`,
    `_log_abs_determinant`, `_eigvals`, `_cond`, `_add_to_tensor`, `_linop_adjoint`,
    `_linop_inverse`, `_linop_cholesky`, and `_assert_non_singular` with its like.

    Hints (`is_non_singular` and the other three) are promises about the matrix: True,
    False, or None where nothing is known. Nobody checks them at once; the `assert_`
    methods do. What operators are made of each other pass on is derived from them.

    Operators hold variables as they are and read them when they are used, so gradients
    go to these, and are modules, which find them. They are arguments and results of
    tf.function, tf.cond and tf.while_loop, and parts of the elements of datasets.
    """

    _node_comes_late = True
    _TF_MODULE_IGNORED_PROPERTIES = Module._TF_MODULE_IGNORED_PROPERTIES | {
        "_parameters"
    }

    def __init__(
        self,
        dtype,
        graph_parents=None,
        is_non_singular=None,
        is_self_adjoint=None,
        is_positive_definite=None,
        is_square=None,
        name=None,
        parameters=None,
    ):
        """For subclasses; ValueError where hints contradict each other."""
        for i, parent in enumerate(graph_parents or ()):
            if not isinstance(parent, _headrace.Tensor):
                raise ValueError(  # noqa: TRY004
                    f"Graph parent item {i} is not a Tensor; {parent}."
                )
        square = _implied_square(
            is_non_singular, is_self_adjoint, is_positive_definite, is_square
        )
        self._begin_with(_graph_parents=list(graph_parents or ()))
        # Plain values, and parameters that are no dependencies: nothing to be tracked.
        self.__dict__.update(
            _is_square_set_or_implied_by_hints=square,
            _is_non_singular=True if is_positive_definite else is_non_singular,
            _is_self_adjoint=is_self_adjoint,
            _is_positive_definite=is_positive_definite,
            _dtype=dtypes.as_dtype(dtype) if dtype else dtype,
            _parameters=parameters,
            _name=name or type(self).__name__,
        )

    # --- What it is.

    dtype = read_only("_dtype", "The dtype of the matrix.")
    name = read_only("_name", "The name that it was given, or that of its class.")
    graph_parents = read_only("_graph_parents", "The tensors it was said to depend on.")
    is_non_singular = read_only("_is_non_singular", "Hint: has it an inverse?")
    is_self_adjoint = read_only("_is_self_adjoint", "Hint: is it its own adjoint?")
    is_positive_definite = read_only(
        "_is_positive_definite",
        "Hint: has x^H A x a positive real part for all x but zero?",
    )

    @property
    def is_square(self):
        """Whether it is square: what the hint says, else the shape; None: not known."""
        said, rows = self._is_square_set_or_implied_by_hints, self._known_rows
        if rows is not None:
            return rows == self._known_columns if said is None else said
        shape = self.shape
        rows, columns = size(shape, -2), size(shape, -1)
        seen = None if None in (rows, columns) else rows == columns
        if seen and said is False:
            raise ValueError(
                "User set is_square hint to False, but the operator was square."
            )
        return seen if said is None else said

    @property
    def parameters(self):
        """What the constructor was given, by name: a dict."""
        return dict(self._parameters)

    def _default_name(self):
        return type(self).__name__

    def _name_scope(self, name=None):
        full = f"{self._name}/{name}" if name else self._name
        return name_scopes.graph_scope(full, None)

    # --- Shapes.

    @abc.abstractmethod
    def _shape(self):
        raise NotImplementedError("_shape is not implemented.")

    def _shape_tensor(self):
        raise NotImplementedError("_shape_tensor is not implemented.")

    # Of a class whose constructor takes() made, a shape that is known at all stays what
    # it is: it is found once, with the numbers of rows and columns, unless a hint says
    # something else, which `is_square` tells.
    _has_one_shape = False
    _known_shape = _known_rows = _known_columns = None

    @property
    def shape(self):
        """The shape of the matrices, a TensorShape: batch, rows, columns."""
        found = self._known_shape
        if found is not None:
            return found
        found = self._shape()
        if self._has_one_shape and found.is_fully_defined() and found.rank > 1:
            rows, columns = found[-2:]
            self.__dict__["_known_shape"] = found
            if rows != columns or self._is_square_set_or_implied_by_hints is not False:
                self.__dict__.update(_known_rows=rows, _known_columns=columns)
        return found

    @property
    def batch_shape(self):
        """The shape without rows and columns: a TensorShape."""
        return self.shape[:-2]

    @property
    def tensor_rank(self):
        """How many sizes `shape` has: an int, or None."""
        return self.shape.rank

    @property
    def domain_dimension(self):
        """The number of columns: a Dimension."""
        return dimension(self.shape, -1)

    @property
    def range_dimension(self):
        """The number of rows: a Dimension."""
        return dimension(self.shape, -2)

    def shape_tensor(self, name="shape_tensor"):
        """`shape` as an int32 tensor, known when the operator is used."""
        with self._name_scope(name):
            shape = self.shape
            if shape.is_fully_defined():
                return conversion.constant(shape.as_list(), dtypes.int32)
            sizes = self._shape_tensor()
            return conversion.convert_to_tensor(sizes, dtype_hint=dtypes.int32)

    def _sizes(self):
        """`shape`: a list where it is known before the operator is used, else a tensor."""
        shape = self.shape
        return shape.as_list() if shape.is_fully_defined() else self.shape_tensor()

    def _known_or(self, sizes, cut):
        """A part of the shape as a tensor, from the TensorShape where that has it."""
        known = sizes if isinstance(sizes, int) else None
        if isinstance(sizes, tensor_shape.TensorShape) and sizes.is_fully_defined():
            known = sizes.as_list()
        if known is None:
            return cut(self.shape_tensor())
        return conversion.constant(known, dtypes.int32)

    def batch_shape_tensor(self, name="batch_shape_tensor"):
        """`batch_shape` as an int32 tensor."""
        with self._name_scope(name):
            return self._known_or(self.batch_shape, lambda shape: shape[:-2])

    def tensor_rank_tensor(self, name="tensor_rank_tensor"):
        """`tensor_rank` as an int32 tensor."""
        with self._name_scope(name):
            return self._known_or(self.tensor_rank, array_ops.size)

    def domain_dimension_tensor(self, name="domain_dimension_tensor"):
        """`domain_dimension` as an int32 tensor."""
        with self._name_scope(name):
            return self._known_or(self.domain_dimension.value, lambda s: s[-1])

    def range_dimension_tensor(self, name="range_dimension_tensor"):
        """`range_dimension` as an int32 tensor."""
        with self._name_scope(name):
            return self._known_or(self.range_dimension.value, lambda s: s[-2])

    # --- Products.

    def _argument(self, x, name="x"):
        """An argument as a tensor; TypeError where it is of another dtype."""
        x = conversion.convert_to_tensor(x, name=name)
        self._check_input_dtype(x)
        return x

    def _check_input_dtype(self, arg):
        if self.dtype is not None and arg.dtype != self.dtype:
            raise TypeError(
                f"Expected argument to have dtype {self.dtype}.  Found: {arg.dtype} in "
                f"tensor {arg!s}"
            )

    def _check_sizes(self, x, mine, its):
        """ValueError where two sizes differ, of this and of an argument."""
        mine, its = size(self.shape, mine), size(x.shape, its)
        if mine != its and None not in (mine, its):
            raise ValueError(f"Dimensions {mine} and {its} are not compatible")

    @abc.abstractmethod
    def _matmul(self, x, adjoint=False, adjoint_arg=False):
        raise NotImplementedError("_matmul is not implemented.")

    def _matvec(self, x, adjoint=False):
        return _of_column(lambda column: self._matmul(column, adjoint=adjoint), x)

    def matmul(self, x, adjoint=False, adjoint_arg=False, name="matmul"):
        """The product A x, or that of adjoints, which `adjoint` and `adjoint_arg` ask for.

        `x` is [..., N, R] of the operator's dtype (TypeError for another one, ValueError
        for other sizes), batches broadcast; or an operator, then so is the result.
        """
        size = self._known_rows if adjoint else self._known_columns
        if _is_eager() and _fits(x, self._dtype, -1 if adjoint_arg else -2, size):
            return self._matmul(x, adjoint=adjoint, adjoint_arg=adjoint_arg)
        if isinstance(x, LinearOperator):
            left, right = _pair(self, x, adjoint, adjoint_arg, "x")
            with self._name_scope(name):
                return self._linop_matmul(left, right)
        with self._name_scope(name):
            x = self._argument(x)
            self._check_sizes(x, *matched(adjoint, adjoint_arg))
            return self._matmul(x, adjoint=adjoint, adjoint_arg=adjoint_arg)

    def __matmul__(self, other):
        return self.matmul(other)

    def matvec(self, x, adjoint=False, name="matvec"):
        """The product A x, or A^H x, with vectors [..., N]."""
        size = self._known_rows if adjoint else self._known_columns
        if _is_eager() and _fits(x, self._dtype, -1, size):
            return self._matvec(x, adjoint=adjoint)
        with self._name_scope(name):
            x = self._argument(x)
            self._check_sizes(x, -2 if adjoint else -1, -1)
            return self._matvec(x, adjoint=adjoint)

    def _linop_matmul(self, left_operator, right_operator):
        return algebra.product(left_operator, right_operator)

    # --- Solutions.

    def _can_use_cholesky(self):
        return self.is_self_adjoint and self.is_positive_definite

    def _check_solvable(self):
        for wrong, what in (
            (self.is_non_singular is False, "be singular"),
            (self.is_square is False, "not be square"),
        ):
            if wrong:
                raise NotImplementedError(
                    "Exact solve not implemented for an operator that is expected to "
                    f"{what}."
                )

    def _solve(self, rhs, adjoint=False, adjoint_arg=False):
        return self._dense_solve(rhs, adjoint, adjoint_arg)

    def _dense_solve(self, rhs, adjoint=False, adjoint_arg=False):
        rhs = adjoint_if(rhs, adjoint_arg)
        if self._can_use_cholesky():
            factor = linalg_ops.cholesky(self._to_dense())
            return dense_ops.cholesky_solve(factor, rhs)
        return dense_ops.solve(self._to_dense(), rhs, adjoint)

    def _solvevec(self, rhs, adjoint=False):
        return _of_column(lambda column: self._solve(column, adjoint=adjoint), rhs)

    def solve(self, rhs, adjoint=False, adjoint_arg=False, name="solve"):
        """The X of A X = rhs, exactly; `adjoint` and `adjoint_arg` as for matmul().

        `rhs` is [..., N, R], or an operator, then so is the result. NotImplementedError
        where hints say that A is singular, or is not square.
        """
        rows = self._known_rows
        if (
            rows is None
            or rows != self._known_columns
            or self._is_non_singular is False
        ):
            self._check_solvable()
        size = self._known_columns if adjoint else self._known_rows
        if _is_eager() and _fits(rhs, self._dtype, -1 if adjoint_arg else -2, size):
            return self._solve(rhs, adjoint=adjoint, adjoint_arg=adjoint_arg)
        if isinstance(rhs, LinearOperator):
            left, right = _pair(self, rhs, adjoint, adjoint_arg, "rhs")
            with self._name_scope(name):
                return self._linop_solve(left, right)
        with self._name_scope(name):
            rhs = self._argument(rhs, "rhs")
            self._check_sizes(rhs, *matched(not adjoint, adjoint_arg))
            return self._solve(rhs, adjoint=adjoint, adjoint_arg=adjoint_arg)

    def solvevec(self, rhs, adjoint=False, name="solve"):
        """The x of A x = rhs, or of A^H x = rhs, for vectors [..., N]."""
        size = self._known_columns if adjoint else self._known_rows
        if _is_eager() and _fits(rhs, self._dtype, -1, size):
            self._check_solvable()
            return self._solvevec(rhs, adjoint=adjoint)
        with self._name_scope(name):
            rhs = self._argument(rhs, "rhs")
            self._check_sizes(rhs, -1 if adjoint else -2, -1)
            self._check_solvable()
            return self._solvevec(rhs, adjoint=adjoint)

    def _linop_solve(self, left_operator, right_operator):
        return algebra.quotient(left_operator, right_operator)

    # --- Operators that are made of this one.

    def _linop_adjoint(self):
        return algebra.adjoint(self)

    def _linop_inverse(self):
        return algebra.inverse(self)

    def _linop_cholesky(self):
        return algebra.cholesky(self)

    def adjoint(self, name="adjoint"):
        """The conjugate transpose, an operator."""
        if self.is_self_adjoint is True:
            return self
        if _is_eager():
            return self._linop_adjoint()
        with self._name_scope(name):
            return self._linop_adjoint()

    H = property(adjoint)

    def inverse(self, name="inverse"):
        """The inverse, an operator; ValueError where hints say that there is none."""
        if self.is_square is False:
            raise ValueError(
                "Cannot take the Inverse: This operator represents a non square matrix."
            )
        if self.is_non_singular is False:
            raise ValueError(
                "Cannot take the Inverse: This operator represents a singular matrix."
            )
        if _is_eager():
            return self._linop_inverse()
        with self._name_scope(name):
            return self._linop_inverse()

    def cholesky(self, name="cholesky"):
        """The Cholesky factor, an operator; ValueError unless hints say that this is
        self-adjoint and positive definite.
        """
        if not self._can_use_cholesky():
            raise ValueError(
                "Cannot take the Cholesky decomposition: Not a positive definite self "
                "adjoint matrix."
            )
        if _is_eager():
            return self._linop_cholesky()
        with self._name_scope(name):
            return self._linop_cholesky()

    # --- Numbers and tensors.

    def _to_dense(self):
        sizes = self._sizes()
        batch, count = sizes[:-2], sizes[-1]
        eye = array_ops.eye(count, batch_shape=batch, dtype=self.dtype)
        return self.matmul(eye)

    def to_dense(self, name="to_dense"):
        """The matrix as a tensor."""
        if _is_eager():
            return self._to_dense()
        with self._name_scope(name):
            return self._to_dense()

    def _diag_part(self):
        return linalg_ops.diag_part(self.to_dense())

    def diag_part(self, name="diag_part"):
        """The diagonal: [..., min(M, N)]."""
        if _is_eager():
            return self._diag_part()
        with self._name_scope(name):
            return self._diag_part()

    def _trace(self):
        return reduction_ops.reduce_sum(self.diag_part(), -1)

    def trace(self, name="trace"):
        """The sum of the diagonal."""
        if _is_eager():
            return self._trace()
        with self._name_scope(name):
            return self._trace()

    def _check_determinant(self):
        if self.is_square is False:
            raise NotImplementedError(
                "Determinant not implemented for an operator that is expected to not be "
                "square."
            )

    def _determinant(self):
        if self._can_use_cholesky():
            return elementwise_ops.exp(self.log_abs_determinant())
        return linalg_ops.det(self.to_dense())

    def determinant(self, name="det"):
        """The determinant; NotImplementedError where this is known not to be square."""
        rows = self._known_rows
        if rows is None or rows != self._known_columns:
            self._check_determinant()
        if _is_eager():
            return self._determinant()
        with self._name_scope(name):
            return self._determinant()

    def _log_abs_determinant(self):
        if self._can_use_cholesky():
            diagonal = linalg_ops.diag_part(linalg_ops.cholesky(self.to_dense()))
            return 2 * reduction_ops.reduce_sum(elementwise_ops.log(diagonal), [-1])
        return linalg_ops.slogdet(self.to_dense())[1]

    def log_abs_determinant(self, name="log_abs_det"):
        """The logarithm of the determinant's absolute value, of the operator's dtype."""
        rows = self._known_rows
        if rows is None or rows != self._known_columns:
            self._check_determinant()
        if _is_eager():
            return self._log_abs_determinant()
        with self._name_scope(name):
            return self._log_abs_determinant()

    def _eigvals(self):
        return linalg_ops.eigvalsh(self.to_dense())

    def eigvals(self, name="eigvals"):
        """The eigenvalues; NotImplementedError unless hinted to be self-adjoint."""
        if not self.is_self_adjoint:
            raise NotImplementedError("Only self-adjoint matrices are supported.")
        if _is_eager():
            return self._eigvals()
        with self._name_scope(name):
            return self._eigvals()

    def _cond(self):
        if self.is_self_adjoint:
            return dense_ops.ratio(self.eigvals())
        return dense_ops.ratio(linalg_ops.svd(self.to_dense(), compute_uv=False))

    def cond(self, name="cond"):
        """The condition number: the largest singular value over the least one."""
        if _is_eager():
            return self._cond()
        with self._name_scope(name):
            return self._cond()

    def _add_to_tensor(self, x):
        return self.to_dense() + x

    def add_to_tensor(self, x, name="add_to_tensor"):
        """The matrix plus a tensor of the same dtype that broadcasts."""
        with self._name_scope(name):
            return self._add_to_tensor(self._argument(x))

    # --- Assertions.

    def _warn_slow(self, method, cost="."):
        logging.warning(
            "Using (possibly slow) default implementation of %s.  Requires conversion to "
            "a dense matrix%s",
            method,
            cost,
        )

    def _assert_non_singular(self):
        self._warn_slow("assert_non_singular", " and O(N^3) operations.")
        ratio = self.cond()
        if ratio.dtype.is_complex:
            ratio = elementwise_ops.real(ratio)
        limit = 0.01 / float(np.finfo(ratio.dtype.as_numpy_dtype).eps)
        return check_ops.assert_less(
            ratio,
            conversion.constant(limit, ratio.dtype),
            "Singular matrix up to precision epsilon.",
        )

    def assert_non_singular(self, name="assert_non_singular"):
        """Asserts that the matrix has an inverse, up to rounding: an operation of a
        graph, or None and InvalidArgumentError at once.
        """
        with self._name_scope(name):
            return self._assert_non_singular()

    def _assert_positive_definite(self):
        if not self.is_self_adjoint:
            raise NotImplementedError("assert_positive_definite is not implemented.")
        self._warn_slow("assert_positive_definite", " and O(N^3) operations.")
        diagonal = linalg_ops.diag_part(linalg_ops.cholesky(self.to_dense()))
        if diagonal.dtype.is_complex:
            diagonal = elementwise_ops.real(diagonal)
        return check_ops.assert_positive(diagonal, "Matrix was not positive definite.")

    def assert_positive_definite(self, name="assert_positive_definite"):
        """Asserts that x^H A x has a positive real part for all x but zero."""
        with self._name_scope(name):
            return self._assert_positive_definite()

    def _assert_self_adjoint(self):
        self._warn_slow("assert_self_adjoint")
        dense = self.to_dense()
        return check_ops.assert_equal(
            dense, linalg_ops.adjoint(dense), "Matrix was not equal to its adjoint."
        )

    def assert_self_adjoint(self, name="assert_self_adjoint"):
        """Asserts that the matrix is its own adjoint."""
        with self._name_scope(name):
            return self._assert_self_adjoint()

    # --- Batches.

    @property
    def _experimental_parameter_ndims_to_matrix_ndims(self):
        """How many sizes of each parameter belong to one matrix, by name."""
        return self._ndims(self) if callable(self._ndims) else self._ndims

    def __getitem__(self, slices):
        """The operator of a part of the batch, which is indexed like a tensor."""
        return slicing.of_batch(self, slices)


def _implied_square(non_singular, self_adjoint, positive_definite, square):
    """What hints say of being square; ValueError where they contradict each other."""
    if positive_definite and non_singular is False:
        raise ValueError("A positive definite matrix is always non-singular.")
    for said, what in (
        (positive_definite or non_singular, "non-singular"),
        (self_adjoint, "self-adjoint"),
    ):
        if said and square is False:
            raise ValueError(f"A {what} matrix is always square.")
    return True if positive_definite or non_singular or self_adjoint else square


def size(shape, index):
    """A size of a shape, or None; IndexError where the shape is too short."""
    rank = shape.rank
    if rank is None:
        return None
    if rank < -index:
        raise IndexError(f"at least {-index} dimensions are wanted, got shape {shape}")
    return shape[index]


def dimension(shape, index):
    """The same as a Dimension."""
    return Dimension(size(shape, index))


def matched(adjoint, adjoint_arg):
    """Which size of an operator meets which one of the argument."""
    return -2 if adjoint else -1, -1 if adjoint_arg else -2


def _pair(left, right, adjoint, adjoint_arg, name):
    """Two operators of which one is applied to the other; ValueError if sizes differ."""
    left = left.adjoint() if adjoint else left
    right = right.adjoint() if adjoint_arg else right
    wanted, found = left.domain_dimension, right.range_dimension
    if not wanted.is_compatible_with(found):
        raise ValueError(
            f"Operators are incompatible. Expected `{name}` to have dimension {wanted} "
            f"but got {found}."
        )
    return left, right


def _of_column(function, vector):
    return array_ops.squeeze(function(array_ops.expand_dims(vector, -1)), [-1])


# Last, for they make operators of others, by their classes.
from headrace.ops.linalg.operators import algebra, slicing
