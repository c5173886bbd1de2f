"""Which graph is being built on this thread."""

import threading

from headrace._load import _headrace
from headrace.context import late


class _State(threading.local):
    def __init__(self):
        self.entered = []  # graphs, None for eager
        self.default = None  # where nothing is entered: made when first asked for


_state = _State()
_control_flow_v2 = [True]  # whether branches and loops are functions everywhere
_builds_graphs = [False]  # what happens where nothing is entered


def entered():
    """Graphs entered on this thread, innermost last; None stands for eager."""
    if _builds_graphs[0]:
        return [thread_graph(), *_state.entered]
    return _state.entered


def within_reach():
    """Identities of the graphs whose tensors can be read here."""
    found = set()
    for graph in entered():
        if graph is not None:
            found.add(graph._core.id)
            found |= graph.stands_in
    return found


def current():
    """The graph that operations go to, or None when they run at once."""
    if _state.entered:
        return _state.entered[-1]
    return thread_graph() if _builds_graphs[0] else None


def thread_graph():
    """This thread's own default graph, made when it is first asked for."""
    if _state.default is None:
        _set_default(late.Graph())
    return _state.default


def default_graph():
    """tf.compat.v1.get_default_graph(): the innermost graph entered, or this thread's
    own, which all operations go to after tf.compat.v1.disable_eager_execution()."""
    if _state.entered and _state.entered[-1] is not None:
        return _state.entered[-1]
    return thread_graph()


def last_operation():
    """Called natively: the operation that was added last to the current graph."""
    graph = current()
    return None if graph is None else graph._last_operation()


def _set_default(graph):
    _state.default = graph
    _headrace.set_default_graph(None if graph is None else graph._core)


def has_default_graph():
    """Whether this thread's own default graph was asked for."""
    return _state.default is not None


def build_graphs_by_default(on):
    """Whether operations where no graph is entered go to the thread's default graph,
    instead of being run at once: on this thread and all others."""
    _builds_graphs[0] = on
    _headrace.build_graphs_by_default(on)


def builds_graphs_by_default():
    """Whether operations where no graph is entered go to a default graph."""
    return _builds_graphs[0]


def reset_default_graph():
    """Forgets this thread's own default graph; AssertionError inside of another."""
    if within_graph():
        raise AssertionError(
            "Do not use tf.reset_default_graph() to clear nested graphs. If you need a "
            "cleared graph, exit the nesting and create a new graph."
        )
    _set_default(None)
    global _resets
    _resets += 1


_resets = 0


def times_reset():
    """How often reset_default_graph() was called: names are counted anew behind it."""
    return _resets


class entering:  # noqa: N801
    """A context in which operations go to `graph` (None: run at once)."""

    def __init__(self, graph):
        self._graph = graph

    def __enter__(self):
        # What may find no memory comes first: nobody leaves what was not entered.
        _state.entered.append(self._graph)
        try:
            if self._graph is None:
                _headrace.push_eager()
            else:
                _headrace.push_graph(self._graph._core)
        except BaseException:
            _state.entered.pop()
            raise
        return self._graph

    def __exit__(self, *error):
        _state.entered.pop()
        _headrace.pop_emitter()
        return False


def plain_graph():
    """The graph that a session will run and that operations go to; None where they run
    at once or a function is traced."""
    graph = current()
    return None if graph is None or graph.building_function else graph


def outside_functions():
    """The graph that operations go to but for functions being traced, None where they
    run at once."""
    for graph in reversed(_state.entered):
        if graph is None or not graph.building_function:
            return graph
    return thread_graph() if _builds_graphs[0] else None


def in_branch_of_plain_graph():
    """Whether the body of a branch or loop of a session's graph is being built, and no
    function in between."""
    for graph in reversed(entered()):
        if graph is None:
            return False
        if not graph.building_function:
            return graph is not current()
        if not getattr(graph, "is_branch", False):
            return False
    return False


class init_scope:  # noqa: N801  (upstream's name)
    """Lifts what is inside out of functions being traced and control flow. Names go on
    in the scope of the function."""

    def __init__(self):
        self._inside = []

    def __enter__(self):
        scope = late.name_scope()
        outer = outside_functions()
        stopped = _headrace.StopRecording()
        stopped.enter()
        context = entering(outer)
        context.__enter__()
        controls = flow = None
        if outer is not None:
            controls = outer._core.control_inputs()
            outer._core.set_control_inputs([])
            flow = _headrace.flow_context(outer._core), outer._flow_context
            _headrace.set_flow_context(outer._core, None, False)
            outer._flow_context = None
        old = late.set_name_scope(scope)
        self._inside.append((context, stopped, outer, controls, flow, old))

    def __exit__(self, *error):
        context, stopped, outer, controls, flow, old = self._inside.pop()
        late.set_name_scope(old)
        if outer is not None:
            outer._core.set_control_inputs(controls)
            _headrace.set_flow_context(outer._core, *flow[0])
            outer._flow_context = flow[1]
        context.__exit__(*error)
        stopped.exit()
        return False


def within_graph():
    """Whether this thread is within a graph that was entered."""
    return any(graph is not None for graph in _state.entered)


def set_control_flow_v2(on):
    """Whether branches and loops of sessions' graphs are functions, too."""
    _control_flow_v2[0] = on


_all_v2 = [True]  # whether the program did not ask for all of TensorFlow 1's ways


def set_all_v2(on):
    """Whether all of TensorFlow 2's ways hold, or all of TensorFlow 1's."""
    _all_v2[0] = on


def all_v2():
    """Whether the program did not ask for all of TensorFlow 1's ways."""
    return _all_v2[0]


def control_flow_v2_enabled():
    """Whether branches and loops made now are functions: always while one is traced."""
    return _control_flow_v2[0] or inside_function()


def executing_eagerly():
    """True when operations run at once."""
    return _headrace.is_eager()


def executing_eagerly_outside_functions():
    """True when, but for functions being traced, operations run at once."""
    return outside_functions() is None


def inside_function():
    """True while a tf.function is being traced."""
    graph = current()
    return graph is not None and graph.building_function
