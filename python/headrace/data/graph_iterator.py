"""tf.compat.v1.data: iterators of a plain graph, kept by its sessions."""

from headrace._load import _headrace, raw
from headrace.context import stack
from headrace.data.functions import flat
from headrace.data.iterator import (  # noqa: F401  (public names of this module)
    Iterator,
    get_output_classes,
    get_output_shapes,
    get_output_types,
)
from headrace.elements import structure
from headrace.framework import dtypes, execution
from headrace.framework.tensor_shape import TensorShape
from headrace.framework.type_spec import TensorSpec
from headrace.function import polymorphic
from headrace.graph import import_graph

_VARIABLES = ("VarHandleOp", "VariableV2", "Variable", "HashTableV2")


class GraphIterator(Iterator):
    """An iterator by a name that every session knows."""

    def __init__(self, resource, element_spec, initializer=None):
        super().__init__(element_spec=element_spec, resource=resource)
        self._initializer = initializer

    @property
    def initializer(self):
        """The operation that sets it to the beginning of its dataset."""
        if self._initializer is None:
            raise ValueError(
                "The iterator does not have an initializer. This means it was likely "
                "created using `tf.data.Dataset.make_one_shot_iterator()`. For an "
                "initializable iterator, use "
                "`tf.data.Dataset.make_initializable_iterator()` instead."
            )
        return self._initializer

    def make_initializer(self, dataset, name=None):
        """An operation that sets it to the beginning of `dataset`."""
        ours = [
            (t.shape, t.dtype) for t in structure.component_specs(self.element_spec)
        ]
        theirs = structure.component_specs(dataset.element_spec)
        if len(ours) != len(theirs) or any(
            dtype != t.dtype or not shape.is_compatible_with(t.shape)
            for (shape, dtype), t in zip(ours, theirs)
        ):
            raise TypeError(
                f"Expected elements like {self.element_spec!r} but got a dataset of "
                f"{dataset.element_spec!r}."
            )
        return _initializer(dataset, self._resource, name)

    def get_next(self, name=None):
        """Tensors of the next element; OutOfRangeError at the end, in a run."""
        return self._unpack(
            raw.IteratorGetNext(self._resource, name=name, **self._attributes)
        )

    def string_handle(self, name=None):
        """A text that names it in this process."""
        return raw.IteratorToStringHandle(self._resource, name=name)

    @staticmethod
    def from_structure(output_types, output_shapes=None, shared_name=None):
        """An iterator along datasets that make_initializer() names."""
        return _named(_spec(output_types, output_shapes), shared_name)

    @staticmethod
    def from_string_handle(string_handle, output_types, output_shapes=None):
        """The iterator that a text names."""
        spec = _spec(output_types, output_shapes)
        handle = raw.IteratorFromStringHandleV2(string_handle, **flat(spec))
        return GraphIterator(handle, spec)

    def __next__(self):
        """Raises TypeError: a graph's elements come by get_next()."""
        raise TypeError("Iterators of a graph give tensors by get_next()")

    next = __next__


def _spec(types, shapes):
    leaves = structure.nest.flatten(types)
    if shapes is None:
        shapes = [None] * len(leaves)
    elif len(leaves) == 1 and not structure.nest.is_nested(types):
        shapes = [shapes]
    else:
        shapes = structure.nest.flatten(
            structure.nest.map_structure(TensorShape, shapes)
        )
    specs = [TensorSpec(s, dtypes.as_dtype(t)) for s, t in zip(shapes, leaves)]
    return structure.nest.pack(types, specs)


def _named(spec, shared_name):
    name = shared_name
    if name is None:
        # Each its own, whatever the operations' names: the number is never the same, as
        # the iterator adds an operation.
        graph = stack.current()
        name = f"_{id(graph)}_iterator_{graph._core.num_nodes}"
    handle = raw.IteratorV2(container="", shared_name=name, **flat(spec))
    return GraphIterator(handle, spec)


def _initializer(dataset, resource, name=None):
    graph = stack.current()
    raw.MakeIterator(dataset._variant_tensor, resource, name=name)
    return graph._last_operation()


def _check_graph(what):
    execution.only_in_graphs(
        f"{what}() is not supported when eager execution is enabled. Use "
        "`for element in dataset` instead."
    )


def make_initializable_iterator(dataset, shared_name=None):
    """An iterator of the graph, to be initialized by running its `initializer`."""
    _check_graph("make_initializable_iterator")
    iterator = _named(dataset.element_spec, shared_name)
    iterator._initializer = _initializer(dataset, iterator._resource)
    iterator._dataset = dataset
    return iterator


def _nodes_before(tensor):
    """The names of the operations that a tensor depends on."""
    found, queue = {tensor.op.name}, [tensor.op]
    for op in queue:
        if op.type == "Placeholder" or op.type in _VARIABLES:
            kind = "placeholder" if op.type == "Placeholder" else "stateful node"
            raise ValueError(
                f"Cannot capture a {kind} (name:{op.name}, type:{op.type}) by value."
            )
        for before in [t.op for t in op.inputs] + list(op.control_inputs):
            if before.name not in found:
                found.add(before.name)
                queue.append(before)
    return found


def _keep_functions_used(graph_def):
    """Leaves out the functions that no node calls, nor a function that one calls: the
    factories of other iterators are there already."""
    known = {f.signature.name: f for f in graph_def.library.function}
    used, queue = {}, list(graph_def.node)
    for node in queue:
        for attr in node.attr.values():
            called = [attr.func, *attr.list.func]
            for name in {f.name for f in called} & known.keys() - used.keys():
                used[name] = known[name]
                queue.extend(known[name].node_def)
    kept = [f for name, f in known.items() if name in used]
    gradients = [g for g in graph_def.library.gradient if g.function_name in used]
    graph_def.library.Clear()
    graph_def.library.function.extend(kept)
    graph_def.library.gradient.extend(gradients)


def _factory(dataset):
    """A function that makes the dataset anew, all that it depends on by value."""
    variant = dataset._variant_tensor
    names = _nodes_before(variant)
    graph_def = variant.graph.as_graph_def()
    kept = [node for node in graph_def.node if node.name in names]
    del graph_def.node[:]
    graph_def.node.extend(kept)
    _keep_functions_used(graph_def)

    def make_dataset():
        (made,) = import_graph.import_graph_def(
            graph_def, return_elements=[variant.name], name=""
        )
        return made

    return polymorphic.function(make_dataset).get_concrete_function()


def make_one_shot_iterator(dataset):
    """An iterator of the graph that is at its beginning in every new session."""
    if _headrace.is_eager():
        return iter(dataset)
    graph = stack.current()
    try:
        factory = _factory(dataset)
    except ValueError as e:
        if "Cannot capture" not in str(e):
            raise
        raise ValueError(
            f"{e} A likely cause of this error is that the dataset for which you are "
            "calling `make_one_shot_iterator()` captures a stateful object, such as a "
            "`tf.Variable` or `tf.lookup.StaticHashTable`, which is not supported. Use "
            "`make_initializable_iterator()` instead."
        ) from None
    factory.add_to_graph(graph)
    graph.__dict__.setdefault("_dataset_functions", []).append(factory)
    handle = raw.OneShotIterator(dataset_factory=factory, **flat(dataset.element_spec))
    return GraphIterator(handle, dataset.element_spec)
