"""tf.nondifferentiable_batch_function: one call for the rows of several."""

from headrace._load import raw
from headrace.framework import nest
from headrace.framework.tensor import Tensor
from headrace.framework.type_spec import TensorSpec
from headrace.function.polymorphic import Function, checked_options


def _rows_of(x, i):
    if not isinstance(x, Tensor):
        raise ValueError(  # noqa: TRY004  (upstream's)
            "All arguments to functions decorated with `batch_function`  are supposed to"
            f" be Tensors; found {x!r}."
        )
    shape = x.shape
    if shape.rank:
        # As many rows as there are in a batch.
        shape = [None, *shape[1:]]
    return TensorSpec(shape, x.dtype, f"batch_{i}")


def nondifferentiable_batch_function(
    num_batch_threads,
    max_batch_size,
    batch_timeout_micros,
    allowed_batch_sizes=None,
    max_enqueued_batches=10,
    autograph=True,
    enable_large_batch_splitting=True,
):
    """A decorator: calls that threads make at the same time become one call.

    The arguments are tensors of as many rows each; what the function returns, nested as
    it likes, has a row for each of theirs. A call waits up to `batch_timeout_micros`, or
    until there are `max_batch_size` rows; `num_batch_threads` batches run at a time, and
    `max_enqueued_batches` wait. Batches are filled up to one of `allowed_batch_sizes`,
    which grow up to `max_batch_size`; with `enable_large_batch_splitting` calls are cut to
    the last of them. No gradient flows.

    Raises ValueError for arguments that are no tensors, InvalidArgumentError for
    tensors without rows, or of other numbers of rows, UnavailableError where too many
    batches wait.
    """

    def decorator(function):
        computation = Function(function, checked_options(autograph=autograph))

        def decorated(*args):
            specs = [_rows_of(x, i) for i, x in enumerate(args)]
            concrete = computation.get_concrete_function(*specs)
            results = raw.BatchFunction(
                list(args),
                list(concrete.captured_inputs),
                f=concrete,
                num_batch_threads=num_batch_threads,
                max_batch_size=max_batch_size,
                batch_timeout_micros=batch_timeout_micros,
                allowed_batch_sizes=allowed_batch_sizes or [],
                max_enqueued_batches=max_enqueued_batches,
                Tout=[t.dtype for t in concrete.outputs],
                enable_large_batch_splitting=enable_large_batch_splitting,
            )
            return nest.pack_sequence_as(concrete.structured_outputs, results)

        return decorated

    return decorator
