"""The session that Keras of TensorFlow 1 runs graphs in."""

import weakref

from headrace.context import sessions, stack
from headrace.v1 import collections
from headrace.v1.session import Session

_manual = [False]  # whether the program gives variables their first values
_kept = []  # the session of set_session(), or the last one that was made


def get_session(op_input_list=()):
    """The default session, or Keras' own, which is of the current default graph; layers'
    variables that have no value yet are given their first one.

    With several graphs `op_input_list`, tensors or variables, says which is meant.
    """
    graphs = [x.graph for x in op_input_list if hasattr(x, "graph")]
    graph = graphs[0] if graphs else stack.default_graph()
    session = sessions.get_default_session()
    if session is None:
        if not _kept or _kept[0].graph is not graph:
            _kept[:] = [Session(graph=graph)]
        session = _kept[0]
    if not _manual[0]:
        _initialize(session)
    return session


def manual_variable_initialization(value):
    """Whether the program itself runs the initializers of variables in graphs; else
    get_session() does. Variables of programs that run eagerly begin with their values.
    """
    _manual[0] = bool(value)


def set_session(session):
    """Makes a session Keras' own, until another one is set or another graph begins."""
    _kept[:] = [] if session is None else [session]


def forget():
    """clear_session(): Keras' own session goes, and with it this thread's default graph,
    unless another graph is entered."""
    _kept[:] = []
    if stack.builds_graphs_by_default() and not stack.within_graph():
        stack.reset_default_graph()


_seen = weakref.WeakKeyDictionary()  # of sessions: how many variables have a value


def _initialize(session):
    """Runs the initializers of Keras' variables that have no value there."""
    graph = session.graph
    made = graph.__dict__.get("_keras_variables", [])
    new = made[_seen.get(session, 0) :]
    if not new:
        return
    known = graph.__dict__.setdefault("_keras_initialized", [])  # an operation each
    with graph.as_default(), stack.init_scope():
        for variable in made[len(known) :]:
            known.append(collections.is_variable_initialized(variable))
    there = session.run(known[-len(new) :])
    session.run([v.initializer for v, yes in zip(new, there) if not yes])
    _seen[session] = len(made)
