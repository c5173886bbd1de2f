"""The graph of a function being traced."""

import weakref

from headrace._load import _headrace, raw
from headrace.context import stack
from headrace.context.properties import read_only
from headrace.framework import conversion, nest, type_spec, variables
from headrace.graph.graph import Graph
from headrace.graph.graph_keys import GraphKeys
from headrace.graph.operation import Operation

_OF_VARIABLES = (
    GraphKeys.GLOBAL_VARIABLES,
    GraphKeys.LOCAL_VARIABLES,
    GraphKeys.TRAINABLE_VARIABLES,
)


class FuncGraph(Graph):
    """A function's body: arguments, results, and what it captured from outside."""

    building_function = True
    keeps_effects = True
    is_branch = False

    def __init__(self, name, outer_graph=None, core=None):
        super().__init__(core)
        self.name = name
        outer = stack.current() if outer_graph is None else outer_graph
        self._outer = None if outer is None else weakref.ref(outer)
        self.inputs = []
        self.outputs = []
        self.structured_outputs = None
        self.variable_arguments = {}  # what stands for them, by their alias_id
        self.outer_controls = []  # what a call has to wait for; of branches and loops
        self._function_type = None
        self.turn = None  # (the name of a loop, its turn) of bodies that know it
        if outer is not None:
            self._copy_collections(outer)

    def _copy_collections(self, outer):
        """Collections of the graph around it, of which those of variables stay common."""
        for key, values in outer._collections.items():
            if not str(key).startswith("__"):  # what the outer graph alone has
                self._collections[key] = list(values)
        self._share_collections(outer)

    def _share_collections(self, outer):
        for key in _OF_VARIABLES:
            self._collections[key] = outer.get_collection_ref(key)

    def share_variables(self, outer):
        """Of the body of a branch or loop: variables are looked up by name and listed
        as in the graph around it."""
        self._named_variables = outer._named_variables
        self._scope_names_used = outer._scope_names_used
        self._variable_scope = outer._variable_scope
        self._share_collections(outer)

    is_control_flow_graph = read_only(
        "is_branch", "Whether it is the body of a branch or loop."
    )

    def _waits_outside(self, x):
        if not self.is_branch:
            return False
        if not isinstance(x, (Operation, _headrace.SymbolicTensor)):
            return False
        if x.graph is self:
            return False
        self.outer_controls.append(x)
        return True

    @property
    def outer_graph(self):
        """The graph that this one's is made inside of: at last the global default one."""
        graph = None if self._outer is None else self._outer()
        return stack.thread_graph() if graph is None else graph

    @property
    def structured_input_signature(self):
        return None if self._function_type is None else self._function_type.structured()

    @property
    def captures(self):
        """(outer tensor, inner tensor) of all captures."""
        return [tuple(pair) for pair in self._core.captures()]

    @property
    def external_captures(self):
        return [outer for outer, _ in self._core.captures()]

    @property
    def internal_captures(self):
        return [inner for _, inner in self._core.captures()]

    def capture(self, tensor, name=None, shape=None):
        """The tensor of this graph that stands for an outer one."""
        return self._core.capture(conversion.convert_to_tensor(tensor))

    def capture_call_time_value(self, closure, spec, key=None):
        """Tensors of what `closure()` gives whenever the tf.function is called whose
        graph is around this one."""
        return self.outer_graph.capture_call_time_value(closure, spec, key)

    @property
    def variables(self):
        found = []
        for outer in self.external_captures:
            variable = variables.of_handle(outer)
            if variable is not None:
                found.append(variable)
        return tuple(found)

    @property
    def trainable_variables(self):
        return tuple(v for v in self.variables if v.trainable)

    def __str__(self):
        return f"FuncGraph(name={self.name}, id={id(self)})"


class Results:
    """A function's return value, taken apart into tensors of its graph."""

    def __init__(self, value, describe):
        self._describe = describe
        self.tensors = []
        self.structure = self._take(value)
        self.native = self._native(self.structure)

    @classmethod
    def of_specs(cls, specs):
        """The results of a function that was traced elsewhere, by their specs."""
        made = cls.__new__(cls)
        made.tensors = []  # TensorSpecs
        made.structure = made._numbered(specs)
        made.native = made._native(made.structure)
        return made

    def _numbered(self, spec):
        if spec is None or isinstance(spec, type_spec.NoneTensorSpec):
            return None
        if hasattr(spec, "_component_specs"):
            parts = type_spec.parts_of(spec)
            return _Parts(spec, [self._numbered(p) for p in parts])
        if nest.is_nested(spec):
            return nest.rebuild(spec, [self._numbered(s) for s in nest.children(spec)])
        self.tensors.append(spec)
        return len(self.tensors) - 1

    def _take(self, value):
        """The structure with leaf numbers for tensors, emitting identities."""
        if value is None:
            return None
        if isinstance(value, Operation):
            self._refuse(value)
        if getattr(type(value), "_is_composite_tensor", False):
            return _Parts(value, [self._take(p) for p in value._components()])
        if nest.is_nested(value):
            if hasattr(value, "_returned_as"):  # a list of converted code
                value = value._returned_as()
            items = [self._take(v) for v in nest.children(value)]
            return nest.rebuild(value, items)
        if isinstance(value, _headrace.VariableBase):
            value = value._read()
        elif not isinstance(value, _headrace.Tensor):
            if callable(value) or isinstance(value, type):
                self._refuse(value)
            try:
                value = conversion.convert_to_tensor(value)
            except (TypeError, ValueError):
                self._refuse(value)
        self.tensors.append(raw.Identity(value))
        return len(self.tensors) - 1

    def _refuse(self, value):
        raise TypeError(
            "To be compatible with tf.function, Python functions must return zero or "
            "more Tensors or ExtensionTypes or None values; in compilation of "
            f"{self._describe}, found return value of type {type(value).__name__}, "
            "which is not a Tensor or ExtensionType."
        )

    def _native(self, s):
        """True when the native code can rebuild the structure by itself."""
        if s is None or type(s) is int:
            return True
        if type(s) in (list, tuple):
            return all(map(self._native, s))
        return type(s) is dict and all(map(self._native, s.values()))


class _Parts:
    """A composite result: how to make it of its parts."""

    def __init__(self, template, parts):
        self.template, self.parts = template, parts


def rebuild(structure, tensors):
    """The structure with leaf numbers replaced by tensors."""
    if structure is None:
        return None
    if isinstance(structure, int):
        return tensors[structure]
    if isinstance(structure, _Parts):
        parts = [rebuild(p, tensors) for p in structure.parts]
        return type_spec.of_parts(structure.template, parts)
    items = [rebuild(s, tensors) for s in nest.children(structure)]
    return nest.rebuild(structure, items)
