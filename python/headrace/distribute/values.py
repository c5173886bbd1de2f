"""Values that differ by replica, and structures of them."""

from headrace.context import strategies
from headrace.distribute import kinds
from headrace.distribute.kinds import DistributedValues
from headrace.framework import nest, type_spec, variables


class _OfReplicas(DistributedValues):
    """A tensor or composite for each replica.

    Attributes:
      values: a tuple of them, by replica.
    """

    _is_composite_tensor = True

    def __init__(self, values):
        self._values = tuple(values)

    @property
    def values(self):
        """A tuple of the values, by replica."""
        return self._values

    def _get(self):
        """The value of the replica that runs here, else of the first."""
        mode = strategies.mode()
        copy = None if mode is None else mode.copy
        return self._values[copy or 0]

    def __repr__(self):
        rows = ",\n".join(f"  {i}: {v!r}" for i, v in enumerate(self._values))
        return f"{type(self).__name__}:{{\n{rows}\n}}"

    def __str__(self):
        rows = ",\n".join(f"  {i}: {v!s}" for i, v in enumerate(self._values))
        return f"{type(self).__name__}:{{\n{rows}\n}}"

    # --- of tensors: a composite ---

    @property
    def _type_spec(self):
        return PerReplicaSpec(*map(type_spec.type_spec_from_value, self._values))

    def _static_parts(self):
        return (self._type_spec,)

    def _components(self):
        return list(self._values)

    def _from_components(self, parts):
        return type(self)(parts)


class Parts(DistributedValues):
    """Structures of replicas, which are handed to each as they are."""

    def __init__(self, values):
        self.values = tuple(values)


class PerReplica(_OfReplicas, kinds.PerReplica):
    """Values of replicas that may differ."""


class Mirrored(_OfReplicas, kinds.Mirrored):
    """One value that each replica has a copy of."""

    def __tf_tensor__(self, dtype=None, name=None):
        return self._get()


class PerReplicaSpec(type_spec.TypeSpec):
    """The specs of the values of a PerReplica."""

    def __init__(self, *value_specs):
        self._value_specs = tuple(value_specs)

    value_type = PerReplica

    def _serialize(self):
        return self._value_specs

    @property
    def _component_specs(self):
        return list(self._value_specs)

    def _from_components(self, parts):
        return PerReplica(parts)

    def __repr__(self):
        return f"PerReplicaSpec({', '.join(map(repr, self._value_specs))})"


def _is_namedtuple(x):
    return isinstance(x, tuple) and hasattr(x, "_fields")


def regroup(values, wrap=PerReplica, always=False):
    """One structure of structures of replicas, whose leaves are what `wrap` makes of a
    leaf of each; what is one object for all stays it, unless `always`. ValueError for
    other structures."""
    first = values[0]
    if isinstance(first, list):
        _same_length(values)
        parts = [regroup(list(v), wrap, always) for v in zip(*values)]
        return parts if type(first) is list else type(first)(parts)
    if isinstance(first, tuple):
        _same_length(values)
        parts = [regroup(list(v), wrap, always) for v in zip(*values)]
        return type(first)(*parts) if _is_namedtuple(first) else type(first)(parts)
    if isinstance(first, dict):
        if any(set(v) != set(first) for v in values):
            raise ValueError("replicas gave dictionaries of different keys")
        return {k: regroup([v[k] for v in values], wrap, always) for k in first}
    whole = variables.whole_of(first)
    if whole is not None and all(variables.whole_of(v) is whole for v in values):
        return whole
    if not always and all(v is first for v in values):
        return first
    return first if len(values) == 1 and not always else wrap(tuple(values))


def _same_length(values):
    if any(
        not isinstance(v, (list, tuple)) or len(v) != len(values[0]) for v in values
    ):
        raise ValueError("replicas gave structures of different lengths")


def is_distributed(value):
    """Whether a value has one of its own for each replica."""
    return isinstance(value, DistributedValues) or hasattr(value, "_copies")


def values_of(value):
    """A tuple of the values or copies of a distributed value; of another, itself."""
    return tuple(value.values) if is_distributed(value) else (value,)


def select(replica, structure):
    """The structure that a replica has of one of distributed values."""

    def one(x):
        if not is_distributed(x) or getattr(x, "_is_shared", False):
            return x
        return x.values[replica]

    return map_leaves(one, structure)


def map_leaves(function, structure):
    """The structure of function(leaf); what is no list, tuple or dict is a leaf."""
    if is_distributed(structure) or not nest.is_nested(structure):
        return function(structure)
    flat = nest.flatten(structure)
    return nest.pack_sequence_as(structure, [function(x) for x in flat])
