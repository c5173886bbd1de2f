"""tf.compat.v1.wrap_function: code for graphs of sessions as functions."""

from headrace._load import _headrace
from headrace.framework import conversion, nest
from headrace.framework.type_spec import TensorSpec
from headrace.function import tracing
from headrace.function.concrete import ConcreteFunction
from headrace.function.function_type import FunctionType, P, Parameters
from headrace.function.polymorphic import Function, checked_options
from headrace.graph import func_graph
from headrace.graph.operation import Operation


def _plain(function, signature):
    """The parameters of a function with that signature, and their types."""
    described = Function(function, checked_options(input_signature=signature))
    return described._parameters, described._signature_types


def _by_position(function_type):
    """The same with parameters that have numbers for names, as calls have none."""
    parameters, types = [], []
    for i, t in enumerate(function_type.types):
        if type(t) is not TensorSpec:
            return function_type  # structures have names of their own
        parameters.append(P(f"arg_{i}", P.POSITIONAL_ONLY))
        types.append(TensorSpec(t.shape, t.dtype, t.name or f"tensor_{i}"))
    return FunctionType(Parameters.of(parameters), types, function_type.output)


class WrappedFunction(ConcreteFunction):
    """A function traced once, which runs what its results wait for and nothing else.

    It holds the variables that it made.
    """

    _made = ()
    _gives = None  # how many tensors; None: all that the traced function returned

    @property
    def inputs(self):
        """A list of the tensors of the graph that it takes, captures last."""
        return self._core.body()[1]

    @property
    def outputs(self):
        """A list of the tensors of the graph that it gives."""
        return self._core.body()[2][: self._gives]

    @property
    def variables(self):
        """The variables that it reads or changes, and those that it made: a list."""
        found = list(self._made)
        known = {v.handle._id for v in found}
        found += [v for v in self.graph.variables if v.handle._id not in known]
        return found

    def prune(self, feeds, fetches, name=None, input_signature=None):
        """The WrappedFunction of a part of the graph: of `feeds`, tensors of this one's
        graph, that gives `fetches`, a structure of tensors and operations (which give
        None). Both may be names."""
        pruned = prune(self.graph, feeds, fetches, name, input_signature)
        pruned._made = self._made
        return pruned


def prune(graph, feeds, fetches, name=None, input_signature=None):
    """The WrappedFunction of a part of a graph: of `feeds`, tensors of it, that gives
    `fetches`, a structure of tensors and operations (which give None). Both may be
    names. A tensor that is fed is the only output of its operation."""
    feeds = [graph.as_graph_element(x) for x in nest.flatten(feeds)]
    for x in feeds:
        if len(x.op.outputs) != 1:
            raise NotImplementedError(
                f"prune: {x.name} is one of several outputs; functions of such tensors "
                "are not supported"
            )
    if input_signature is None:
        input_signature = [TensorSpec(x.shape, x.dtype) for x in feeds]
    wanted = nest.map_structure(graph.as_graph_element, fetches)
    effects = [x for x in nest.flatten(wanted) if isinstance(x, Operation)]
    with graph.as_default():
        values = nest.map_structure(lambda x: None if x in effects else x, wanted)
        results = func_graph.Results(values, fetches)
        tensors = list(results.tensors)
        if effects:
            with graph.control_dependencies(effects):
                tensors.append(conversion.convert_to_tensor(True))
    name = name or "pruned"
    core = _headrace.make_concrete(
        graph._core,
        _headrace.new_function_name(f"__inference_{name}"),
        feeds,
        tensors,
        [v.handle for v in graph.trainable_variables],
        keep_effects=False,
    )
    parameters, types = _plain(lambda *args: None, input_signature)
    function_type = FunctionType(parameters, types)
    pruned = WrappedFunction(core, graph, function_type, results, name)
    pruned._gives = len(results.tensors)
    return pruned


def wrap_function(fn, signature, name=None):
    """tf.compat.v1.wrap_function: traces `fn`, made for graphs of sessions, for
    TensorSpecs; variables that it makes belong to the WrappedFunction returned.

    Unlike in tf.function effects run only where results wait for them.
    """
    parameters, types = _plain(fn, signature)
    creation = tracing.Creation(True)
    name = name or getattr(fn, "__name__", "wrapped").strip("<>")
    traced = tracing.trace(
        fn, parameters, types, name, creation, wrap_errors=False, keeps_effects=False
    )
    traced.__class__ = WrappedFunction
    traced._function_type = _by_position(traced._function_type)
    traced._made = tuple(creation.made)
    return traced
