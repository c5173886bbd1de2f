"""tf.compat.v1.Session: runs parts of a graph."""

import collections.abc
import contextlib
import weakref

import numpy as np

from headrace._load import _headrace
from headrace.context import call_stacks, sessions, stack
from headrace.context.errors import (
    CancelledError,
    DeadlineExceededError,
    InaccessibleTensorError,
    InvalidArgumentError,
    NotFoundError,
    OpError,
)
from headrace.context.properties import read_only
from headrace.framework import nest
from headrace.framework.settings import logging
from headrace.graph.graph import Graph
from headrace.graph.operation import Operation
from headrace.v1 import (
    cluster_sessions,
    placements,
    session_config,
    session_tensors,
)


def _flat_items(feed_dict):
    """Pairs of a feed: keys that are tuples and what is within, with their values'
    parts. ValueError where these are not as many."""
    if not isinstance(feed_dict, collections.abc.Mapping):
        raise TypeError(
            "FlattenDictItems: 'dict' must be a dictionary or collection.Mapping type "
            f"object, instead of {type(feed_dict).__name__!r}."
        )
    flat = {}
    for key, value in feed_dict.items():
        keys, values = [key], [value]
        if nest.is_nested(key) and not getattr(key, "_is_composite_tensor", False):
            keys, values = nest.flatten(key), nest.flatten(value)
        if len(keys) != len(values):
            raise ValueError(
                f"Could not flatten dictionary. Key had {len(keys)} elements, but value "
                f"had {len(values)} elements. Key: {keys}, value: {values}."
            )
        for k, v in zip(keys, values):
            if k in flat:
                raise ValueError(
                    f"Cannot flatten dict because this key is not unique: {k}"
                )
            flat[k] = v
    return flat.items()


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

    def __init__(self, session, fetches):
        self.session, self.graph = session, session.graph
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

    def pack(self, values):
        """The run's values in the structure of what was asked for."""
        kept = self.graph._session_handles
        for i, tensor in enumerate(self.tensors if kept else ()):
            if tensor._id in kept:
                values[i] = session_tensors.TensorHandle(
                    values[i].decode(), kept[tensor._id], self.session
                )
        return self._pack(values, self.structure)

    def _pack(self, values, structure):
        if structure is None or isinstance(structure, int):
            return None if structure is None else values[structure]
        kind, parts = structure
        if isinstance(parts, dict):
            return kind((k, self._pack(values, v)) for k, v in parts.items())
        items = [self._pack(values, p) for p in parts]
        if not isinstance(kind, type):
            return kind._value_of(items) if hasattr(kind, "_value_of") else tuple(items)
        if hasattr(kind, "_fields") or hasattr(kind, "__attrs_attrs__"):
            return kind(*items)
        return kind(items)


class _DeviceAttributes(
    collections.namedtuple(
        "_DeviceAttributes", "name device_type memory_limit_bytes incarnation"
    )
):
    """A device that a session knows; the incarnation is another one for each session."""

    def __repr__(self):
        return f"_DeviceAttributes({', '.join(map(str, self))})"


# What upstream says of processors, whose memory has no limit.
_PROCESSOR_BYTES = 256 << 20
_open = weakref.WeakSet()  # sessions, for reset


def _check_target(target):
    if not isinstance(target, str):
        kind = type(target).__name__
        raise TypeError(f'Argument `target` must be a string, but got "{kind}"')
    if target and not target.startswith(cluster_sessions.PREFIX):
        raise NotFoundError._of(
            "No session factory registered for the given session options: {target: "
            f'"{target}"}} Registered factories are {{DIRECT_SESSION}}.'
        )


class BaseSession:
    """A graph's runs and the variables they share.

    Args:
      target: "" for this process, or "grpc://host:port" of a tf.distribute.Server,
        which runs the graph's parts on the tasks of its cluster.
      graph: a tf.Graph; the default one where it is None.
      config: a ConfigProto. NotImplementedError for fields that nothing here serves;
        which ones act, and which change no result, is in v1/session_config.py. A
        cluster's is sent to the server.
    """

    def __init__(self, target="", graph=None, config=None):
        if graph is None:
            graph = stack.default_graph()
        if not isinstance(graph, Graph):
            raise TypeError(
                f'Argument `graph` must be a tf.Graph, but got "{type(graph).__name__}"'
            )
        _check_target(target)
        self._graph, self._target = graph, target
        self._config = session_config.Config(config, checked=not target)
        self._plain_run = session_config.Run(None, self._config)
        self._closed = self._ended = False
        self._dead_handles = []  # of session tensors that nobody names any more
        self._placed = set()  # runs whose placement was logged
        self._core = self._make_core(config)
        # Runs that are asked for nothing further may take the short way.
        self._is_plain = not (
            target
            or self._config.timeout
            or self._config.log_placement
            or self._config.executor
        )
        _open.add(self)
        if self._config.log_placement and not target:
            placements.log_devices()

    def _make_core(self, config):
        if self._target:
            return cluster_sessions.ClusterCore(self._graph, self._target, config)
        core = _headrace.SessionCore(self._graph._core)
        core.soft_placement = self._config.soft_placement
        core.processors = self._config.processors
        core.intra_op = self._config.intra_op
        core.inter_op = self._config.threads(0)
        return core

    graph = read_only("_graph", "The tf.Graph that the session runs.")

    @property
    def graph_def(self):
        """The session's graph as a GraphDef proto, made anew at each access."""
        return self._graph.as_graph_def()

    @property
    def sess_str(self):
        """The target that the session connects to, as bytes: b"" for this process."""
        return self._target.encode()

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
        """The devices that the session can run on, objects with `name`, `device_type`,
        `memory_limit_bytes` and `incarnation`."""
        if self._closed:
            raise CancelledError._of("Session has been closed.")
        if self._target:
            return [_DeviceAttributes(*device) for device in self._core.devices()]
        return [
            _DeviceAttributes(
                f"/job:localhost/replica:0/task:0/device:CPU:{i}",
                "CPU",
                _PROCESSOR_BYTES,
                (id(self) << 8) + i,
            )
            for i in range(self._config.processors)
        ]

    def run(self, fetches, feed_dict=None, options=None, run_metadata=None):
        """Runs what `fetches` (nested tensors, operations, names) need.

        Values of `feed_dict` stand for its keys' tensors. Results have the structure of
        `fetches`: arrays for tensors, None for operations.
        """
        if self._is_plain and options is run_metadata is None:
            if self._closed:
                self._check_open()
            try:
                result = self._core.run_one(fetches, feed_dict)
            except OpError as e:
                call_stacks.explain_session(e, self._graph)
                raise
            if result is not NotImplemented:
                if self._graph._session_handles:
                    session_tensors.delete_dead(self)
                    return _Plan(self, fetches).pack([result])
                return result
        session_config.check_metadata(run_metadata)
        return self._run(fetches, feed_dict, options, run_metadata)

    def _check_open(self):
        if self._closed:
            if self._ended:
                raise CancelledError._of(
                    "Graph execution error:\n\nSession has been closed."
                )
            raise RuntimeError("Attempted to use a closed Session.")

    def _run(self, fetches, feed_dict, options, run_metadata):
        self._check_open()
        if not self._graph._core.num_nodes:
            raise RuntimeError(
                "The Session graph is empty. Add operations to the graph before "
                "calling run()."
            )
        feeds, values = self._feeds(feed_dict)
        plan = _Plan(self, fetches)
        run = self._plain_run
        if options is not None:
            run = session_config.Run(options, self._config)
        self._config.check_executor()
        try:
            results = self._run_core(plan, feeds, values, run, run_metadata)
        except DeadlineExceededError as e:
            if run.timeout:
                # TensorFlow's words, and what was waited for.
                text = "Graph execution error:\n\nTimed out waiting for notification"
                raise DeadlineExceededError._of(f"{text}\n{e.message}") from e
            raise
        except OpError as e:
            call_stacks.explain_session(e, self._graph)
            raise
        session_tensors.delete_dead(self)
        return plan.pack(results)

    def _run_core(self, plan, feeds, values, run, run_metadata):
        if self._target:
            return self._core.run(plan, feeds, values, run.options, run_metadata)
        if self._config.log_placement:
            self._log_placement(plan, feeds)
        results, steps = self._core.run_many(
            plan.tensors,
            plan.targets,
            feeds,
            values,
            run.timeout,
            run.trace,
            run.threads or -1,  # below: the default
        )
        if run_metadata is not None:
            self._tell(run_metadata, run, steps, plan, feeds)
        return results

    def _placement(self):
        return placements.Placement(self._graph, self._config.processors)

    def _log_placement(self, plan, feeds):
        """Prints where operations are placed, before the first of equal runs."""
        ids = [t._id for t in plan.tensors], [n.id for n in plan.targets]
        key = repr((ids, [t._id for t in feeds]))
        if key not in self._placed:
            self._placed.add(key)
            self._placement().log()

    def _tell(self, run_metadata, run, steps, plan, feeds):
        """What a run did, as its RunOptions ask."""
        run_metadata.Clear()
        placement = self._placement()
        if run.trace:
            found = type(run_metadata.step_stats).FromString(steps)
            run_metadata.step_stats.CopyFrom(placement.by_device(found))
        if run.partitions:
            targets = [self._graph._operation(node) for node in plan.targets]
            run_metadata.partition_graphs.extend(
                placement.partitions(plan.tensors, targets, feeds)
            )

    def _feeds(self, feed_dict):
        feeds, values = [], []
        for key, value in _flat_items(feed_dict or {}):
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
        return [(key, value)]

    def _value(self, tensor, value):
        if isinstance(value, session_tensors.TensorHandle):
            return self._kept(tensor, value)
        if isinstance(value, _headrace.SymbolicTensor):
            raise TypeError(
                "The value of a feed cannot be a tf.Tensor object. Acceptable feed "
                "values include Python scalars, strings, lists, numpy ndarrays, or "
                f"TensorHandles. For reference, the tensor object was {value} which "
                f"was passed to the argument `feed_dict` with key {tensor}."
            )
        if isinstance(value, _headrace.EagerTensor):
            return value
        dtype = tensor.dtype.base_dtype
        array = np.asarray(value, dtype=dtype.as_numpy_dtype)
        if isinstance(value, int) and array.dtype.kind in "iu" and int(array) != value:
            raise TypeError(
                f"Type of feed value {value} with type {type(value)} is not compatible "
                f"with Tensor type {dtype.as_numpy_dtype}. Try explicitly "
                "setting the type of the feed tensor to a larger type (e.g. int64)."
            )
        if not tensor.shape.is_compatible_with(array.shape):
            raise ValueError(
                f"Cannot feed value of shape {array.shape} for Tensor {tensor.name}, "
                f"which has shape {tensor.shape}"
            )
        if not self._graph.is_feedable(tensor):
            raise ValueError(f"Tensor {tensor.name} may not be fed.")
        return _headrace.make_tensor(array, dtype)

    def _kept(self, tensor, handle):
        """The value that a TensorHandle names."""
        if handle.dtype != tensor.dtype:
            raise InvalidArgumentError._of(
                f"Expects arg[0] to be {_type_name(tensor.dtype)} but "
                f"{_type_name(handle.dtype)} is provided"
            )
        return _fed_again(tensor, handle.eval())

    def make_callable(self, fetches, feed_list=None, accept_options=False):
        """A function of the feeds' values that runs `fetches`; it takes `options` and
        `run_metadata` too. TypeError where it is called with more values than
        `feed_list` has."""
        if feed_list is not None and not isinstance(feed_list, (list, tuple)):
            raise TypeError(
                "Argument `feed_list` must be a list or tuple. Received: "
                f"feed_list={feed_list}"
            )
        if self._closed:
            raise CancelledError._of("Session has been closed.")
        keys = list(feed_list or ())

        def call(*values, options=None, run_metadata=None):
            if len(values) > len(keys):
                raise TypeError(
                    f"Callable requires {len(keys)} feed values, got {len(values)}"
                )
            feeds = dict(zip(keys, values)) if keys else None
            return self.run(fetches, feeds, options, run_metadata)

        return call

    def partial_run_setup(self, fetches, feeds=None):
        """Begins a run in steps: of these fetches, tensors and operations, and these
        feeds. The handle that partial_run takes, a string."""
        self._check_open()
        plan = _Plan(self, fetches)
        given = [] if feeds is None else nest.flatten(feeds)
        fed = [self._graph.as_graph_element(x, allow_operation=False) for x in given]
        return self._core.partial_run_setup(plan.tensors, plan.targets, fed)

    def partial_run(self, handle, fetches, feed_dict=None):
        """A step of the run: takes more feeds, gives more fetches, each once.

        InvalidArgumentError for what partial_run_setup was not told, what comes twice,
        and what cannot be computed yet; RuntimeError for operations among `fetches`.
        """
        plan = _Plan(self, fetches)
        if plan.targets:
            targets = [self._graph._operation(node) for node in plan.targets]
            raise RuntimeError(
                "partial_run() requires empty `target_list`. Received: "
                f"target_list={targets} (non-empty)"
            )
        fed = self._feeds(feed_dict)
        try:
            found = self._core.partial_run(handle, plan.tensors, *fed)
        except OpError as e:
            call_stacks.explain_session(e, self._graph)
            raise
        return plan.pack(found)


def _type_name(dtype):
    """The dtype's name as the engine's messages have it."""
    return {"float32": "float", "float64": "double"}.get(dtype.name, dtype.name)


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
        """Ends all sessions of the process: what they hold is freed, and their runs
        raise CancelledError.

        `containers`, names of some of the state, change nothing in one process. Of a
        cluster's target the server closes its sessions, whosoever they are, and the
        state in the containers is forgotten.
        """
        _check_target(target)
        session_config.Config(config, checked=not target)
        if target:
            cluster_sessions.reset(target, containers, config)
            return
        for session in list(_open):
            if not session._closed:
                session._ended = True
                BaseSession.close(session)


class InteractiveSession(BaseSession):
    """A session that is the default one from the start until it is closed."""

    _active = 0

    def __init__(self, target="", graph=None, config=None):
        super().__init__(target, graph, config)
        if InteractiveSession._active:
            logging.error(
                "An interactive session is already active: it holds its memory until "
                "its close() is called. tf.compat.v1.Session in a with-statement closes "
                "itself."
            )
        InteractiveSession._active += 1
        self._entered = contextlib.ExitStack()
        self._entered.enter_context(self.as_default())
        if graph is not None:
            self._entered.enter_context(graph.as_default())

    def close(self):
        """Ends the session and takes back that it was the default one."""
        if not self._closed:
            InteractiveSession._active -= 1
        super().close()
        self._entered.close()
