"""The shapes that loop variables may have, turn by turn: tf.while_loop's invariants."""

from headrace.control_flow import bodies
from headrace.framework import nest, tensor_shape
from headrace.framework.sparse_tensor import SparseTensorSpec
from headrace.framework.type_spec import (
    TypeSpec,
    flat_tensor_specs,
    type_spec_from_value,
)


def shapes_of(structure, loop_vars, invariants):
    """The shape of each loop tensor: the invariant's, or its own.

    Of a composite value its spec tells: the number of its rows stays, that of
    its values may change.
    """
    flat_vars = nest.flatten(structure)
    flat_shapes = [None] * len(flat_vars)
    if invariants is not None:
        flat_shapes = flat_invariants(structure, invariants)
    if len(flat_vars) != len(flat_shapes):
        raise ValueError(
            "`shape_invariants` must have the structure of `loop_vars`, got "
            f"{invariants} for {loop_vars}"
        )
    out = []
    for value, shape in zip(flat_vars, flat_shapes):
        if isinstance(shape, TypeSpec):
            _check_spec(shape, value)
        parts = bodies.tensors_of(value)
        if bodies.is_composite(value):
            out += [s.shape for s in _component_specs(shape, value)]
            continue
        if shape is None:
            out += [p.shape for p in parts]
            continue
        if isinstance(shape, TypeSpec):
            shape = shape.shape
        shape = tensor_shape.as_shape(shape)
        for part in parts:
            if not part.shape.is_compatible_with(shape):
                raise ValueError(
                    f"The shape invariant specified for {part.name} is not "
                    "compatible with the initial shape of the loop variable. It "
                    f"enters the loop with shape {part.shape}, but the specified "
                    f"shape invariant is {shape}."
                )
            out.append(shape)
    return out


def _check_spec(spec, value):
    """The spec must be of the value's kind, and of its dtype."""
    own = type_spec_from_value(value)
    if bodies.is_composite(value):
        alike = spec.is_compatible_with(own)
    else:  # of a tensor the shape is looked at with those given as shapes
        alike = type(spec) is type(own) and spec.dtype == own.dtype
    if not alike:
        raise TypeError(f"TypeSpec {spec} is not compatible with {value}")


def _component_specs(invariant, value):
    """Specs of a composite value's tensors, by a TypeSpec, a shape or nothing."""
    spec = type_spec_from_value(value)
    if isinstance(invariant, TypeSpec):
        spec = invariant
    elif invariant is not None:
        if hasattr(value, "_shape_invariant_to_type_spec"):
            spec = value._shape_invariant_to_type_spec(invariant)
        else:
            spec = _spec_of_shape(spec, tensor_shape.as_shape(invariant))
        _check_spec(spec, value)
    return flat_tensor_specs(spec)


def _spec_of_shape(own, shape):
    """The spec that a shape given as invariant stands for; `own` is the value's."""
    if isinstance(own, SparseTensorSpec):
        # It is that of the vector of sizes: only their number is said.
        if shape.rank not in (1, None):
            raise ValueError(
                f"Expected a shape with 1 dimension. Obtained: {shape} which has "
                f"{shape.rank} dimensions."
            )
        rank = None if shape.rank is None else shape[0]
        return SparseTensorSpec(None if rank is None else [None] * rank, own.dtype)
    raise ValueError(
        f"`shape_invariants` must give a TypeSpec for {own}, got the shape {shape}"
    )


def flat_invariants(structure, invariants):
    """One invariant a leaf of the structure; shapes are leaves, lists too."""
    if not nest.is_nested(structure):
        return [invariants]
    if isinstance(structure, dict):
        rows = [(structure[k], invariants[k]) for k in nest.sorted_keys(structure)]
    else:
        if nest.is_dataclass(invariants):
            invariants = nest.children(invariants)
        rows = list(zip(nest.children(structure), invariants))
    return [s for value, inv in rows for s in flat_invariants(value, inv)]
