"""Tasks of a cluster as this process uses them: a session of each one's master, over a
graph that grows by what the task is to do."""

import collections
import contextlib
import re
import socket
import threading
import weakref

from headrace import _api as tf
from headrace._load import _headrace, raw
from headrace.context import call_stacks, errors, stack
from headrace.distribute.remote import inlining
from headrace.distribute.remote.programs import Program
from headrace.framework import dtypes, trackable, variables
from headrace.framework.support import protos
from headrace.graph.graph import Graph
from headrace.graph.import_graph import import_graph_def

_RESOURCE, _VARIANT = dtypes.resource, dtypes.variant
# State of coordinators: one that starts anew clears what an earlier one has left.
CONTAINER = "headrace_coordinator"

_MOST_VARIABLES = 32  # in one graph
_PROBE_SECONDS = 5  # for the answer of a task that may have come back
_clearing = threading.Lock()
_cleared = set()  # targets whose tasks have no state of earlier processes


def name_of(job, index):
    """A task's full name."""
    return f"/job:{job}/replica:0/task:{index}"


def _is_resource(x):
    return isinstance(x, _headrace.EagerTensor) and x.dtype == _RESOURCE


class Task:
    """A session of a task's master.

    Runs of several threads overlap where each holds its own task; else `lock` is to be
    held while the graph grows and while something runs.

    Args:
      name: the task's full name.
      address: "host:port".
      others: device filters: what the session knows beside the task.
    """

    def __init__(self, name, address, others=()):
        self.name, self.lock = name, threading.RLock()
        self._target, self._filters = f"grpc://{address}", [name, *others]
        self._garbage = collections.deque()  # keys of resources
        self._small = None  # a Task of the same server
        self._begin()

    def _begin(self):
        self.graph, self._core = Graph(), None
        self._sent = 0  # nodes that the session knows
        self._resources = {}  # key -> a tensor of the graph, or a tuple with one
        self.users = {}  # key -> who uses a resource that others have used before
        self._placed = weakref.WeakKeyDictionary()  # ConcreteFunction -> Programs

    container = CONTAINER

    def for_variable(self):
        """A Task of the same server whose graph has few variables: a session looks at all
        of its graph whenever that grows."""
        with self.lock:
            if self._core is None:
                self.run([], [self._nothing()])  # whose end tells of the server's
            if self._small is None or len(self._small._resources) >= _MOST_VARIABLES:
                self._small = Task(self.name, self._target.removeprefix("grpc://"))
            return self._small

    def _nothing(self):
        return self.resource("nothing", lambda: tf.no_op()._node)

    def building(self):
        """A context in which operations go into the task's graph."""
        return building(self.graph)

    def begin_anew(self):
        """Forgets the session, whose task has none of its state any more."""
        self._begin()

    def config(self, seconds=None):
        """The ConfigProto of a session, whose calls end after so many seconds."""
        made = protos.ConfigProto(
            device_filters=self._filters, allow_soft_placement=True
        )
        if seconds is not None:
            made.operation_timeout_in_ms = int(seconds * 1000)
        return made.SerializeToString()

    def check(self):
        """Raises where the task cannot be reached, or has begun a new life since the
        session was made."""
        with self.lock:
            if self._core is None:
                self.probe()
                return
            self.run([], [self._nothing()])

    def probe(self):
        """Raises where the task, or one that the session knows, does not answer soon."""
        graph = Graph()
        core = _headrace.ClusterSessionCore(
            graph._core, self._target, self.config(_PROBE_SECONDS)
        )
        try:
            core.devices()
        finally:
            core.close()

    def reset(self):
        """Forgets what coordinators have left on the task."""
        config = protos.ConfigProto(device_filters=[self.name])
        _headrace.reset_cluster(self._target, [CONTAINER], config.SerializeToString())

    def leave(self, key):
        """Has a resource destroyed by and by: called where its last user dies."""
        self._garbage.append(key)

    def collect(self):
        """Destroys what nobody has any more. The task may be gone."""
        with self.lock:
            done = []
            while self._garbage:
                made = self._resources.pop(self._garbage.popleft(), None)
                if made is None:
                    continue
                with building(self.graph):
                    handle = made[0] if isinstance(made, tuple) else made
                    gone = raw.DestroyResourceOp(handle, ignore_lookup_error=True)
                done.append(gone._node)
            if done:
                with contextlib.suppress(errors.OpError):
                    self.run([], done)

    def close(self):
        """Ends the session; what runs ends with CancelledError."""
        if self._core is not None:
            self._core.close()

    def run(self, fetches, targets=(), feeds=(), values=()):
        """A list of arrays. The arguments are tensors, nodes, tensors, eager tensors."""
        self._prepare()
        with self._named_errors():
            found, _ = self._core.run(fetches, targets, feeds, values, b"")
        self._sent = self.graph._core.num_nodes
        return found

    @contextlib.contextmanager
    def _named_errors(self):
        try:
            yield
        except (errors.UnavailableError, errors.AbortedError) as e:
            raise type(e)._of(f"{self.name}: {e.message}") from None

    def _prepare(self):
        if self._core is None:
            with _clearing:
                if self._target not in _cleared:
                    self.reset()
                    _cleared.add(self._target)
            self._core = _headrace.ClusterSessionCore(
                self.graph._core, self._target, self.config()
            )
            self._sent = self.graph._core.num_nodes  # the session takes its time
        if self._sent != self.graph._core.num_nodes:
            self._knock()

    def run_together(self, calls, within):
        """Has Calls run one behind the other, none but the first begun later than `within`
        seconds from now. A Together; None where the master does not do that."""
        if _headrace.allows_tensorflow():
            return None  # its masters do not know how
        self._prepare()
        try:
            with self._named_errors():
                asked = [call.asked for call in calls]
                steps = self._core.run_together(asked, within)
        except errors.UnimplementedError:
            return None
        self._sent = self.graph._core.num_nodes
        return Together(self, calls, steps)

    def _knock(self):
        """UnavailableError where nobody listens at the address: calls that make a graph
        grow would wait long for who may yet come."""
        host, _, port = self._target.removeprefix("grpc://").rpartition(":")
        try:
            socket.create_connection(
                (host.strip("[]"), int(port)), _PROBE_SECONDS
            ).close()
        except OSError as e:
            raise errors.UnavailableError._of(
                f"failed to connect to {self.name} at {host}:{port}: {e}"
            ) from None

    def resource(self, key, make):
        """What make() gave when it was first asked for `key`: a tensor of the graph, or a
        tuple that begins with one."""
        if key not in self._resources:
            with building(self.graph):
                self._resources[key] = make()
        return self._resources[key]

    def captured(self, outer):
        """What a function has here in the place of a tensor that it captured."""
        if outer.dtype == _VARIANT:
            return self._dataset(outer)
        if outer.dtype != _RESOURCE:
            return self.resource(outer._id, lambda: constant(outer))
        holder = variables.of_handle(outer)
        if holder is None:
            holder = trackable.holder_of(outer)
        elif variables.whole_of(holder) is not None:
            holder = variables.whole_of(holder)
        make = getattr(holder, "_on_task", None)
        if make is None:
            raise errors.InvalidArgumentError._of(
                f"a function for {self.name} uses {outer!r}, which lies in the process of "
                "the coordinator: variables are made in the strategy's scope, datasets "
                "by create_per_worker_dataset, and of tables a tf.lookup.StaticHashTable "
                "is copied"
            )
        return make(self)

    def _dataset(self, outer):
        try:
            with stack.entering(None):
                text = raw.DatasetToGraphV2(outer)
        except errors.OpError as e:
            raise errors.InvalidArgumentError._of(
                f"a function for {self.name} uses a dataset or value that only the "
                f"coordinator's process has: {e.message}"
            ) from None
        with building(self.graph):
            return raw.DatasetFromGraph(constant(text))

    def call(self, concrete, leaves):
        """The result of a ConcreteFunction here; of its arguments, tensors of the graph
        are taken as they are, the values of others are sent."""
        leaves = [*leaves, *concrete._graph.deferred_values()]
        return concrete._pack(self.call_flat(concrete, leaves))

    def call_flat(self, concrete, leaves):
        """The same as a list of tensors; `leaves` has all that the function takes."""
        program, values = self._bound(concrete, leaves)
        with _explained(concrete, program):
            return program.run(values)

    def one_call(self, concrete, leaves):
        """A Call, which is that of `call`, where it is one step; else None."""
        leaves = [*leaves, *concrete._graph.deferred_values()]
        program, values = self._bound(concrete, leaves)
        step = program.one_step(values)
        return step and Call(concrete, program, *step)

    def _bound(self, concrete, leaves):
        """A function's Program here, and the values that a run of it is given."""
        leaves = [self.captured(x) if _is_resource(x) else x for x in leaves]
        bound = {
            i: x
            for i, x in enumerate(leaves)
            if isinstance(x, _headrace.SymbolicTensor)
        }
        known = self._placed.setdefault(concrete, {})
        key = tuple((i, x._id) for i, x in bound.items())
        if key not in known:
            known[key] = _placed(self, concrete, bound)
        return known[key], [x for i, x in enumerate(leaves) if i not in bound]

    def outputs(self, concrete):
        """The tensors that a ConcreteFunction without arguments gives, in the graph."""
        graph, given = concrete.graph, self._captures(concrete)
        with stack.entering(None):
            values = graph.deferred_values()
        for placeholder, value in zip(concrete.inputs, values):
            with building(self.graph):
                given[placeholder.name] = constant(value)
        wanted = [t.name for t in concrete.outputs]
        return self.import_graph(_body_of(concrete), given, wanted, graph.name)

    def _captures(self, concrete):
        return {
            placeholder.name: self.captured(outer)
            for outer, placeholder in concrete.graph.captures
        }

    def import_graph(self, graph_def, given, wanted, name):
        """Puts a GraphDef into the graph; `given`, {"node:0": tensor}, are inputs. The
        tensors and operations that `wanted` names."""
        name = _NOT_IN_NAMES.sub("_", name).lstrip("_") or "function"
        with building(self.graph):
            return import_graph_def(graph_def, given, wanted, name=name)


@contextlib.contextmanager
def _explained(concrete, program):
    """Errors of a run say where the function's code is."""
    try:
        yield
    except errors.OpError as e:
        call_stacks.explain_run(e, concrete._graph, program.scope)
        raise


class Call:
    """A function's call that is one step of a task.

    Attributes:
      asked: what Task.run takes.
    """

    def __init__(self, concrete, program, asked, outputs):
        self.asked = asked
        self._concrete, self._program, self._outputs = concrete, program, outputs

    def result(self, found):
        """The function's result, of the arrays that the step gave."""
        return self._concrete._pack(self._outputs(found))

    def explained(self):
        """A context, as _explained."""
        return _explained(self._concrete, self._program)


class Together:
    """Calls under way on a task, one behind the other.

    Attributes:
      calls: those that may have begun and whose results are not known.
    """

    def __init__(self, task, calls, steps):
        self._task, self._steps = task, steps
        self.calls = list(calls)
        self._known = 0  # results that were given
        self._is_given_back = False

    def results(self, seconds):
        """The results that are new: those of the first ones among `calls`, which are none
        of them any more. Waits for all, for so many seconds at most. Where nothing comes
        by then, has the task begin no more of them: `calls` are then those that it has
        begun.

        Raises: the error of the first one among `calls`, behind results that were given.
        """
        with self._task._named_errors():
            ended = self._steps.wait(seconds)
            found = self._steps.take()
            new = [call.result(x) for call, x in zip(self.calls, found)]
            del self.calls[: len(new)]
            self._known += len(new)
            if new or not self.calls:
                return new
            if ended:
                with self.calls[0].explained():
                    self._steps.check()
                self.calls = []  # not begun
            elif not self._is_given_back:
                begun = self._steps.give_back()
                self._is_given_back = begun is not None
                if self._is_given_back:
                    del self.calls[max(0, begun - self._known) :]
        return new


def building(graph):
    """A context in which operations go into that graph alone."""
    return stack.entering(graph)


def constant(value):
    """An eager tensor in the graph that operations go to."""
    return tf.constant(value.numpy(), value.dtype)


_bodies = weakref.WeakKeyDictionary()  # ConcreteFunction -> GraphDef
_NOTHING = ("Placeholder", "Const", "VarHandleOp")


def _body_of(concrete):
    """The GraphDef of a function, with one node behind all that is done in it."""
    if concrete not in _bodies:
        made = inlining.inlined(concrete.graph.as_graph_def())
        read = {i.lstrip("^").partition(":")[0] for n in made.node for i in n.input}
        last = [n.name for n in made.node if n.name not in read]
        for node in made.node:
            if "/job:localhost/" in node.device:
                node.device = ""
        effects = made.node.add(name=_EFFECTS, op="NoOp")
        kinds = {n.name: n.op for n in made.node}
        effects.input.extend(f"^{n}" for n in last if kinds[n] not in _NOTHING)
        _bodies[concrete] = made
    return _bodies[concrete]


_NOT_IN_NAMES = re.compile("[^A-Za-z0-9_.-]")
_EFFECTS = "all_effects"


def _placed(task, concrete, bound):
    """The Program of a ConcreteFunction on a task; `bound` are those of its arguments, by
    number, that are tensors of the task's graph."""
    inputs = concrete.inputs
    count = len(inputs) - len(concrete.graph.captures)
    arguments = [t.op.name for t in inputs[:count]]
    given = {arguments[i]: x for i, x in bound.items()}
    for name, tensor in task._captures(concrete).items():
        given[name.removesuffix(":0")] = tensor
    fed = [name for i, name in enumerate(arguments) if i not in bound]
    outputs = [t.name for t in concrete.outputs]
    effects = [] if outputs else [_EFFECTS]
    made = task, _body_of(concrete), given, fed, outputs, effects
    return Program(*made, concrete.graph.name)


class Cluster:
    """The tasks of a cluster that this process coordinates: `servers`, of which each is a
    Task, in the order in which variables are given to them."""

    def __init__(self, spec):
        self.spec = spec
        self.servers = [
            Task(name_of("ps", i), spec.task_address("ps", i))
            for i in spec.task_indices("ps")
        ]
        self.workers = spec.task_indices("worker")
        address = self.servers[0]._target.removeprefix("grpc://")
        self._own = Task(self.servers[0].name, address, ["/job:ps"])
        self._readers = {}

    def call(self, concrete, leaves):
        """The results of a function that the coordinator's own code calls: the first
        server runs it."""
        with self._own.lock:
            return self._own.call_flat(concrete, leaves)

    def worker(self, index):
        """A Task of a worker, which knows all servers as well."""
        address = self.spec.task_address("worker", index)
        return Task(name_of("worker", index), address, ["/job:ps"])

    def reader(self, index):
        """A Task of a worker beside the one by which a coordinator has it run functions;
        there is one."""
        name = name_of("worker", index)
        if index not in self._readers:
            address = self.spec.task_address("worker", index)
            self._readers[index] = Task(name, address)
        return self._readers[index]

    def lost_server(self):
        """The error of a server that is gone or has begun a new life, or None."""
        for server in self.servers:
            try:
                server.check()
            except errors.OpError as e:
                return server.name, e
        return None
