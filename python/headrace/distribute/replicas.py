"""The code of several replicas, run in turns: each until it meets the others.

The first replica runs on the caller's thread. When it calls merge_call the others run, each
on a thread of its own, one after the other until they do the same; then what they brought
is merged on the caller's thread, and all go on. Replicas that do not meet need no thread.
"""

import contextlib
import threading

from headrace import _api as tf
from headrace.context import late, stack, strategies
from headrace.distribute import contexts, values

_UNEQUAL = (
    "Some replicas made a different number of replica_context().merge_call() calls."
)


class _Stopped(BaseException):
    """Ends the code of a replica that the others will not meet again."""


class Context(contexts.ReplicaContext):
    """The ReplicaContext of one of several replicas."""

    def __init__(self, meeting, strategy, replica):
        super().__init__(strategy, replica)
        self._meeting = meeting

    def _merge_call(self, merge_fn, args, kwargs):
        return self._meeting.meet(self._replica, merge_fn, args, kwargs)


class _Replica:
    """A replica that does not run on the caller's thread, or not yet.

    Attributes:
      state: "new", "waits" in a merge_call, or "done".
    """

    def __init__(self, run, luggage):
        self.state, self.result, self.error = "new", None, None
        self.brought = self.merged = None
        self._run, self._luggage = run, luggage
        self._go, self._back = threading.Event(), threading.Event()
        self._thread = None
        self._stop = False

    def here(self):
        """Runs it on this thread, to its end."""
        with self._luggage.unpacked_in_graph():
            self.result = self._run()
        self.state = "done"

    def advance(self):
        """Runs it until it waits or is done; its error is raised."""
        self._back.clear()
        with self._luggage.unpacked_in_graph():
            if self._thread is None:
                self._thread = threading.Thread(target=self._on_thread, daemon=True)
                self._thread.start()
            else:
                self._go.set()
            self._back.wait()
        if self.error is not None:
            raise self.error

    def _on_thread(self):
        try:
            with self._luggage.on_thread():
                self.result = self._run()
        except _Stopped:
            pass
        except BaseException as e:
            self.error = e
        self.state = "done"
        self._back.set()

    def wait(self, brought):
        """Called by its code: waits until it is merged; its part of the result."""
        self.brought, self.state = brought, "waits"
        self._go.clear()
        self._back.set()
        self._go.wait()
        self.state = "new"
        if self._stop:
            raise _Stopped
        return self.merged

    def stop(self):
        """Ends its code where it waits."""
        if self._thread is not None and self.state == "waits":
            self._stop = True
            self._go.set()
            self._thread.join()


class _Luggage:
    """What code builds and where, taken from one thread to another."""

    def __init__(self):
        self._taken = strategies.luggage()
        self._graphs = list(stack.entered())
        graph = self._graph = stack.current()
        self._whereabouts = None if graph is None else graph._whereabouts()

    @contextlib.contextmanager
    def unpacked_in_graph(self):
        """The other thread goes on in the graph where it was; this one does so behind."""
        graph = self._graph
        if graph is None:
            yield
            return
        here = graph._whereabouts()
        graph._go_to(self._whereabouts)
        try:
            yield
        finally:
            self._whereabouts = graph._whereabouts()
            graph._go_to(here)

    @contextlib.contextmanager
    def on_thread(self):
        """This thread builds and runs what the other did."""
        with contextlib.ExitStack() as entered:
            for graph in self._graphs:
                entered.enter_context(stack.entering(graph))
            strategies.unpack(self._taken)
            yield


@contextlib.contextmanager
def _as_further_replica(i):
    """Operations of a graph have the replica in their names, and v1.get_variable finds
    what the first replica has made."""
    graph = stack.current()
    if graph is None:
        yield
        return
    scope = graph.get_name_scope()
    name = f"{scope}/replica_{i}/" if scope else f"replica_{i}/"
    with graph.name_scope(name), late.finding_variables():
        yield


class Meeting:
    """One call of Strategy.run: the replicas and where they meet."""

    def __init__(self, strategy, devices, fn, args, kwargs):
        self._strategy = strategy
        self._made = []  # variables of the first replica, which the others share
        self._replicas = []
        for i, device in enumerate(devices):
            part = values.select(i, (args, kwargs))
            code = self._code(i, device, fn, *part)
            self._replicas.append(_Replica(code, _Luggage()))
        self._in_turn = None  # of the replica on the caller's thread

    def _code(self, i, device, fn, args, kwargs):
        def run():
            context = Context(self, self._strategy, i)
            creator = self._strategy.extended._shared_creator(i, self._made)
            with (
                tf.device(device),
                contexts.entering(self._strategy, context, i),
                tf.variable_creator_scope(creator),
                _as_further_replica(i) if i else contextlib.nullcontext(),
            ):
                return fn(*args, **kwargs)

        return run

    def run(self):
        """The results of the replicas, in order."""
        first, *others = self._replicas
        try:
            self._in_turn = first
            first.here()
            for replica in others:
                if replica.state == "new" and replica._thread is None:
                    self._in_turn = replica
                    replica.here()
                    continue
                replica.advance()
                if replica.state == "waits":
                    raise RuntimeError(_UNEQUAL)
        finally:
            for replica in others:
                replica.stop()
        return [replica.result for replica in self._replicas]

    def meet(self, i, merge_fn, args, kwargs):
        """A replica has come to merge_call: its part of the result."""
        replica = self._replicas[i]
        if replica is not self._in_turn:
            return replica.wait((args, kwargs))
        if i:
            raise RuntimeError(_UNEQUAL)  # the first one is done, and did not come
        brought = [(args, kwargs)]
        for other in self._replicas[1:]:
            other.advance()
            if other.state == "done":
                raise RuntimeError(_UNEQUAL)
            brought.append(other.brought)
        args, kwargs = values.regroup(brought)
        with contexts.entering(self._strategy), tf.device(None):
            merged = merge_fn(self._strategy, *args, **kwargs)
        for n, other in enumerate(self._replicas):
            other.merged = values.select(n, merged)
        return replica.merged
