"""tf.saved_model.load: Python's objects around a model that C++ has loaded."""

import contextlib
import functools
import gc
import os

from headrace._load import _headrace
from headrace.context import errors, stack
from headrace.elements import structured
from headrace.framework import data_structures
from headrace.framework.asset import Asset
from headrace.framework.safe_mode import SafeMode
from headrace.framework.settings import logging
from headrace.framework.trackable import AutoTrackable, TrackableConstant
from headrace.function import wrapped
from headrace.function.deferred import TracedGraph
from headrace.function.function_type import FreelyNamed, P, Parameters
from headrace.function.restored import RestoredConcreteFunction
from headrace.saved_model import in_graph, objects
from headrace.saved_model.functions import RestoredFunction, parameters_of
from headrace.saved_model.options import LoadOptions


def contains_saved_model(export_dir):
    """Whether there is a SavedModel in the folder."""
    return _headrace.contains_saved_model(os.fspath(export_dir))


def load(export_dir, tags=None, options=None):
    """The model in a folder: an object with the attributes that the saved one had.

    Functions run what was traced when it was saved; `signatures` has those for serving.
    `options` are LoadOptions or a `tf.experimental.SafeMode`, for models of strangers:
    PermissionDeniedError names what such a model may not.
    `tags`, a string or some, name one of several graphs. Raises OSError where there is no
    model or its file is damaged, ValueError and RuntimeError for tags that no graph
    has, UnimplementedError, which lists them, for operations that are not there.
    In a graph that sessions run the model's variables and tables are the graph's:
    `initializer` of a variable gives it its value of the model, and
    `tf.compat.v1.tables_initializer()` fills the tables.
    """
    safe_mode = None
    if isinstance(options, SafeMode):
        safe_mode, options = options._core, None
    options = options or LoadOptions()
    if tags is not None:
        tags = [tags] if isinstance(tags, str) else list(tags)

    def read(skip):
        folder, partial = os.fspath(export_dir), options.allow_partial_checkpoint
        return _headrace.load_saved_model(folder, tags, partial, skip, safe_mode)

    skip = options.experimental_skip_checkpoint
    graph = stack.plain_graph()
    native = read(skip or graph is not None)
    if graph is not None and native.is_of_session:
        # Its functions take its variables as they are in this process.
        graph, native = None, read(skip)
    inside = in_graph.GraphObjects(native) if graph is not None else None
    with _reading(export_dir), _uncollected():
        loader = _Loader(native, inside)
        root = loader.root()
        aliased = (
            loader.aliased() if options.experimental_load_function_aliases else None
        )
    if inside is not None and not skip:
        in_graph.restore(root, os.fspath(export_dir), options.allow_partial_checkpoint)
    version, git_version = native.versions
    shown = {
        "tensorflow_version": version,
        "tensorflow_git_version": git_version,
        "graph_debug_info": None,
    }
    if options.experimental_load_function_aliases:
        if hasattr(root, "function_aliases"):
            raise ValueError(
                "Could not load with experimental_load_function_aliases option because "
                "the top-level object already has an attributed with name "
                "'function_aliases'"
            )
        shown["function_aliases"] = data_structures.wrap(aliased)
    if native.is_of_session:
        shown.update(_of_session(native))
    for name, value in shown.items():
        object.__setattr__(root, name, value)
    return root


@contextlib.contextmanager
def _uncollected():
    """Without the garbage collector: it would look again and again at thousands of new
    objects that all stay, for a third of the time that ResNet50 takes to load."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@contextlib.contextmanager
def _reading(export_dir):
    """What is made of objects of a file fails where the file is damaged."""
    try:
        yield
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as e:
        raise errors.DataLossError._of(
            f"SavedModel {os.fspath(export_dir)}: its objects are damaged: {e}"
        ) from e


def _of_session(native):
    """What models of TensorFlow 1 show beside their objects: their graph."""
    graph = TracedGraph("wrapped_function", core=native.graph())
    shown = {"graph": graph, "prune": functools.partial(wrapped.prune, graph)}
    if native.restore:
        core = native.function(native.restore)[0]

        def restore(save_path):
            """Gives the variables the values of a checkpoint of a session."""
            core.call([_headrace.make_tensor(os.fspath(save_path))], None)

        shown["restore"] = restore
    return shown


class _Loader:
    """Makes objects of a native model: all of them, then what leads from one to
    another."""

    def __init__(self, native, inside=None):
        self._native = native
        self._inside = inside  # GraphObjects, where a session will run it
        self._rows = [native.object(i) for i in range(native.num_objects)]
        self._concrete = {}  # by name
        self._takes = self._keywords_by_name() if native.is_of_session else {}
        self._specs = self._specs_by_name()
        self._objects = {}
        for i in range(len(self._rows)):
            self._object(i)
        if inside is not None:
            self._move_in()

    def root(self):
        """The first object, with all that it leads to."""
        for i in range(len(self._rows)):
            self._connect(i)
        root = self._objects[0]
        if not isinstance(root.signatures, objects.SignatureMap):
            raise TypeError(f"its signatures are a {type(root.signatures).__name__}")
        return root

    def _move_in(self):
        """Functions take the graph's variables and tables, and fill the latter."""
        with stack.entering(None):
            for i, (kind, *_, saveables) in enumerate(self._rows):
                if kind == "resource" and saveables:
                    self._objects[i].find_names(self._pairs(saveables))
        for concrete in self._concrete.values():
            self._inside.take_in(concrete)
        for kind, _, children, *_ in self._rows:
            initialize = dict(children).get("_initialize")
            if kind == "resource" and initialize is not None:
                self._inside.begin_with(self._objects[initialize])

    def aliased(self):
        """{alias: function}: the tf.function of the trace that has the alias, or, of
        traces that belong to none, their list."""
        aliases, found = self._native.function_aliases, {}
        for i, (kind, what, *_) in enumerate(self._rows):
            if kind == "function":
                found.update(
                    (aliases[n], self._objects[i]) for n in what[0] if n in aliases
                )
        for i, (kind, what, *_) in enumerate(self._rows):
            if kind == "bare_concrete_function" and what[0] in aliases:
                alone = found.setdefault(aliases[what[0]], [])
                if isinstance(alone, list):
                    alone.append(self._objects[i])
        return found

    def _specs_by_name(self):
        """The FunctionSpec of each concrete function: its own, else that of the function
        it belongs to."""
        specs = {}
        for kind, what, *_ in self._rows:
            if kind == "bare_concrete_function" and what[3] is not None:
                specs.setdefault(what[0], what[3])
        for kind, what, *_ in self._rows:
            if kind == "function":
                specs.update((name, what[1]) for name in what[0])
        return specs

    def _keywords_by_name(self):
        """What each signature of a model of TensorFlow 1 takes, in order."""
        kind = "bare_concrete_function"
        return {what[0]: what[1] for k, what, *_ in self._rows if k == kind}

    def _object(self, i):
        if i not in self._objects:
            self._objects[i] = self._make(i)
        return self._objects[i]

    def _make(self, i):
        kind, what, children, _, saveables = self._rows[i]
        if kind == "variable":
            if self._inside is not None:
                return self._inside.variable(i, what)
            return objects.variable(self._native.value(i), *what)
        if kind == "user_object":
            return self._user_object(what, children)
        if kind == "function":
            return self._function(*what)
        if kind == "bare_concrete_function":
            made = self._concrete_function(what[0])
            if made is None:
                return objects.UnreadableFunction(_python_name(what[0]))
            made.keywords, made.positional = what[1], what[2]
            return made
        if kind == "constant":
            return TrackableConstant(self._value(i, "constant"))
        if kind == "asset":
            return Asset(self._value(i, "asset"))
        if kind == "resource":
            cls = objects.SavedResource if saveables else objects.RestoredResource
            return cls(self._handle(i, dict(children).get("_create_resource")))
        return AutoTrackable()

    def _value(self, i, kind):
        if self._inside is None:
            return self._native.value(i)
        return getattr(self._inside, kind)(i)

    def _handle(self, i, create):
        """Of a resource, that `create` is the function of, if one is there."""
        if self._inside is None or create is None:
            return self._native.value(i)
        return self._inside.made_by(i, self._object(create))

    def _user_object(self, identifier, children):
        if identifier == "trackable_tuple_wrapper":  # what is in it cannot come later
            places = {int(name): c for name, c in children if name.isdigit()}
            items = [
                self._object(places[k]) if k in places else None
                for k in range(max(places, default=-1) + 1)
            ]
            return data_structures.wrap(tuple(items))
        if identifier == "trackable_list_wrapper":
            return data_structures.wrap([])
        if identifier == "trackable_dict_wrapper":
            return data_structures.wrap({})
        if identifier == "signature_map":
            return objects.SignatureMap()
        return objects.user_object(any(name == "__call__" for name, _ in children))

    def _function(self, names, spec):
        concrete = [c for c in map(self._concrete_function, names) if c is not None]
        if concrete:
            parameters = concrete[0]._function_type._parameters
        else:
            parameters = parameters_of(spec, ((), {}))
        return RestoredFunction(concrete, spec, parameters)

    def _concrete_function(self, name):
        """The ConcreteFunction; None where it takes or gives what there is no form for."""
        made = self._concrete.get(name)
        if made is None:
            core, inputs, outputs = self._native.function(name)
            try:
                inputs, outputs = map(structured.decoded, (inputs, outputs))
            except NotImplementedError as e:
                logging.get_logger().warning("Leaving out the function %s: %s", name, e)
                return None
            parameters = self._parameters(name, inputs)
            made = self._concrete[name] = RestoredConcreteFunction(
                core,
                parameters,
                inputs,
                outputs,
                _python_name(name),
            )
        return made

    def _parameters(self, name, inputs):
        if name in self._takes:
            takes = self._takes[name]
            return Parameters.of(
                [FreelyNamed(n, P.POSITIONAL_OR_KEYWORD) for n in takes]
            )
        return parameters_of(self._specs.get(name), inputs)

    def _pairs(self, saveables):
        """{name: (function that saves, function that restores)}."""
        return {n: tuple(self._objects[f] for f in p) for n, p in saveables.items()}

    def _connect(self, i):
        kind, what, children, slots, saveables = self._rows[i]
        owner = self._objects[i]
        named = [(name, self._objects[child]) for name, child in children]
        if kind == "resource" and saveables:
            owner._saveables.update(self._pairs(saveables))
        if kind in ("function", "bare_concrete_function", "constant", "asset"):
            return
        if kind == "user_object" and what == "trackable_tuple_wrapper":
            return
        if kind == "user_object" and what == "trackable_list_wrapper":
            owner.extend(x for _, x in sorted(named, key=lambda row: int(row[0])))
        elif kind == "user_object" and what == "trackable_dict_wrapper":
            owner.update(named)
        elif kind == "user_object" and what == "signature_map":
            owner._functions.update(named)
        elif kind != "variable":
            for name, child in named:
                setattr(owner, name, child)
        if slots:
            found = [(self._objects[v], n, self._objects[s]) for v, n, s in slots]
            objects.attach_slots(owner, found)


def _python_name(name):
    """`__inference_f_33` was traced of f."""
    stem, _, number = name.removeprefix("__inference_").rpartition("_")
    return stem if number.isdigit() and stem else name
