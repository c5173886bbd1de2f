"""What optimizers of users' own override and call, by TensorFlow 1's names."""

from headrace import _api as tf
from headrace.keras.optimizer.rules import summed_rows


class ForSubclasses:
    """Mixed into the Optimizer, whose own subclasses define _change and _change_rows.

    Updates give the operation that makes them, in graphs that sessions run; those here
    do what the class's own rule is.
    """

    def _apply_dense(self, grad, var):
        """Updates a reference variable by a gradient of its shape."""
        self._change(grad, var)

    def _resource_apply_dense(self, grad, handle):
        """Updates a resource variable by a gradient of its shape."""
        self._change(grad, handle)

    def _apply_sparse(self, grad, var):
        """Updates rows of a reference variable; `grad` is a tf.IndexedSlices, none of
        whose indices comes twice."""
        self._change_rows(grad.values, grad.indices, var)

    def _resource_apply_sparse(self, grad, handle, indices):
        """Updates rows of a resource variable: `indices`, none of which comes twice."""
        self._change_rows(grad, indices, handle)

    def _apply_sparse_duplicate_indices(self, grad, var):
        """_apply_sparse where indices may come several times, whose gradients are
        summed."""
        values, rows = summed_rows(grad)
        slices = tf.IndexedSlices(values, rows, grad.dense_shape)
        return self._apply_sparse(slices, var)

    def _resource_apply_sparse_duplicate_indices(self, grad, handle, indices):
        """_resource_apply_sparse where indices may come several times, whose gradients
        are summed."""
        values, rows = summed_rows(tf.IndexedSlices(grad, indices))
        return self._resource_apply_sparse(values, handle, rows)

    def _finish(self, update_ops, name_scope):
        """The operation of that name behind all updates."""
        return tf.group(*update_ops, name=name_scope) if update_ops else None

    def _get_or_make_slot(self, var, val, slot_name, op_name):
        """The slot of that name; made with the value `val` unless it is there."""
        return self._make_slot(var, slot_name, op_name, lambda: val)

    def _get_or_make_slot_with_initializer(
        self, var, initializer, shape, dtype, slot_name, op_name
    ):
        """The slot of that name; made by the initializer unless it is there."""

        def make():
            return (
                initializer(shape, dtype=dtype)
                if callable(initializer)
                else initializer
            )

        return self._make_slot(var, slot_name, op_name, make)

    def _create_non_slot_variable(self, initial_value, name, colocate_with):
        """A variable of the optimizer itself, made unless it is there, beside the
        variable `colocate_with`."""
        object.__setattr__(self, "_first_variable", colocate_with)
        return self._make_plain(name, initial_value)

    def _get_non_slot_variable(self, name, graph=None):
        """That variable of the current graph, or of the one given."""
        return self._plain_variable(name, graph)

    def _call_if_callable(self, param):
        """What a function gives, or the value itself."""
        return self._value(param)
