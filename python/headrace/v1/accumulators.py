"""tf.compat.v1.ConditionalAccumulator and its sparse form: sums of gradients that a
synchronous optimizer waits for."""

from headrace._load import _headrace
from headrace.context import stack
from headrace.context.properties import read_only
from headrace.framework import conversion, dtypes, indexed_slices, tensor_shape
from headrace.ops import math_ops
from headrace.ops.io.queue_ops import effect


class ConditionalAccumulatorBase:
    """An accumulator by its handle. Gradients of time steps that are over are
    dropped, and counted (`num_dropped`)."""

    def __init__(self, dtype, shape, accumulator_ref):
        self._dtype = dtypes.as_dtype(dtype)
        self._shape = tensor_shape.TensorShape(shape)
        self._accumulator_ref = accumulator_ref
        self._name = (
            "Empty" if _headrace.is_eager() else accumulator_ref.op.name.split("/")[-1]
        )

    accumulator_ref = read_only("_accumulator_ref", "The handle of the accumulator.")
    dtype = read_only("_dtype", "The dtype of the gradients.")
    name = read_only("_name", "The name of the accumulator: a str.")

    def _op(self, op, **arguments):
        op = _headrace.raw_op(f"ResourceAccumulator{op}")
        return op(handle=self._accumulator_ref, **arguments)

    def num_accumulated(self, name=None):
        """How many gradients came since the last ones were taken: a scalar int32."""
        return self._op("NumAccumulated", name=name or f"{self._name}_NumAccumulated")

    def num_dropped(self, name=None):
        """How many gradients of steps that were over have been dropped since the
        accumulator was made: a scalar int64. TensorFlow has no such method, and loads no
        graph that calls it."""
        return self._own_op("NumDropped", name=name or f"{self._name}_NumDropped")

    def _own_op(self, op, **arguments):
        """An operation that TensorFlow has not."""
        prefix = "_Resource" if self._accumulator_ref.dtype == dtypes.resource else "_"
        op = _headrace.raw_op(f"{prefix}Accumulator{op}")
        return op(handle=self._accumulator_ref, **arguments)

    def _await_end(self, step):
        """The operation that waits until gradients of another step are added up."""
        self._own_op("AwaitEnd", local_step=conversion.convert_to_tensor(step))
        return stack.last_operation()

    def set_global_step(self, new_global_step, name=None):
        """Gradients of steps before that one are dropped from now on."""
        self._op("SetGlobalStep", new_global_step=_step(new_global_step), name=name)
        return stack.last_operation()


def _step(step):
    """A step of any integer type as accumulators count them."""
    return math_ops.cast(conversion.convert_to_tensor(step), dtypes.int64)


def _made(op, dtype, shape, shared_name, name, reduction_type):
    if reduction_type not in ("MEAN", "SUM"):
        raise ValueError(
            f"reduction_type must be 'MEAN' or 'SUM', got {reduction_type!r}"
        )
    return _headrace.raw_op(op)(
        dtype=dtypes.as_dtype(dtype),
        shape=tensor_shape.TensorShape(shape),
        shared_name=shared_name,
        reduction_type=reduction_type,
        name=name,
    )


class ConditionalAccumulator(ConditionalAccumulatorBase):
    """Adds up dense gradients until enough came; gives their mean or sum."""

    def __init__(
        self,
        dtype,
        shape=None,
        shared_name=None,
        name="conditional_accumulator",
        reduction_type="MEAN",
    ):
        ref = _made(
            "ResourceConditionalAccumulator",
            dtype,
            shape,
            shared_name,
            name,
            reduction_type,
        )
        super().__init__(dtype, shape, ref)

    def apply_grad(self, grad, local_step=0, name=None):
        """Adds a gradient of the accumulator's shape, unless `local_step` is over.
        ValueError for another static shape."""
        grad = conversion.convert_to_tensor(grad, self._dtype)
        grad.shape.assert_is_compatible_with(self._shape)
        step = _step(local_step)
        self._op("ApplyGradient", local_step=step, gradient=grad, name=name)
        return stack.last_operation()

    def take_grad(self, num_required, name=None):
        """The mean or sum, when `num_required` gradients came; begins the next step.
        InvalidArgumentError where that is not positive."""
        average = self._op(
            "TakeGradient",
            num_required=num_required,
            dtype=self._dtype,
            name=name,
        )
        average.set_shape(self._shape)
        return average


class SparseConditionalAccumulator(ConditionalAccumulatorBase):
    """Adds up rows of gradients until enough came; each row's mean or sum is of the
    gradients that had it. Graphs alone."""

    def __init__(
        self,
        dtype,
        shape=None,
        shared_name=None,
        name="sparse_conditional_accumulator",
        reduction_type="MEAN",
    ):
        ref = _made(
            "SparseConditionalAccumulator",
            dtype,
            shape,
            shared_name,
            name,
            reduction_type,
        )
        super().__init__(dtype, shape, ref)

    def _op(self, op, **arguments):
        # What is not of rows is as of the dense form.
        prefix = "Sparse" if op.endswith("Gradient") else ""
        op = _headrace.raw_op(f"{prefix}Accumulator{op}")
        return op(handle=self._accumulator_ref, **arguments)

    def apply_grad(
        self, grad_indices, grad_values, grad_shape=None, local_step=0, name=None
    ):
        """Adds rows [n, ...] at `grad_indices` [n] of a gradient of that shape, unless
        `local_step` is over."""
        known = grad_shape is not None
        effect(
            "SparseAccumulatorApplyGradient",
            handle=self._accumulator_ref,
            local_step=_step(local_step),
            gradient_indices=math_ops.cast(grad_indices, dtypes.int64),
            gradient_values=grad_values,
            gradient_shape=math_ops.cast(grad_shape if known else [], dtypes.int64),
            has_known_shape=known,
            name=name,
        )
        return stack.last_operation()

    def apply_indexed_slices_grad(self, grad, local_step=0, name=None):
        """The same, of tf.IndexedSlices."""
        return self.apply_grad(
            grad_indices=grad.indices,
            grad_values=grad.values,
            grad_shape=grad.dense_shape,
            local_step=local_step,
            name=name,
        )

    def take_grad(self, num_required, name=None):
        """The rows, when `num_required` gradients came: indices, values, shape."""
        return self._op(
            "TakeGradient",
            num_required=num_required,
            dtype=self._dtype,
            name=name,
        )

    def take_indexed_slices_grad(self, num_required, name=None):
        """The same as tf.IndexedSlices."""
        taken = self.take_grad(num_required, name=name)
        return indexed_slices.IndexedSlices(
            indices=taken.indices, values=taken.values, dense_shape=taken.shape
        )
