"""tf.Graph."""

import contextlib
import re
import threading
import weakref

from headrace._load import _headrace
from headrace.context import stack
from headrace.context.properties import read_only
from headrace.framework import conversion, devices, scopes
from headrace.framework.support import protos
from headrace.graph.operation import Operation

_graphs = weakref.WeakValueDictionary()  # id of the native graph -> Graph


def of(tensor):
    """The Graph of a symbolic tensor."""
    graph = _graphs.get(_headrace.graph_id(tensor))
    if graph is None:
        raise ValueError(f"The graph of {tensor!r} is gone")
    return graph


def _operation_of(x):
    """The operation of a tensor, variable or of slices."""
    if isinstance(x, Operation):
        return x
    if hasattr(x, "_ref"):
        return x.op
    if isinstance(x, _headrace.VariableBase):
        x = x.handle
    if getattr(type(x), "_is_composite_tensor", False):
        x = x._components()[0]
    if not isinstance(x, _headrace.SymbolicTensor):
        x = conversion.convert_to_tensor(x)
    return x.op


class _Settling(threading.local):
    graphs = 0  # of this thread whose new nodes are looked at one by one


_settling = _Settling()


def settle_new():
    """Has device functions and the like see what the operation before made, in the
    graph that is built."""
    graph = stack.current()
    if graph is not None:
        graph._settle_new()


def _check_name(what, name):
    if not isinstance(name, str):
        kind = type(name).__name__
        raise TypeError(f"{what} names are strings (or similar), not {kind}.")


class Graph:
    """Operations that are recorded, to be run by a session or called as a function."""

    building_function = False
    # Whether it shows what eager code would run, which knows no constants of graphs.
    shows_eager = False
    is_control_flow_graph = False  # whether it is the body of a branch or loop
    keeps_effects = False  # whether effects that nothing waits for run, too
    # Identities of other graphs whose tensors code that builds this one may read.
    stands_in = frozenset()
    _function = None  # the native function that this is the graph of

    def __init__(self, core=None):
        """`core`: the native graph that it shows, made where there is none."""
        self._core = core or _headrace.GraphCore(self.building_function)
        self._operations = {}
        self._collections = {}
        self._seed = None
        self._op_seeds = 0
        self._variable_scope = None
        self._named_variables = {}  # of get_variable
        self._scope_names_used = {}  # of variable_scope
        self._variables = []
        self._bodies = []  # graphs of branches and loops, for messages
        self._gradients = set()  # of eager/named_gradients, that nodes name
        self._gradient_overrides = {}
        self._flow_context = None  # of control_flow/flow_contexts.py
        self._devices = ()  # of device contexts: specs, functions; innermost first
        self._devices_around = ()  # those around a colocation
        self._colocated_at = ""  # where that is, whatever contexts inside say
        self._container = ""  # of the state of new nodes
        self._settled_until = None  # the first new node that is looked at by itself
        self._node_attrs = {}  # what nodes get beside their own attributes
        self._saving_errors = []  # why no SavedModel can hold it
        self._session_handles = {}  # of get_session_handle: dtypes by tensor
        self._handle_nodes = {}  # of v1/session_tensors.py
        _graphs[self._core.id] = self
        if not self.building_function:  # tensors hold their graph, as programs expect
            number = self._core.id
            _headrace.set_graph_owner(number, weakref.ref(self))
            gone = weakref.finalize(self, _headrace.set_graph_owner, number, None)
            gone.atexit = False

    def mark_as_unsaveable(self, error_message):
        """Says why no SavedModel can hold the graph, nor those that it is traced for."""
        for graph in {id(g): g for g in (self, *stack.entered()) if g}.values():
            graph._saving_errors.append(error_message)

    @property
    def saveable(self):
        """Whether nobody marked it as unsaveable."""
        return not self._saving_errors

    def _operation(self, node):
        op = self._operations.get(node.id)
        if op is None:
            op = self._operations[node.id] = Operation(self, node)
        return op

    def _last_operation(self):
        """The one that was added last."""
        return self._operation(self._core.node(self._core.num_nodes - 1))

    def as_default(self):
        """A context in which operations are recorded here."""
        return stack.entering(self)

    # --- finding ---

    def get_operations(self):
        """All operations, in the order in which they were made."""
        return [
            self._operation(self._core.node(i)) for i in range(self._core.num_nodes)
        ]

    operations = property(get_operations, doc="The same as get_operations().")

    def num_operations(self):
        """How many operations there are."""
        return self._core.num_nodes

    @property
    def graph_def_versions(self):
        """The VersionDef that as_graph_def() has."""
        return self.as_graph_def().versions

    def get_operation_by_name(self, name):
        """The operation of that name; KeyError where there is none."""
        _check_name("Operation", name)
        return self.as_graph_element(name, allow_tensor=False, allow_operation=True)

    def get_tensor_by_name(self, name):
        """The tensor "operation:output"; KeyError where there is none."""
        _check_name("Tensor", name)
        return self.as_graph_element(name, allow_tensor=True, allow_operation=False)

    def as_graph_element(self, obj, allow_tensor=True, allow_operation=True):
        """The tensor or operation that `obj` (one of them, or a name) stands for."""
        if allow_tensor and allow_operation:
            types = "Tensor or Operation"
        elif allow_tensor:
            types = "Tensor"
        elif allow_operation:
            types = "Operation"
        else:
            raise ValueError("allow_tensor and allow_operation can't both be False.")
        convert = getattr(obj, "_as_graph_element", None)
        if convert is not None:
            obj = convert()
        if isinstance(obj, str):
            return self._named(obj, allow_tensor, allow_operation)
        if isinstance(obj, _headrace.VariableBase) and allow_tensor:
            return obj._graph_element()
        if isinstance(obj, _headrace.SymbolicTensor) and allow_tensor:
            if _headrace.graph_id(obj) != self._core.id:
                raise ValueError(f"Tensor {obj} is not an element of this graph.")
            return obj
        if isinstance(obj, Operation) and allow_operation:
            if obj.graph is not self:
                raise ValueError(f"Operation {obj!r} is not an element of this graph.")
            return obj
        raise TypeError(f"Can not convert a {type(obj).__name__} into a {types}.")

    def _named(self, name, allow_tensor, allow_operation):
        if ":" in name and allow_tensor:
            op_name, _, index = name.rpartition(":")
            if not op_name or not index.isdigit():
                raise ValueError(
                    f"The name {name!r} looks a like a Tensor name, but is not a valid "
                    'one. Tensor names must be of the form "<op_name>:<output_index>".'
                )
            node = self._core.find(op_name)
            if node is None:
                raise KeyError(
                    f"The name {name!r} refers to a Tensor which does not exist. The "
                    f"operation, {op_name!r}, does not exist in the graph."
                )
            if int(index) >= node.num_outputs:
                raise KeyError(
                    f"The name {name!r} refers to a Tensor which does not exist. The "
                    f"operation, {op_name!r}, exists but only has "
                    f"{node.num_outputs} outputs."
                )
            return node.output(int(index))
        if ":" in name and allow_operation:
            raise ValueError(
                f"Name {name!r} appears to refer to a Tensor, not a Operation."
            )
        if not allow_operation:
            found = self._core.find(name) is not None
            is_one = "refers to an" if found else "looks like an (invalid)"
            kind = "Operation" if found else "Operation name"
            raise ValueError(
                f"The name {name!r} {is_one} {kind}, not a Tensor. Tensor names must be "
                'of the form "<op_name>:<output_index>".'
            )
        node = self._core.find(name)
        if node is None:
            raise KeyError(
                f"The name {name!r} refers to an Operation not in the graph."
            )
        return self._operation(node)

    # --- naming and placing ---

    def unique_name(self, name, mark_as_used=True):
        """A name that nothing has, made of `name` in the current scope."""
        return self._core.unique_name(name, mark_as_used)

    @contextlib.contextmanager
    def name_scope(self, name):
        """Names of operations made inside start with `name/`."""
        with stack.entering(self):
            old = scopes.enter(name)
        try:
            yield self._core.scope
        finally:
            scopes.leave(old)

    def get_name_scope(self):
        """The current scope, without a slash behind it."""
        return self._core.scope.rstrip("/")

    @contextlib.contextmanager
    def device(self, device_name_or_function):
        """Operations made inside are placed there: a name or DeviceSpec, whose parts
        stand before those of contexts around, a function of the operation that gives
        one, or None: contexts around say nothing.

        ValueError for what is no name.
        """
        old = self._devices, self._core.device
        entry = device_name_or_function
        if not callable(entry) and entry is not None:
            entry = devices.spec_of(entry)
        self._settle_new()
        self._devices = () if entry is None else (entry, *old[0])
        self._use_devices()
        try:
            yield
        finally:
            self._settle_new()
            self._devices = old[0]
            self._use_devices()
            self._core.device = old[1]

    def _stand_on_device(self, outer):
        """Operations are placed as those of the graph around, but by functions."""
        self._devices = tuple(e for e in outer._devices if not callable(e))
        self._core.device = outer._core.device

    def _use_devices(self):
        """Where a function or container has a say, new operations are settled one by
        one."""
        by_function = any(callable(entry) for entry in self._devices)
        settles = by_function or bool(self._container)
        if settles != (self._settled_until is not None):
            self._settled_until = self._core.num_nodes if settles else None
            _settling.graphs += 1 if settles else -1
            _headrace.settle_new_nodes(_settling.graphs > 0)
        device = "" if by_function else devices.merged("", self._devices)
        self._core.device = self._colocated_at or device

    def _settle_new(self):
        if self._settled_until is None:
            return
        begin, self._settled_until = self._settled_until, self._core.num_nodes
        by_function = any(callable(entry) for entry in self._devices)
        for i in range(begin, self._settled_until):
            node = self._core.node(i)
            if self._container:
                node.set_container(self._container)
            if by_function:
                op = self._operation(node)
                if op.type == "ReadVariableOp":  # is where its variable is
                    continue
                device, decided = op.device, self._device_of(op)
                # Those that are placed with others go where these are.
                alone = set(op.colocation_groups()) == {b"loc:@" + op.name.encode()}
                node.set_device(decided if alone else device)

    def _device_of(self, op):
        """What the contexts say of a new operation, the innermost first."""
        device = op.device
        for entry in self._devices:
            if not callable(entry):
                device = devices.merged(device, (entry,))
                continue
            op._set_device(device)
            device = entry(op)
            if isinstance(device, devices.DeviceSpec):
                device = device.to_string()
            elif not isinstance(device, str):
                raise TypeError(f"Expected binary or unicode string, got {device!r}")
        return device

    @contextlib.contextmanager
    def container(self, container_name):
        """The state of operations made inside is in the container of that name, which
        the context gives, unless they name another."""
        self._settle_new()
        old, self._container = self._container, container_name
        self._use_devices()
        try:
            yield container_name
        finally:
            self._settle_new()
            self._container = old
            self._use_devices()

    @contextlib.contextmanager
    def control_dependencies(self, control_inputs):
        """Operations made inside run after `control_inputs`; None: after nothing, and
        outside of branches and loops of TensorFlow 1."""
        old = self._core.control_inputs()
        flow = _headrace.flow_context(self._core), self._flow_context
        if control_inputs is None:
            new = []
            _headrace.set_flow_context(self._core, None, False)
            self._flow_context = None
        else:
            new = old + [n for x in control_inputs if (n := self._control_node(x))]
        self._core.set_control_inputs(new)
        try:
            yield
        finally:
            self._core.set_control_inputs(old)
            _headrace.set_flow_context(self._core, *flow[0])
            self._flow_context = flow[1]

    def _control_node(self, x):
        """The node to wait for; None where the value is no node of this graph."""
        if isinstance(x, _headrace.EagerTensor) or x is None:
            return None
        waited_for = getattr(type(x), "_waited_for", None)
        if waited_for is not None:
            x = waited_for(x)
        if self._waits_outside(x):
            return None
        if isinstance(x, _headrace.SymbolicTensor):
            if _headrace.graph_id(x) != self._core.id:
                return None
            return _headrace.node_of(x)
        if getattr(type(x), "_is_composite_tensor", False):
            return self._control_node(x._components()[0])
        if self.building_function and isinstance(x, _headrace.VariableBase):
            return None
        element = self.as_graph_element(x)
        return (
            element._node
            if isinstance(element, Operation)
            else _headrace.node_of(element)
        )

    def _waits_outside(self, x):
        """Whether `x` is of a graph around this one, where what calls it waits then."""
        return False

    @contextlib.contextmanager
    def gradient_override_map(self, op_type_map):
        """Operations made inside have the gradients that RegisterGradient named."""
        if not isinstance(op_type_map, dict) or not all(
            isinstance(x, str) for pair in op_type_map.items() for x in pair
        ):
            raise TypeError(
                "op_type_map must be a dictionary mapping strings to strings"
            )
        old = self._gradient_overrides
        self._override_gradients({**old, **op_type_map})
        try:
            yield
        finally:
            self._override_gradients(old)

    def _override_gradients(self, names):
        self._gradient_overrides = names
        self._core.override_gradients(names)

    @contextlib.contextmanager
    def colocate_with(self, op, ignore_existing=False):
        """Operations made inside are placed where `op` (an operation, tensor or
        variable) is; also with those of contexts around, unless `ignore_existing`.
        None, with ignore_existing: with nothing, nor where contexts around say."""
        if op is None and not ignore_existing:
            raise ValueError(
                "Trying to reset colocation (op is None) but ignore_existing is not "
                "True"
            )
        self._settle_new()
        groups = [] if ignore_existing else list(self._node_attrs.get("_class", []))
        if op is not None:
            op = _operation_of(op)
            for group in op.colocation_groups():
                if group.decode() not in groups:
                    groups.append(group.decode())
        with (
            self._exactly_at("" if op is None else op.device),
            self._attributes({"_class": sorted(groups) or None}),
        ):
            yield

    @contextlib.contextmanager
    def _exactly_at(self, device):
        """Operations made inside are placed on that device, whatever contexts around say;
        None: as these say."""
        self._settle_new()
        old = self._devices, self._core.device, self._devices_around
        place = self._colocated_at
        if device is not None:
            self._devices_around = self._devices or self._devices_around
            self._devices = ()
            self._colocated_at = device
            self._use_devices()
            self._core.device = device
        try:
            yield
        finally:
            self._settle_new()
            self._devices, device, self._devices_around = old
            self._colocated_at = place
            self._use_devices()
            self._core.device = device

    @contextlib.contextmanager
    def _shown_to_devices_around(self):
        """Functions of contexts around a colocation are asked for what is made inside,
        too, though what they say does not count: upstream makes variables so, and
        `replica_device_setter` counts those that lie with others."""
        begin = self._core.num_nodes
        yield
        functions = [e for e in self._devices_around if callable(e)]
        if self._devices or not functions:
            return
        for i in range(begin, self._core.num_nodes):
            op = self._operation(self._core.node(i))
            device = op.device
            for function in functions:
                op._set_device("")
                function(op)
            op._set_device(device)

    @contextlib.contextmanager
    def _attributes(self, attrs):
        """Operations made inside get these attributes, names with an underscore
        before them; None: they do not have it."""
        old = self._node_attrs
        new = {**old, **attrs}
        self._set_node_attrs({k: v for k, v in new.items() if v is not None})
        try:
            yield
        finally:
            self._set_node_attrs(old)

    def _whereabouts(self):
        """What contexts around say of operations made now; for _go_to()."""
        self._settle_new()
        core = self._core
        inputs = core.control_inputs()
        devices = self._devices, self._devices_around, self._colocated_at, core.device
        scopes = self._variable_scope, dict(self._scope_names_used)
        return devices, core.scope, inputs, self._node_attrs, scopes

    def _go_to(self, whereabouts):
        """Has operations made from now on be where _whereabouts() was asked."""
        self._settle_new()
        places, scope, inputs, attrs, scopes = whereabouts
        self._devices, self._devices_around, self._colocated_at, device = places
        self._use_devices()
        self._core.device, self._core.scope = device, scope
        self._core.set_control_inputs(inputs)
        self._set_node_attrs(attrs)
        self._variable_scope, names = scopes
        self._scope_names_used.clear()  # graphs of functions share it
        self._scope_names_used.update(names)

    def _set_node_attrs(self, attrs):
        self._node_attrs = attrs
        self._core.set_node_attrs(attrs)

    # --- collections ---

    @property
    def collections(self):
        """The keys of all collections."""
        return list(self._collections)

    def add_to_collection(self, name, value):
        """Puts a value at the end of a collection."""
        self._check_not_finalized()
        self._collections.setdefault(name, []).append(value)

    def add_to_collections(self, names, value):
        """Puts a value at the end of each of several collections."""
        names = (names,) if isinstance(names, str) else dict.fromkeys(names)
        for name in names:
            self.add_to_collection(name, value)

    def get_collection_ref(self, name):
        """The collection's own list, made where there is none."""
        return self._collections.setdefault(name, [])

    def get_collection(self, name, scope=None):
        """A copy of the collection; with `scope`, of what has a name that matches."""
        found = self._collections.get(name, [])
        if scope is None:
            return list(found)
        pattern = re.compile(scope)
        return [x for x in found if hasattr(x, "name") and pattern.match(x.name)]

    def get_all_collection_keys(self):
        """The keys of all collections that are strings."""
        return [k for k in self._collections if isinstance(k, str)]

    def clear_collection(self, name):
        """Drops a collection."""
        self._check_not_finalized()
        self._collections.pop(name, None)

    # --- state ---

    version = read_only("_core.num_nodes", "How many operations there are.")
    finalized = read_only(
        "_core.finalized", "Whether operations may no longer be added."
    )

    def finalize(self):
        """No operation may be added from now on (RuntimeError)."""
        self._core.finalized = True

    def _unsafe_unfinalize(self):
        self._core.finalized = False

    def _check_not_finalized(self):
        if self.finalized:
            raise RuntimeError("Graph is finalized and cannot be modified.")

    @property
    def seed(self):
        """The graph's seed, or None."""
        return self._seed

    @seed.setter
    def seed(self, seed):
        self._seed = seed
        self._core.set_seed(seed)

    def _next_op_seed(self):
        """The seed of the next random operation: how many were given out so far."""
        self._op_seeds += 1
        return self._op_seeds - 1

    def prevent_feeding(self, tensor):
        """No run may feed the tensor from now on."""
        self._check_not_finalized()
        self.get_collection_ref("__unfeedable").append(id(tensor))

    def prevent_fetching(self, op):
        """No run may fetch the operation from now on."""
        self._check_not_finalized()
        self.get_collection_ref("__unfetchable").append(op)

    def is_feedable(self, tensor):
        """Whether runs may feed the tensor."""
        return id(tensor) not in self._collections.get(
            "__unfeedable", []
        ) and not _headrace.is_in_loop(self._core, _headrace.node_of(tensor))

    def is_fetchable(self, tensor_or_op):
        """Whether runs may fetch the tensor or operation."""
        is_operation = isinstance(tensor_or_op, Operation)
        op = tensor_or_op._node if is_operation else _headrace.node_of(tensor_or_op)
        return self._is_fetchable(op)

    def _is_fetchable(self, node):
        """is_fetchable of a node. (It makes no Operation: those and their graph hold
        each other, and a graph that only runs goes with its session.)"""
        unfetchable = self._collections.get("__unfetchable", [])
        return (
            all(op._node.id != node.id for op in unfetchable)
            and _headrace.output_flow_context_of(self._core, node) is None
        )

    def switch_to_thread_local(self):
        """Graphs are entered per thread here in any case."""

    def as_graph_def(
        self, from_version=None, add_shapes=False, use_pybind11_proto=False
    ):
        """The graph as a GraphDef proto.

        That of a traced function says by control inputs in which order its effects
        happen, and its results wait for all of them.
        """
        if from_version is not None:
            raise NotImplementedError("as_graph_def: from_version is not supported")
        proto = protos.GraphDef()
        text = _headrace.export_graph(self._core, bool(add_shapes), self._function)
        proto.ParseFromString(text)
        return proto
