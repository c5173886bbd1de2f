"""Operators that are made of blocks, with arguments that are whole or lists of blocks."""

from headrace._load import _headrace
from headrace.framework import conversion
from headrace.ops import array_ops
from headrace.ops.linalg.operators import dense_ops
from headrace.ops.linalg.operators.base import LinearOperator, dimension
from headrace.ops.linalg.operators.dense_ops import adjoint_if


def is_blockwise(sizes, arg, split_dim):
    """Whether an argument is a list of one for each block, whose sizes are Dimensions.

    A list that is no list of tensors may be one array as well. Sizes at `split_dim` tell;
    ValueError where they fit neither way, or both.
    """
    if not isinstance(arg, (list, tuple)) or len(arg) != len(sizes):
        return False
    if not any(isinstance(part, (list, tuple)) for part in arg):
        return any(getattr(part, "shape", ()) != () for part in arg)
    shapes = [conversion.convert_to_tensor(part).shape for part in arg]
    if any(shape.rank is not None and shape.rank < -split_dim for shape in shapes):
        return False
    found = [dimension(shape, split_dim).value for shape in shapes]
    wanted = [size.value for size in sizes]
    if found == wanted or len(set(found)) > 1:
        return True
    if None in wanted:
        raise ValueError(
            "The input structure is ambiguous: it is a list of as many arrays as there "
            "are blocks, whose sizes are not known. Give tensors for blocks, or one tensor."
        )
    if sum(wanted) == found[0]:
        return False
    raise ValueError(
        f"The argument's dimension does not match: blocks of sizes {wanted} are wanted, or "
        f"one array of size {sum(wanted)}, got sizes {found}"
    )


class BlockOperator(LinearOperator):
    """An operator made of blocks. Subclasses have the sizes of these and
    `_block_matmul(parts, adjoint)` and `_block_solve(parts, adjoint)`, of lists.
    """

    _known_blocks = {}  # the sizes, of rows (True) or columns, once they are known

    def _block_sizes(self, of_rows):
        if of_rows:
            return self._block_range_dimensions()
        return self._block_domain_dimensions()

    def _is_blockwise(self, arg, of_rows, axis):
        if isinstance(arg, _headrace.Tensor):
            return False
        return is_blockwise(self._block_sizes(of_rows), arg, axis)

    def _block_size_tensors(self, of_rows):
        known = self._known_blocks.get(of_rows)
        if known is not None:
            return known
        known = [d.value for d in self._block_sizes(of_rows)]
        if None not in known:
            self.__dict__["_known_blocks"] = {**self._known_blocks, of_rows: known}
            return known
        if of_rows:
            return self._block_range_dimension_tensors()
        return self._block_domain_dimension_tensors()

    def _block_parts(self, x, of_rows, adjoint_arg, axis):
        """An argument's blocks as tensors of the right sizes."""
        parts = [self._argument(part) for part in x]
        for part, size in zip(parts, self._block_sizes(of_rows)):
            size.assert_is_compatible_with(dimension(part.shape, axis))
        return [adjoint_if(part, adjoint_arg) for part in parts]

    def _whole(self, apply, x, of_rows, adjoint, adjoint_arg):
        """`apply` of the blocks of one tensor, as one tensor."""
        x = adjoint_if(x, adjoint_arg)
        parts = array_ops.split(x, self._block_size_tensors(of_rows), axis=-2)
        results = dense_ops.joined_batches(*apply(parts, adjoint))
        return array_ops.concat(results, -2)

    def _by_vector(self, apply, x, of_rows, adjoint):
        columns = [
            array_ops.expand_dims(part, -1)
            for part in self._block_parts(x, of_rows, False, -1)
        ]
        return [array_ops.squeeze(r, [-1]) for r in apply(columns, adjoint)]

    def _matmul(self, x, adjoint=False, adjoint_arg=False):
        return self._whole(self._block_matmul, x, adjoint, adjoint, adjoint_arg)

    def _solve(self, rhs, adjoint=False, adjoint_arg=False):
        return self._whole(self._block_solve, rhs, not adjoint, adjoint, adjoint_arg)

    def matmul(self, x, adjoint=False, adjoint_arg=False, name="matmul"):
        """As LinearOperator.matmul; x may be a list of tensors, one for each block of
        columns, then so is the result.
        """
        axis = -1 if adjoint_arg else -2
        if not self._is_blockwise(x, adjoint, axis):
            return super().matmul(x, adjoint, adjoint_arg, name)
        with self._name_scope(name):
            parts = self._block_parts(x, adjoint, adjoint_arg, axis)
            return self._block_matmul(parts, adjoint)

    def matvec(self, x, adjoint=False, name="matvec"):
        """As LinearOperator.matvec, also of lists of vectors."""
        if not self._is_blockwise(x, adjoint, -1):
            return super().matvec(x, adjoint, name)
        with self._name_scope(name):
            return self._by_vector(self._block_matmul, x, adjoint, adjoint)

    def solve(self, rhs, adjoint=False, adjoint_arg=False, name="solve"):
        """As LinearOperator.solve; rhs may be a list of tensors, one for each block of
        rows, then so is the result.
        """
        axis = -1 if adjoint_arg else -2
        if not self._is_blockwise(rhs, not adjoint, axis):
            return super().solve(rhs, adjoint, adjoint_arg, name)
        self._check_solvable()
        with self._name_scope(name):
            parts = self._block_parts(rhs, not adjoint, adjoint_arg, axis)
            return self._block_solve(parts, adjoint)

    def solvevec(self, rhs, adjoint=False, name="solve"):
        """As LinearOperator.solvevec, also of lists of vectors."""
        if not self._is_blockwise(rhs, not adjoint, -1):
            return super().solvevec(rhs, adjoint, name)
        self._check_solvable()
        with self._name_scope(name):
            return self._by_vector(self._block_solve, rhs, not adjoint, adjoint)
