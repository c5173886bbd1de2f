"""tf.compat.v1.Session: runs parts of a graph."""

import contextlib

import numpy as np

from headrace._load import _headrace
from headrace.context import call_stacks, sessions, stack
from headrace.context.errors import (
    InaccessibleTensorError,
    InvalidArgumentError,
    OpError,
)
from headrace.context.properties import read_only
from headrace.framework import nest
from headrace.framework.settings import config as settings
from headrace.graph.graph import Graph
from headrace.graph.operation import Operation
from headrace.v1 import run_options, session_handles
from headrace.v1.partial_runs import PartialRun


class _AsDefault:
    def __init__(self, session):
        self._session = session

    def __enter__(self):
        sessions.enter(self._session)
        return self._session

    def __exit__(self, *error):
        sessions.leave(self._session)
        return False


class _Plan:
    """Nested fetches, taken apart: what to run and how to put it together."""

    def __init__(self, graph, fetches):
        self.graph = graph
        self.tensors, self.targets = [], []
        self._at = {}
        self.structure = self._take(fetches)

    def _take(self, fetch):
        if fetch is None:
            raise TypeError(
                f"Argument `fetch` = {fetch} has invalid type "
                f'"{type(fetch).__name__}". Cannot be None'
            )
        if isinstance(fetch, dict):
            return type(fetch), {k: self._take(v) for k, v in fetch.items()}
        if isinstance(fetch, (list, tuple)):
            return type(fetch), [self._take(f) for f in fetch]
        if hasattr(type(fetch), "__attrs_attrs__"):
            return type(fetch), [self._take(f) for f in nest.children(fetch)]
        if getattr(type(fetch), "_is_composite_tensor", False):
            return fetch, [self._take(f) for f in fetch._components()]
        return self._element(fetch)

    def _element(self, fetch):
        try:
            element = self.graph.as_graph_element(fetch)
        except TypeError as e:
            raise TypeError(
                f"Argument `fetch` = {fetch} has invalid type "
                f'"{type(fetch).__name__}" must be a string or Tensor. ({e})'
            ) from None
        except (ValueError, KeyError) as e:
            raise ValueError(
                f"Argument `fetch` = {fetch} cannot be interpreted as a Tensor. ({e})"
            ) from None
        is_operation = isinstance(element, Operation)
        node = element._node if is_operation else _headrace.node_of(element)
        if not self.graph._is_fetchable(node):
            raise InaccessibleTensorError(
                f"Operation {node.name} has been marked as not fetchable. Typically this "
                "happens when it is defined in another function or code block. Use "
                "return values, explicit Python locals or TensorFlow collections to "
                "access it."
            )
        if is_operation:
            self.targets.append(node)
            return None
        at = self._at.setdefault(element._id, len(self.tensors))
        if at == len(self.tensors):
            self.tensors.append(element)
        return at

    def pack(self, values, structure):
        if structure is None or isinstance(structure, int):
            return None if structure is None else values[structure]
        kind, parts = structure
        if isinstance(parts, dict):
            return kind((k, self.pack(values, v)) for k, v in parts.items())
        items = [self.pack(values, p) for p in parts]
        if not isinstance(kind, type):
            return kind._value_of(items) if hasattr(kind, "_value_of") else tuple(items)
        if hasattr(kind, "_fields") or hasattr(kind, "__attrs_attrs__"):
            return kind(*items)
        return kind(items)


def _processors(config):
    """How many processors nodes may name: what the session's configuration says, or
    tf.config.set_logical_device_configuration."""
    counts = getattr(config, "device_count", {})
    known = len(settings.list_logical_devices("CPU"))
    return max(counts["CPU"] if "CPU" in counts else known, 1)


class BaseSession:
    """A graph's runs and the variables they share."""

    def __init__(self, target="", graph=None, config=None):
        if target:
            raise NotImplementedError(f"Session: target {target!r} is not supported")
        if graph is None:
            graph = stack.default_graph()
        if not isinstance(graph, Graph):
            raise TypeError(
                f'Argument `graph` must be a tf.Graph, but got "{type(graph).__name__}"'
            )
        self._graph = graph
        self._config = config
        self._closed = False
        self._partial_runs = {}  # by handle
        self._timeout = getattr(config, "operation_timeout_in_ms", 0) or None
        self._core = _headrace.SessionCore(graph._core)
        self._core.soft_placement = bool(getattr(config, "allow_soft_placement", False))
        self._core.processors = _processors(config)

    graph = read_only("_graph", "The tf.Graph that the session runs.")

    @property
    def graph_def(self):
        """The session's graph as a GraphDef proto, made anew at each access."""
        return self._graph.as_graph_def()

    @property
    def sess_str(self):
        """The target that the session connects to: always b"", this process."""
        return b""

    def as_default(self):
        """A context manager where eval() of tensors and run() of operations use this
        session.

        Leaving it does not close the session.
        """
        return _AsDefault(self)

    def close(self):
        """Frees the session's variables; it cannot run any more."""
        if not self._closed:
            self._closed = True
            self._core.close()

    def list_devices(self):
        """The logical devices that the session can run on, as tf.config lists them."""
        return settings.list_logical_devices()

    def run(self, fetches, feed_dict=None, options=None, run_metadata=None):
        """Runs what `fetches` (nested tensors, operations, names) need.

        Values of `feed_dict` stand for its keys' tensors. Results have the structure of
        `fetches`: arrays for tensors, None for operations.
        """
        plain = self._timeout is None and options is run_metadata is None
        if plain and not session_handles.handles_of(self._graph):
            if self._closed:
                raise RuntimeError("Attempted to use a closed Session.")
            try:
                result = self._core.run_one(fetches, feed_dict)
            except OpError as e:
                call_stacks.explain_session(e, self._graph)
                raise
            if result is not NotImplemented:
                return result
        timeout = run_options.timeout(options) or self._timeout or 0
        trace = run_options.wants_trace(options)
        run_options.check_metadata(run_metadata)
        results, steps = self._run(fetches, feed_dict, timeout, trace)
        if trace and run_metadata is not None:
            run_metadata.Clear()
            run_metadata.step_stats.ParseFromString(steps)
        return results

    def _run(self, fetches, feed_dict, timeout, trace):
        if self._closed:
            raise RuntimeError("Attempted to use a closed Session.")
        if not self._graph._core.num_nodes:
            raise RuntimeError(
                "The Session graph is empty. Add operations to the graph before "
                "calling run()."
            )
        feeds, values = self._feeds(feed_dict)
        plan = _Plan(self._graph, fetches)
        try:
            results, steps = self._core.run_many(
                plan.tensors, plan.targets, feeds, values, timeout, trace
            )
        except OpError as e:
            call_stacks.explain_session(e, self._graph)
            raise
        results = session_handles.wrapped(self, plan.tensors, results)
        return plan.pack(results, plan.structure), steps

    def _feeds(self, feed_dict):
        feeds, values = [], []
        for key, value in (feed_dict or {}).items():
            for k, v in self._expanded(key, value):
                try:
                    tensor = self._graph.as_graph_element(k, allow_operation=False)
                except Exception as e:
                    text = e.args[0] if e.args else e
                    raise TypeError(
                        f"Cannot interpret feed_dict key as Tensor: {text}"
                    ) from None
                feeds.append(tensor)
                values.append(self._value(tensor, v))
        return feeds, values

    def _expanded(self, key, value):
        if getattr(type(key), "_is_composite_tensor", False):
            parts = key._fed(value) if hasattr(key, "_fed") else value
            return list(zip(key._components(), parts))
        if isinstance(key, (list, tuple)):
            return list(zip(key, value))
        return [(key, value)]

    def _value(self, tensor, value):
        if isinstance(value, _headrace.SymbolicTensor):
            raise TypeError(
                "The value of a feed cannot be a tf.Tensor object. Acceptable feed "
                "values include Python scalars, strings, lists, numpy ndarrays, or "
                f"TensorHandles. For reference, the tensor object was {value} which "
                f"was passed to the argument `feed_dict` with key {tensor}."
            )
        if isinstance(value, _headrace.EagerTensor):
            return value
        value = session_handles.fed(tensor, value)
        array = np.asarray(value, dtype=tensor.dtype.as_numpy_dtype)
        if isinstance(value, int) and array.dtype.kind in "iu" and int(array) != value:
            raise TypeError(
                f"Type of feed value {value} with type {type(value)} is not compatible "
                f"with Tensor type {tensor.dtype.as_numpy_dtype}. Try explicitly "
                "setting the type of the feed tensor to a larger type (e.g. int64)."
            )
        if not tensor.shape.is_compatible_with(array.shape):
            raise ValueError(
                f"Cannot feed value of shape {array.shape} for Tensor {tensor.name}, "
                f"which has shape {tensor.shape}"
            )
        if not self._graph.is_feedable(tensor):
            raise ValueError(f"Tensor {tensor.name} may not be fed.")
        return _headrace.make_tensor(array, tensor.dtype)

    def make_callable(self, fetches, feed_list=None, accept_options=False):
        """A function of the feeds' values that runs `fetches`."""
        keys = list(feed_list or ())

        def call(*values, **options):
            if len(values) != len(keys):
                raise TypeError(
                    f"Callable requires {len(keys)} feed values, got {len(values)}"
                )
            if options and not accept_options:
                raise TypeError(
                    f"Callable got unexpected arguments {sorted(options)}: it was "
                    "made without accept_options"
                )
            return self.run(fetches, dict(zip(keys, values)), **options)

        return call

    def partial_run_setup(self, fetches, feeds=None):
        """Begins a run in steps: of these fetches, tensors and operations, and these
        feeds. The handle that partial_run takes, a string."""
        plan = _Plan(self._graph, fetches)
        given = [] if feeds is None else nest.flatten(feeds)
        fed = [self._graph.as_graph_element(x, allow_operation=False) for x in given]
        targets = [self._graph._operation(node) for node in plan.targets]
        handle = f"partial_run_{len(self._partial_runs)}"
        self._partial_runs[handle] = PartialRun(plan.tensors, targets, fed)
        return handle

    def partial_run(self, handle, fetches, feed_dict=None):
        """A step of the run: takes more feeds, gives more fetches, each once.

        InvalidArgumentError for what partial_run_setup was not told, what comes twice,
        and what cannot be computed yet; RuntimeError for operations among `fetches`.
        """
        run = self._partial_runs.get(handle)
        if run is None:
            raise InvalidArgumentError._of(
                "Must run 'setup' before performing partial runs!"
            )
        plan = _Plan(self._graph, fetches)
        if plan.targets:
            targets = [self._graph._operation(node) for node in plan.targets]
            raise RuntimeError(
                "partial_run() requires empty `target_list`. Received: "
                f"target_list={targets} (non-empty)"
            )
        run.check_fetches(plan.tensors)
        run.feed(*self._feeds(feed_dict))
        return plan.pack(run.run(plan.tensors, self._compute), plan.structure)

    def _compute(self, tensors, targets, known):
        feeds = [tensor for tensor, _ in known]
        values = [_fed_again(tensor, value) for tensor, value in known]
        try:
            found, _ = self._core.run_many(tensors, targets, feeds, values, 0, False)
        except OpError as e:
            call_stacks.explain_session(e, self._graph)
            raise
        return found


def _fed_again(tensor, value):
    """A fetched value as a run is fed it."""
    if isinstance(value, _headrace.EagerTensor):
        return value
    return _headrace.make_tensor(value, tensor.dtype)


class Session(BaseSession):
    """Runs operations; as a context also the default session and graph."""

    def __init__(self, target="", graph=None, config=None):
        super().__init__(target, graph, config)
        self._entered = []

    def __enter__(self):
        entered = contextlib.ExitStack()
        entered.enter_context(self._graph.as_default())
        entered.enter_context(self.as_default())
        self._entered.append(entered)
        return self

    def __exit__(self, *error):
        self._entered.pop().__exit__(*error)
        self.close()
        return False

    @staticmethod
    def reset(target, containers=None, config=None):
        """Not supported: raises NotImplementedError."""
        raise NotImplementedError("Session.reset is not supported")


class InteractiveSession(BaseSession):
    """A session that is the default one from the start until it is closed."""

    def __init__(self, target="", graph=None, config=None):
        super().__init__(target, graph, config)
        self._entered = contextlib.ExitStack()
        self._entered.enter_context(self.as_default())
        if graph is not None:
            self._entered.enter_context(graph.as_default())

    def close(self):
        """Ends the session and takes back that it was the default one."""
        super().close()
        self._entered.close()
