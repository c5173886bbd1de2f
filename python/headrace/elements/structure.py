"""Elements and their specs, taken apart into the tensors that datasets hold.

A dense tensor is a component; a sparse or ragged tensor, a dataset or an optional is
one component of dtype variant. An extension type has as many as its spec says.
"""

import functools
import operator

import numpy as np

from headrace._load import _headrace
from headrace.context import late
from headrace.elements import nest
from headrace.framework import conversion, dtypes, tensor_shape, type_spec
from headrace.framework import nest as core
from headrace.framework.sparse_tensor import (
    SparseTensor,
    SparseTensorSpec,
    SparseTensorValue,
)
from headrace.framework.type_spec import NoneTensorSpec, TensorSpec
from headrace.ragged import joining
from headrace.ragged.ragged_tensor import as_values, is_ragged
from headrace.ragged.ragged_value import RaggedTensorValue
from headrace.ragged.spec import RaggedTensorSpec


_elements = []


def register_element(cls):
    """Says that objects of the class are elements as they stand: control_flow does."""
    _elements.append(cls)


def normalize(value):
    """The structure with tensors in place of what becomes tensors."""
    return nest.map_structure(_normalize_leaf, value)


def _normalize_leaf(x):
    if x is None or getattr(type(x), "_is_composite_tensor", False):
        return x
    if isinstance(x, tuple(_elements)):
        return x
    if isinstance(x, SparseTensorValue):
        return SparseTensor.from_value(x)
    if isinstance(x, RaggedTensorValue):
        return as_values(x)
    if isinstance(x, list) and x and all(hasattr(i, "_variant_tensor") for i in x):
        return late.DatasetBatch.of(x)
    if isinstance(x, list) and any(is_ragged(i) for i in x):
        return joining.stack(x, axis=0)
    return conversion.convert_to_tensor(x)


def spec_of(value):
    """The spec of a normalized value."""

    def leaf(x):
        if x is None:
            return NoneTensorSpec()
        if isinstance(x, _headrace.Tensor):
            return TensorSpec(x.shape, x.dtype)
        return type_spec.type_spec_from_value(x)

    return nest.map_structure(leaf, value)


def is_spec(x):
    return isinstance(x, type_spec.TypeSpec)


def component_specs(spec):
    """TensorSpecs of the components."""
    return [c for s in nest.flatten(spec) for c in _leaf_specs(s)]


def _leaf_specs(s):
    if isinstance(s, NoneTensorSpec):
        return []
    if isinstance(s, TensorSpec):
        return [s]
    if hasattr(s, "_of_variant"):
        return [TensorSpec(getattr(s, "shape", []), dtypes.variant)]
    if hasattr(s, "_flat_tensor_specs"):
        return s._flat_tensor_specs
    return [TensorSpec(None, dtypes.variant)]


def flat_types(spec):
    return tuple(c.dtype for c in component_specs(spec))


def flat_shapes(spec):
    return tuple(c.shape for c in component_specs(spec))


def to_tensors(spec, value):
    """The components of a value (normalized) of that spec."""
    out = []
    leaves = nest.flatten(value)
    for s, x in zip(nest.flatten(spec), leaves):
        if isinstance(s, NoneTensorSpec):
            continue
        if isinstance(s, TensorSpec):
            out.append(conversion.convert_to_tensor(x, s.dtype))
        else:
            out += components_of(s, x)
    return out


def components_of(s, x):
    """The components of a composite: one variant tensor, or those of an extension type."""
    if hasattr(s, "_to_tensor_list"):
        return s._to_tensor_list(x)
    if hasattr(s, "_to_variant"):
        return [s._to_variant(x)]
    raise TypeError(f"tf.data elements of type {type(x).__name__} are not supported")


def to_slices(spec, value):
    """Components whose rows are the components of the value's rows."""
    out = []
    for s, x in zip(nest.flatten(spec), nest.flatten(value)):
        if isinstance(s, NoneTensorSpec):
            continue
        if isinstance(s, TensorSpec):
            if s.shape.rank == 0:
                raise ValueError("Unbatching a tensor is only supported for rank >= 1")
            out.append(x)
        elif hasattr(s, "_to_tensor_list"):
            out += s._to_batched_tensor_list(x)
        elif hasattr(x, "_variant_tensor"):
            if s.shape.rank == 0:
                raise ValueError(
                    "Slicing dataset elements is not supported for rank 0."
                )
            out.append(x._variant_tensor)
        else:
            raise TypeError(f"from_tensor_slices of {type(x).__name__}")
    return out


def from_tensors(spec, tensors):
    """The value of that spec whose components are `tensors`."""
    if isinstance(spec, TensorSpec):
        return tensors[0]
    tensors = iter(tensors)

    def leaf(s):
        if isinstance(s, TensorSpec):
            return next(tensors)
        if isinstance(s, NoneTensorSpec):
            return None
        return of_components(s, tensors)

    return nest.map_structure(leaf, spec)


def unpacker(spec):
    """from_tensors for one spec, prepared to be called for many elements."""
    if isinstance(spec, TensorSpec):
        return operator.itemgetter(0)
    if type(spec) is tuple and all(isinstance(s, TensorSpec) for s in spec):
        return tuple
    return functools.partial(from_tensors, spec)


def of_components(s, tensors):
    """The composite whose components are the next ones of an iterator."""
    if hasattr(s, "_from_tensor_list"):
        return s._from_tensor_list([next(tensors) for _ in s._flat_tensor_specs])
    return s._of_variant(next(tensors))


def batched(spec, size):
    """The spec of `size` (None: unknown) elements stacked."""

    def leaf(s):
        if not (hasattr(s, "_batch") or hasattr(s, "_to_tensor_list")):
            raise TypeError(f"Cannot batch elements of type {type(s).__name__}")
        return s._batch(size)

    return nest.map_structure(leaf, spec)


def unbatched(spec):
    """The spec of rows."""

    def leaf(s):
        if hasattr(s, "shape") and s.shape.rank == 0:
            raise ValueError("Unbatching a tensor is only supported for rank >= 1")
        if not (hasattr(s, "_unbatch") or hasattr(s, "_to_tensor_list")):
            raise TypeError(f"Cannot unbatch elements of type {type(s).__name__}")
        return s._unbatch()

    return nest.map_structure(leaf, spec)


def of_types_and_shapes(types, shapes):
    """Specs of parallel structures of dtypes and shapes (None: unknown)."""
    if shapes is None:
        return nest.map_structure(
            lambda t: TensorSpec(None, dtypes.as_dtype(t)), as_types(types)
        )
    leaves = [
        TensorSpec(s, dtypes.as_dtype(t))
        for t, s in zip(nest.flatten(as_types(types)), shape_leaves(types, shapes))
    ]
    return nest.pack(as_types(types), leaves)


def as_types(types):
    return nest.map_structure(dtypes.as_dtype, _tuples(types))


def _tuples(x):
    return tuple(_tuples(i) for i in x) if isinstance(x, list) else x


def shape_leaves(types, shapes):
    """The shapes below the leaves of `types`."""
    types = _tuples(types)
    if not nest.is_nested(types):
        is_tensor = isinstance(shapes, _headrace.Tensor)
        return [shapes if is_tensor else tensor_shape.as_shape(shapes)]
    if isinstance(types, dict):
        keys = core.sorted_keys(types)
        return [s for k in keys for s in shape_leaves(types[k], shapes[k])]
    return [
        s
        for t, x in zip(core.children(types), core.children(shapes))
        for s in shape_leaves(t, x)
    ]


def common(a, b):
    """The spec that fits values of both, or an error that names both."""
    try:
        nest.assert_same_structure(a, b)
    except (TypeError, ValueError):
        raise TypeError(f"Incompatible dataset elements:\n  {a} vs.   {b}") from None
    joined = []
    for x, y in zip(nest.flatten(a), nest.flatten(b)):
        shared = x.most_specific_common_supertype([y]) if type(x) is type(y) else None
        if shared is None:
            raise TypeError(f"Incompatible dataset elements:\n  {a} vs.   {b}")
        joined.append(shared)
    return nest.pack(a, joined)


def to_numpy(value):
    """A structure of NumPy values of an element."""

    def leaf(x):
        if isinstance(x, SparseTensor):
            return x.numpy()
        if isinstance(x, _headrace.Tensor):
            array = x.numpy()
            if isinstance(array, np.ndarray):
                array.setflags(write=False)
            return array
        if is_ragged(x):
            return x.numpy()
        if x is None:
            return None
        raise TypeError(
            f"as_numpy_iterator() is not supported for datasets that produce values of "
            f"type {type(x)}"
        )

    return nest.map_structure(leaf, value)
