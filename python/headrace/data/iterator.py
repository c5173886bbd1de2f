"""Places in datasets: what iter() gives."""

import operator

from headrace._load import _headrace, raw
from headrace.context import errors
from headrace.context.properties import read_only
from headrace.data.functions import flat
from headrace.data.holder_spec import Holder, HolderSpec
from headrace.data.optional import OptionalImpl
from headrace.elements import structure
from headrace.framework import devices, dtypes
from headrace.framework.support import signatures
from headrace.framework.trackable import Trackable


def _legacy(what, shown):
    convert = operator.methodcaller(f"_to_legacy_output_{what}")

    def get(dataset_or_iterator):
        spec = dataset_or_iterator.element_spec
        return structure.nest.map_structure(convert, spec)

    doc = f"The {shown} of a dataset's or iterator's elements, in their structure."
    return signatures.called(get, f"get_output_{what}", doc)


get_output_types = _legacy("types", "dtypes")
get_output_shapes = _legacy("shapes", "shapes")
get_output_classes = _legacy("classes", "classes")


class Iterator(Holder, Trackable):
    """The base of iterators: elements one after another."""

    _checkpoint_attribute = "ITERATOR"  # of values that begin so, in the graph

    def __init__(self, dataset=None, element_spec=None, resource=None):
        if dataset is not None:
            self._dataset = dataset
            self._element_spec = dataset.element_spec
            attributes = flat(self._element_spec)
            with devices.here():  # where the dataset is
                self._resource = raw.AnonymousIteratorV3(**attributes)
            raw.MakeIterator(dataset._variant_tensor, self._resource)
        else:
            self._element_spec, self._resource = element_spec, resource
            attributes = flat(element_spec)
        self._attributes = attributes
        self._unpack = structure.unpacker(self._element_spec)

    element_spec = read_only(
        "_element_spec", "The nested structure of specs that an element has."
    )

    output_types = property(
        get_output_types, doc="The dtypes of an element, in its structure."
    )
    output_shapes = property(
        get_output_shapes, doc="The static shapes of an element, in its structure."
    )
    output_classes = property(
        get_output_classes, doc="The classes of an element's parts, in its structure."
    )

    _type_spec = property(lambda self: IteratorSpec(self._element_spec))

    def _components(self):
        return [self._resource]

    def __iter__(self):
        return self

    def __next__(self):
        """The next element; StopIteration at the end. Also called next()."""
        try:
            return self.get_next()
        except errors.OutOfRangeError:
            raise StopIteration from None

    next = __next__

    def get_next(self):
        """The next element; OutOfRangeError at the end."""
        return self._unpack(raw.IteratorGetNext(self._resource, **self._attributes))

    def get_next_as_optional(self):
        """The next element as a tf.experimental.Optional, empty at the end."""
        variant = raw.IteratorGetNextAsOptional(self._resource, **self._attributes)
        return OptionalImpl(variant, self._element_spec)

    def _serialize_to_tensors(self):
        state = raw.SerializeIterator(self._resource)
        return {"ITERATOR_STATE": state}

    def _restore_from_tensors(self, restored_tensors):
        raw.DeserializeIterator(self._resource, restored_tensors["ITERATOR_STATE"])


# As many elements may a trace ask of one iterator; a loop over a dataset that is
# not converted would ask for ever.
_MOST_TRACED = 32


class OwnedIterator(Iterator):
    """What iter(dataset) gives."""

    _traced_calls = 0

    def get_next(self):
        """The next element; OutOfRangeError at the end."""
        if not _headrace.is_eager():
            self._traced_calls += 1
            if self._traced_calls > _MOST_TRACED:
                raise ValueError(
                    "An unusually high number of `tf.data.Iterator.get_next()` calls "
                    "was detected. This suggests that the `for elem in dataset: ...` "
                    "idiom is used within tf.function with AutoGraph disabled. This "
                    "idiom is only supported when AutoGraph is enabled."
                )
        return super().get_next()

    def __repr__(self):
        return (
            f"<{type(self).__module__}.{type(self).__name__} object at {id(self):#x}>"
        )


class IteratorSpec(HolderSpec):
    """What an iterator is like."""

    _dtype = dtypes.resource
    value_type = OwnedIterator

    def _wrap(self, tensor):
        return OwnedIterator(element_spec=self._element_spec, resource=tensor)


class NumpyIterator:
    """Elements as NumPy values."""

    def __init__(self, dataset):
        self._iterator = iter(dataset)

    def __repr__(self):
        return f"NumpyIterator(iterator={self._iterator})"

    def __iter__(self):
        return self

    def __next__(self):
        """The next element as NumPy arrays and bytes; StopIteration at the end."""
        return structure.to_numpy(next(self._iterator))

    next = __next__

    def save(self):
        """Where the iterator is: a scalar tensor of variants, for restore()."""
        return raw.SerializeIterator(self._iterator._resource)

    def restore(self, state):
        """Goes on where an iterator of the same dataset was when it was saved."""
        raw.DeserializeIterator(self._iterator._resource, state)
