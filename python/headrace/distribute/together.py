"""Iterators of workers that may have different numbers of elements, and end together."""

from headrace import _api as tf
from headrace.context import errors
from headrace.data.optional import Optional, OptionalImpl
from headrace.elements import nest


class Together:
    """An iterator over a worker's elements that goes on until no worker has one left: a
    worker whose own have come to their end gets batches without rows.

    Before each element the workers tell each other whether they have one.

    Attributes:
      element_spec: the structure of an element's specs, of any number of rows.
    """

    def __init__(self, workers, iterator, loop=None):
        self._workers, self._own = workers, iterator
        # (name of a loop, number of its collective); by default each has a new number.
        self._loop = loop
        self.element_spec = of_any_rows(iterator.element_spec)

    def in_loop(self):
        """The same for a loop that follows: each turn begins with one collective, which
        this asks for before the loop and behind each turn."""
        graph = tf.compat.v1.get_default_graph()
        name = graph.unique_name("while", mark_as_used=False)
        return Together(self._workers, self._own, (name, self._workers.new_number()))

    def __iter__(self):
        return self

    def __next__(self):
        try:
            return self.get_next()
        except errors.OutOfRangeError:
            raise StopIteration from None

    def get_next(self):
        """The next element; OutOfRangeError at the end of all workers."""
        found = self.get_next_as_optional()
        has_value = found.has_value()
        if tf.executing_eagerly():
            return found.get_value() if has_value else self._own.get_next()
        return tf.cond(has_value, found.get_value, self._own.get_next)

    def get_next_as_optional(self):
        """The next element as an Optional, empty at the end of all workers."""
        own = self._own.get_next_as_optional()
        has_value = own.has_value()
        number = None if self._loop is None else self._workers.ahead(*self._loop)
        count = self._workers.how_many(has_value, number)
        is_own = tf.logical_or(has_value, tf.equal(count, 0))

        def variant_of_own():
            return tf.identity(own._variant_tensor)

        def variant_of_none():
            element = nest.map_structure(no_rows, self.element_spec)
            return Optional.from_value(element)._variant_tensor

        if tf.executing_eagerly():
            variant = variant_of_own() if is_own else variant_of_none()
        else:
            variant = tf.cond(is_own, variant_of_own, variant_of_none)
        return OptionalImpl(variant, self.element_spec)


def of_any_rows(specs):
    """A structure of specs of batches, of any number of rows."""
    return nest.map_structure(_of_any_rows, specs)


def _of_any_rows(spec):
    if (
        not isinstance(spec, (tf.TensorSpec, tf.SparseTensorSpec))
        or not spec.shape.rank
    ):
        return spec
    shape = [None, *spec.shape.as_list()[1:]]
    if isinstance(spec, tf.SparseTensorSpec):
        return tf.SparseTensorSpec(shape, spec.dtype)
    return tf.TensorSpec(shape, spec.dtype, spec.name)


def no_rows(spec):
    if isinstance(spec, tf.RaggedTensorSpec):
        return tf.RaggedTensor.from_row_lengths(
            tf.zeros([0], spec.dtype), tf.zeros([0], spec.row_splits_dtype)
        )
    if spec.shape.rank is None:
        raise ValueError(
            "the elements of a dataset run out between replicas, and their rank is not "
            "known"
        )
    shape = [0, *[d or 0 for d in spec.shape.as_list()[1:]]]
    if isinstance(spec, tf.SparseTensorSpec):
        empty = tf.zeros([0, len(shape)], tf.int64), tf.zeros([0], spec.dtype)
        return tf.SparseTensor(*empty, tf.constant(shape, tf.int64))
    return tf.zeros(shape, spec.dtype)
