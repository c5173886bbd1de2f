"""tf.saved_model.save: what the objects of a model are, for C++ to write."""

import contextlib
import functools
import gc
import inspect
import os

from headrace._load import _headrace
from headrace.context import sessions, stack
from headrace.elements import structured
from headrace.framework import data_structures, dtypes, variables
from headrace.framework.asset import Asset
from headrace.framework.settings import logging, versions
from headrace.framework.trackable import (
    AutoTrackable,
    Trackable,
    TrackableConstant,
    as_trackable,
    is_trackable,
    node_of,
    saved_as,
)
from headrace.framework.type_spec import TensorSpec
from headrace.function.concrete import ConcreteFunction
from headrace.function.function_type import P
from headrace.function.polymorphic import Function, checked_options
from headrace.function.restored import RestoredConcreteFunction
from headrace.saved_model import signatures as signatures_
from headrace.saved_model.constants import SERVING
from headrace.saved_model.objects import SavedResource, SignatureMap
from headrace.saved_model.options import SaveOptions

_RESERVED = "signatures"
_OF_RESOURCE = checked_options(input_signature=[], autograph=False)
_FUNCTIONS = (Function, ConcreteFunction)
_NO_DEPENDENCIES = Trackable._deserialization_dependencies


def save(obj, export_dir, signatures=None, options=None):
    """Writes a model into a folder, so that `tf.saved_model.load`, servers and other
    programs run its functions without its Python code.

    `obj`, a tf.Module or another trackable object, is saved with all that it leads to:
    variables, tables, assets, tf.functions with the traces that they have. `signatures`,
    a tf.function with an input_signature, a concrete function or a dictionary of them,
    are what servers call; without them the only function of `obj` that has an
    input_signature. Raises ValueError for what cannot be saved or be a signature,
    AssertionError where functions use variables that `obj` does not lead to.
    Of variables of a graph the values are saved that they have in the default session.
    """
    options = options or SaveOptions()
    if stack.inside_function():
        raise AssertionError(
            "tf.saved_model.save is not supported inside a traced @tf.function. Move the "
            "call to the outer eagerly-executed context."
        )
    if not is_trackable(obj):
        raise ValueError(
            "Expected an object of type `Trackable`, such as `tf.Module` or a subclass of "
            f"the `Trackable` class, for export. Got {obj} with type {type(obj)}."
        )
    # Functions are traced for programs that run operations at once, also from a graph.
    with stack.entering(None):
        _Saver(obj, signatures, options).write(os.fspath(export_dir))


def _functions_of(obj):
    """(name, function) of the attributes of an object that are functions, those of its
    class and what properties of programs' classes give included."""
    for name in dir(obj):
        static = inspect.getattr_static(obj, name, None)
        if isinstance(static, _FUNCTIONS):
            yield name, getattr(obj, name)
        elif _is_programs_property(static):
            try:
                found = getattr(obj, name)
            except Exception:  # whatever a property raises, upstream passes it over
                continue
            if isinstance(found, _FUNCTIONS):
                yield name, found


def _is_programs_property(static):
    if isinstance(static, property):
        getter = static.fget
    elif isinstance(static, functools.cached_property):
        getter = static.func
    else:
        return False
    return not (getattr(getter, "__module__", None) or "").startswith("headrace.")


def _children_of(obj):
    """(name, child) of what an object leads to."""
    if isinstance(obj, (*_FUNCTIONS, _headrace.VariableBase)):
        return []
    if hasattr(type(obj), "_reference_node"):
        raise TypeError(
            f"tf.saved_model.save: operations take {obj!r} by reference, which objects of "
            "a SavedModel cannot be; make it with use_resource=True"
        )
    if isinstance(obj, SignatureMap):
        return list(obj.items())
    found = {}
    if isinstance(obj, AutoTrackable):
        found.update(_functions_of(obj))
    for name, child in obj._trackable_children(save_type="savedmodel").items():
        found.setdefault(name, as_trackable(child))
    if hasattr(obj, "_model_children"):  # those that checkpoints do without
        found.update(obj._model_children())
    return list(found.items())


class _Saver:
    """One model on its way into a folder."""

    def __init__(self, root, signatures, options):
        self._writer = _headrace.ModelWriter()
        self._root, self._options = root, options
        self._ids = {}  # id of an object -> its number
        self._known = set()  # ids of handles that objects have
        self._held = []  # variables whose values a session has
        self._takes_session = False
        self._objects = []  # by number
        self._edges = []  # (number, name, child)
        self._slots = {}  # (number, variable, name, slot)
        self._later = []  # what is done once all objects have numbers
        children = [(n, c) for n, c in _children_of(root) if n != _RESERVED]
        self._check_reserved(root)
        if signatures is None:
            wrappers = signatures_.found_among(children)
        else:
            wrappers = signatures_.canonical(signatures)
        functions = {key: w.function for key, w in wrappers.items()}
        self._root_children = [*children, (_RESERVED, SignatureMap(functions))]
        self._walk()
        self._check_dependencies()
        for wrapper in wrappers.values():
            self._check_captures(wrapper.function, _of_signature)
        for key, wrapper in wrappers.items():
            self._later.append(
                lambda key=key, w=wrapper: self._writer.add_signature(
                    key, w.function._core, w.inputs, w.outputs, w.defaults
                )
            )

    @staticmethod
    def _check_reserved(root):
        shadowing = getattr(root, _RESERVED, None)
        if shadowing is not None and not isinstance(shadowing, SignatureMap):
            raise ValueError(
                f"Exporting an object {root} which has an attribute named "
                f"'{_RESERVED}'. This is a reserved attribute used to store SavedModel "
                "signatures in objects which come from `tf.saved_model.load`. Delete this "
                f"attribute (e.g. `del obj.{_RESERVED}`) before saving if this shadowing "
                "is acceptable."
            )

    def write(self, folder):
        for number, name, child in self._edges:
            self._writer.add_child(number, name, child)
        for row in self._slots:
            self._writer.add_slot(*row)
        for do in self._later:
            do()
        if self._options.experimental_custom_gradients:
            for warning in self._writer.add_gradients():
                logging.get_logger().warning(warning)
        tags = [SERVING, *(self._options.extra_tags or ())]
        aliases = [
            (c.name.decode(), alias)
            for alias, function in self._options.function_aliases.items()
            for c in _aliased(function)
        ]
        session = self._session(folder) if self._takes_session else None
        graph = session.graph.as_default() if session else contextlib.nullcontext()
        with graph, saved_as(self._found_children(), session, self._held):
            self._writer.write(
                folder,
                node_of(self._root),
                tags,
                versions.VERSION,
                versions.GIT_VERSION,
                aliases,
                self._options.experimental_image_format,
            )

    @staticmethod
    def _session(folder):
        session = sessions.get_default_session()
        if session is None:
            prefix = os.path.join(folder, "variables", "variables")
            raise RuntimeError(
                f'Unable to save checkpoint to "{prefix}" in graph mode without a default '
                "session. Please use `with tf.Session():` to create a session."
            )
        return session

    def _found_children(self):
        """{id of an object: its children by name}, as they were walked over."""
        found = {id(obj): {} for obj in self._objects}
        for number, name, child in self._edges:
            found[id(self._objects[number])][name] = self._objects[child]
        return found

    # --- objects ---

    def _walk(self):
        self._number(self._root)
        at = 0
        while at < len(self._objects):
            obj = self._objects[at]
            children = self._root_children if at == 0 else self._all_children(at, obj)
            for name, child in children:
                if not self._is_saved(child):
                    continue
                self._edges.append((at, name, self._number(child)))
            at += 1
            if at == len(self._objects):
                self._walk_slots()

    def _walk_slots(self):
        """Numbers what optimizers keep for variables that the model has."""
        for number, obj in enumerate(list(self._objects)):
            if isinstance(obj, (*_FUNCTIONS, _headrace.VariableBase)):
                continue
            for variable, name, slot in node_of(obj).slots():
                if id(variable) in self._ids and slot is not None:
                    row = number, self._ids[id(variable)], name, self._number(slot)
                    self._slots.setdefault(row)

    def _all_children(self, number, obj):
        children = _children_of(obj)
        if self._is_resource(obj):
            children = self._with_resource_functions(number, obj, children)
        return children

    def _number(self, obj):
        known = self._ids.get(id(obj))
        if known is None:
            known = self._ids[id(obj)] = self._add(obj)
            self._objects.append(obj)
        return known

    def _add(self, obj):
        w = self._writer
        # A strategy's variable is saved as one of its copies, one in parts as a whole.
        if hasattr(obj, "_saved_variable"):
            return self._add_variable(obj._saved_variable())
        if isinstance(obj, _headrace.VariableBase):
            return self._add_variable(obj)
        if getattr(obj, "_should_act_as_resource_variable", False):
            return self._add_variable(_stood_for(obj, self._options))
        if isinstance(obj, Function):
            number = w.add_function_object()
            self._later.append(lambda: self._add_function(number, obj))
            return number
        if isinstance(obj, ConcreteFunction):
            number = w.add_bare_function()
            self._later.append(lambda: self._add_bare(number, obj))
            return number
        if isinstance(obj, Asset):
            return w.add_asset(obj.asset_path)
        if isinstance(obj, TrackableConstant):
            return w.add_constant(obj.value)
        if self._is_resource(obj):
            self._know(obj.resource_handle)
            return w.add_resource(obj.resource_handle)
        return w.add_user_object(_identifier(obj))

    def _know(self, handle):
        """An object of the model has the handle, which functions may capture."""
        self._known.add(handle._id)
        self._takes_session = self._takes_session or _graph_of(handle) is not None

    def _add_variable(self, v):
        self._know(v.handle)
        if _graph_of(v.handle) is not None:
            self._held.append(v)
        name = v.name.partition(":")[0]
        sync, aggregation = v.synchronization.value, v.aggregation.value
        policy = self._options.experimental_variable_policy
        device = v.device if policy._save_variable_devices() else ""
        return self._writer.add_variable(v, name, sync, aggregation, device)

    def _check_captures(self, concrete, error):
        """Raises error(function, tensor) where it captures what no object has."""
        for tensor in concrete.captured_inputs:
            if tensor.dtype == dtypes.resource and tensor._id not in self._known:
                raise error(concrete, tensor)

    def _check_dependencies(self):
        """What is to be made before an object must be saved, and without circles."""
        before, children = {}, {}
        for number, name, child in self._edges:
            children.setdefault(number, {})[name] = self._objects[child]
        for number, obj in enumerate(self._objects):
            found = getattr(
                type(obj), "_deserialization_dependencies", _NO_DEPENDENCIES
            )
            if found is _NO_DEPENDENCIES:
                continue
            first = obj._deserialization_dependencies(children.get(number, {}))
            for name, child in first.items():
                if id(child) not in self._ids:
                    raise ValueError(
                        f"Found an untracked dependency. Object {obj} depends on {child}, "
                        f"but this dependency isn't listed as a child ({name!r}). Please "
                        "track this child by overriding `_trackable_children` or use "
                        "`._track_trackable`."
                    )
                before.setdefault(number, []).append(self._ids[id(child)])
        _refuse_circles(before, self._objects)

    # --- functions ---

    def _is_saved(self, child):
        """Whether SavedModels have a form for it; says so where not."""
        if not isinstance(child, _FUNCTIONS):
            return True
        try:
            for concrete in _concrete_functions(child):
                _encoded(concrete)
            _spec_of(child)
        except NotImplementedError as e:
            logging.get_logger().warning(
                "Skipping full serialization of the function %s: %s", child, e
            )
            return False
        return True

    def _put(self, concrete):
        """Adds a concrete function under its name, which it returns."""
        self._check_captures(concrete, _of_trace)
        if errors := concrete.graph._saving_errors:
            raise ValueError(
                f"Unable to save function {concrete.name} for the following reason(s):\n"
                + "\n".join(errors)
            )
        self._writer.add_function(concrete._core, *_encoded(concrete))
        return concrete.name.decode()

    def _add_function(self, number, function):
        traces = map(signatures_.in_file_order, _concrete_functions(function))
        names = [self._put(c) for c in traces]
        self._writer.set_function(number, names, _spec_of(function))

    def _add_bare(self, number, concrete):
        concrete = signatures_.in_file_order(concrete)
        name = self._put(concrete)
        own = len(concrete.inputs) - len(concrete.captured_inputs)
        keywords = [x.op.name for x in concrete.inputs[:own]]
        positional = concrete._most_positional(own)
        if own == 1:
            positional = 1
        self._writer.set_bare_function(
            number, name, keywords, positional, _spec_of(concrete)
        )

    # --- resources ---

    @staticmethod
    def _is_resource(obj):
        makes = hasattr(obj, "_create_resource") and getattr(obj, "_own_handle", True)
        return makes and obj.resource_handle is not None

    def _with_resource_functions(self, number, obj, children):
        """The children, with functions that make, fill and free the resource."""
        found = dict(children)
        for name in ("_create_resource", "_initialize", "_destroy_resource"):
            method = getattr(obj, name, None)
            if name not in found and method is not None:
                found[name] = Function(method, _OF_RESOURCE)
        for function in found.values():
            if isinstance(function, Function):
                function.get_concrete_function()
        create, initialize = (
            found[n].get_concrete_function()._core if n in found else None
            for n in ("_create_resource", "_initialize")
        )
        self._writer.set_resource_functions(number, create, initialize)
        for name, pair in self._saveables_of(obj).items():
            save, restore = (self._number(f) for f in pair)
            self._writer.add_saveable(number, name, save, restore)
        return list(found.items())

    @staticmethod
    def _saveables_of(obj):
        """{name: (function that gives its values, function that takes them)}."""
        if isinstance(obj, SavedResource):
            return obj._saveables
        if not hasattr(obj, "_serialize_to_tensors"):
            return {}
        graph = _graph_of(obj.resource_handle)
        with graph.as_default() if graph is not None else contextlib.nullcontext():
            values = obj._serialize_to_tensors()
        if not values:
            return {}
        attribute = getattr(obj, "_checkpoint_attribute", "")

        def save_fn(checkpoint_key):
            return [
                {
                    "name": checkpoint_key + name[len(attribute) :],
                    "slice_spec": "",
                    "tensor": tensor,
                }
                for name, tensor in obj._serialize_to_tensors().items()
            ]

        def restore_fn(*restored_tensors):
            obj._restore_from_tensors(dict(zip(values, restored_tensors)))
            return 0

        save = signatures_.traced(
            save_fn,
            [P("checkpoint_key", P.POSITIONAL_OR_KEYWORD)],
            [TensorSpec([], dtypes.string, "checkpoint_key")],
            "save_fn",
        )
        names = [f"restored_tensors_{i}" for i in range(len(values))]
        restore = signatures_.traced(
            restore_fn,
            [P(n, P.POSITIONAL_OR_KEYWORD) for n in names],
            [TensorSpec(None, v.dtype, n) for n, v in zip(names, values.values())],
            "restore_fn",
        )
        return {attribute or "value": (save, restore)}


def _graph_of(handle):
    """The graph that a session runs to make what the handle is of; None where that is
    there already."""
    return None if isinstance(handle, _headrace.EagerTensor) else handle.graph


def _of_trace(concrete, tensor):
    return KeyError(
        f"Failed to add concrete function '{concrete.name}' to object-based SavedModel as "
        f"it captures tensor {tensor!r} which is unsupported or not reachable from root. "
        "One reason could be that a stateful object or a variable that the function "
        "depends on is not assigned to an attribute of the serialized trackable object."
    )


def _of_signature(concrete, tensor):
    inner = concrete.graph.internal_captures
    ids = [t._id for t in concrete.captured_inputs]
    return AssertionError(
        "Tried to export a function which references an 'untracked' resource. "
        "TensorFlow objects (e.g. tf.Variable) captured by functions must be 'tracked' "
        "by assigning them to an attribute of a tracked object or assigned to an "
        "attribute of the main object directly. See the information below:"
        f"\n\tFunction name = {concrete.name}"
        f"\n\tCaptured Tensor = {tensor!r}"
        f"\n\tTrackable referencing this tensor = {_holder_of(tensor)!r}"
        f"\n\tInternal Tensor = {inner[ids.index(tensor._id)]}"
    )


def _holder_of(tensor):
    """The object that a handle belongs to, or None."""
    found = variables.of_handle(tensor)
    if found is not None:
        return found
    for obj in gc.get_objects():
        if isinstance(obj, Trackable) and hasattr(type(obj), "_create_resource"):
            handle = getattr(obj, "resource_handle", None)
            if handle is not None and handle._id == tensor._id:
                return obj
    return None


class _ByIdentity(dict):
    """A dictionary whose keys are compared by identity: variables have no hash."""

    def __setitem__(self, key, value):
        super().__setitem__(id(key), (key, value))

    def __getitem__(self, key):
        return super().__getitem__(id(key))[1]


def _stood_for(obj, options):
    """The variable that an object acts as."""
    maps = _ByIdentity(), _ByIdentity()
    handles = obj._export_to_saved_model_graph(*maps, options)
    found = [variables.of_handle(h) for h in handles]
    if len(found) != 1 or found[0] is None:
        raise ValueError(
            f"{obj} acts as a resource variable, but is none: "
            "_export_to_saved_model_graph gave no handle of a variable"
        )
    return found[0]


def _refuse_circles(before, objects):
    """ValueError where objects, by number, are to be made before one another."""
    done = set()
    for start in before:
        todo = [(start, iter(before[start]))]
        while todo:
            number, rest = todo[-1]
            path = [n for n, _ in todo]
            following = next(rest, None)
            if following is None:
                done.add(number)
                todo.pop()
            elif following in path:
                circle = [objects[n] for n in path[path.index(following) :]]
                raise ValueError(
                    "Found a dependency cycle in the saved Trackable objects, which cannot "
                    f"be made one before the other: {circle}"
                )
            elif following not in done:
                todo.append((following, iter(before.get(following, ()))))


def _identifier(obj):
    """What loaders know the kind of an object by."""
    if isinstance(obj, SignatureMap):
        return "signature_map"
    for cls, identifier in (
        (data_structures.ListWrapper, "trackable_list_wrapper"),
        (data_structures._DictMethods, "trackable_dict_wrapper"),
        (data_structures._TupleMethods, "trackable_tuple_wrapper"),
    ):
        if isinstance(obj, cls):
            return identifier
    if hasattr(type(obj), "_saved_identifier"):
        return obj._saved_identifier
    return "_generic_user_object"


def _concrete_functions(function):
    """The traces of a function, which has one where its signature is given."""
    if isinstance(function, ConcreteFunction):
        return [function]
    if function.input_signature is not None and not function._of_class:
        function.get_concrete_function()
    traces = function._list_all_concrete_functions_for_serialization()
    found = [signatures_.of_first_copies(function, trace) for trace in traces]
    return list({id(trace): trace for trace in found}.values())


def _aliased(function):
    """The traces of a function, or of a list of concrete functions."""
    if isinstance(function, (list, tuple)):
        return [c for f in function for c in _aliased(f)]
    if not isinstance(function, _FUNCTIONS):
        raise TypeError(
            f"Unsupported type {type(function)}. Functions in `function_aliases` "
            "should be created by tf.function, or concrete functions, or collections of "
            "concrete functions."
        )
    return _concrete_functions(function)


def _encoded(concrete):
    """The structures of what a concrete function takes and of what it gives."""
    if isinstance(concrete, RestoredConcreteFunction):
        both = concrete.inputs_as_saved, concrete.output_as_saved
    else:
        outputs = signatures_.output_specs(concrete.structured_outputs)
        both = concrete.structured_input_signature, outputs
    return tuple(map(structured.encoded, both))


def _spec_of(function):
    """A FunctionSpec: (names and defaults, whether `self` is among them, signature,
    whether to compile)."""
    if isinstance(function, ConcreteFunction):
        parameters, signature, jit = function._function_type._parameters, None, None
    else:
        parameters, signature = function._parameters, function.input_signature
        jit = function._jit_compile
    plain = (P.POSITIONAL_ONLY, P.POSITIONAL_OR_KEYWORD)
    rows = parameters.parameters
    args = [p for p in rows if p.kind in plain]
    defaults = tuple(p.default for p in args if p.default is not P.empty)
    by_keyword = [p for p in rows if p.kind == P.KEYWORD_ONLY]
    given = {p.name: p.default for p in by_keyword if p.default is not P.empty}

    def named(kind):
        return next((p.name for p in rows if p.kind == kind), None)

    fields = {
        "args": [p.name for p in args],
        "varargs": named(P.VAR_POSITIONAL),
        "varkw": named(P.VAR_KEYWORD),
        "defaults": defaults or None,
        "kwonlyargs": [p.name for p in by_keyword],
        "kwonlydefaults": given or None,
        "annotations": {},
    }
    spec = [(name, structured.encoded(value)) for name, value in fields.items()]
    return (
        ("named_tuple", "FullArgSpec", spec),
        False,
        structured.encoded(signature),
        {None: 0, True: 1, False: 2}[jit],
    )
