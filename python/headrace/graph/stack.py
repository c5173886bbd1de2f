"""Which graph is being built on this thread."""

import threading

from headrace._load import _headrace


class _State(threading.local):
    def __init__(self):
        self.entered = []  # graphs, None for eager


_state = _State()
_default = []


def entered():
    """Graphs entered on this thread, innermost last; None stands for eager."""
    return _state.entered


def current():
    """The graph that operations go to, or None when they run at once."""
    return _state.entered[-1] if _state.entered else None


def default_graph():
    """tf.compat.v1.get_default_graph()."""
    graph = current()
    return global_graph() if graph is None else graph


def global_graph():
    """The graph that is the default where none was entered."""
    if not _default:
        from headrace.graph.graph import Graph

        _default.append(Graph())
    return _default[0]


def reset_default_graph():
    """Forgets the global default graph."""
    if any(g is not None for g in _state.entered):
        raise AssertionError(
            "Do not use tf.reset_default_graph() to clear nested graphs. If you need a "
            "cleared graph, exit the nesting and create a new graph."
        )
    _default.clear()


class entering:  # noqa: N801
    """A context in which operations go to `graph` (None: run at once)."""

    def __init__(self, graph):
        self._graph = graph

    def __enter__(self):
        if self._graph is None:
            _headrace.push_eager()
        else:
            _headrace.push_graph(self._graph._core)
        _state.entered.append(self._graph)
        return self._graph

    def __exit__(self, *error):
        _state.entered.pop()
        _headrace.pop_emitter()
        return False


class init_scope:  # noqa: N801  (upstream's name)
    """Lifts what is inside out of functions being traced and control flow."""

    def __init__(self):
        self._inside = []

    def __enter__(self):
        outer = None
        for graph in reversed(_state.entered):
            if graph is None or not graph.building_function:
                outer = graph
                break
        stopped = _headrace.StopRecording()
        stopped.enter()
        context = entering(outer)
        context.__enter__()
        controls = None
        if outer is not None:
            controls = outer._core.control_inputs()
            outer._core.set_control_inputs([])
        self._inside.append((context, stopped, outer, controls))

    def __exit__(self, *error):
        context, stopped, outer, controls = self._inside.pop()
        if outer is not None:
            outer._core.set_control_inputs(controls)
        context.__exit__(*error)
        stopped.exit()
        return False


def executing_eagerly():
    """True when operations run at once."""
    return _headrace.is_eager()


def executing_eagerly_outside_functions():
    """True when, but for functions being traced, operations run at once."""
    for graph in reversed(_state.entered):
        if graph is None:
            return True
        if not graph.building_function:
            return False
    return True


def inside_function():
    """True while a function is being traced."""
    graph = current()
    return graph is not None and graph.building_function
