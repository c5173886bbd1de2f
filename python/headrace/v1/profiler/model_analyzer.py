"""Profiler, profile, advise and write_op_log."""

import os
import sys

from headrace.context import stack
from headrace.framework import execution
from headrace.v1.profiler import advice, graph_facts, outputs, views
from headrace.v1.profiler.options import Options, ProfileOptionBuilder

_DEFAULT = 0  # for options: those that the function takes by itself
_ALL_CHECKERS = {
    "ExpensiveOperationChecker": {},
    "AcceleratorUtilizationChecker": {},
    "JobChecker": {},
    "OperationChecker": {},
}


def _graph_or_default(graph):
    """The graph; None when eager, and nothing was given."""
    if graph is None and not execution.executing_eagerly():
        return stack.current()
    return graph


def _shown(facts, command, given):
    """The proto of a view, which is written where the options say."""
    if command not in views.COMMANDS:
        raise graph_facts.unknown_command(command)
    options = Options(given)
    if command == "code":
        sys.stderr.write("Note: code view ignores account_displayed_op_only\n")
        options.account_displayed_op_only = False
    kind = views.proto_of(command)
    if not outputs.is_known(options) or not graph_facts.check_step(facts, options.step):
        return kind()
    view = views.view_of(command, facts, options)
    outputs.write(command, view, facts, options)
    return view.proto(kind)


def _facts(graph, op_log, metadata=None):
    """What is known of the graph without steps."""
    if graph is None:
        return graph_facts.GraphFacts(None)
    # First: it completes shapes.
    log = graph_facts.default_log(graph, op_log, metadata)
    facts = graph_facts.GraphFacts(graph)
    facts.add_log(log)
    return facts


class Profiler:
    """Profiles of several steps of a graph.

    Args:
      graph: a tf.Graph; None: the default one.
      op_log: an OpLogProto of what is known beside the graph: types and
        floating-point operations of its operations.
    """

    def __init__(self, graph=None, op_log=None):
        self._graph = _graph_or_default(graph)
        self._op_log = op_log
        self._facts = _facts(self._graph, op_log)

    def add_step(self, step, run_meta):
        """Adds a step's RunMetadata, under the number `step`."""
        log = graph_facts.default_log(self._graph, self._op_log, run_meta)
        self._facts.add_operations()
        self._facts.add_log(log)
        self._facts.add_step(step, run_meta)

    def profile_python(self, options):
        """The lines that made operations: a MultiGraphNodeProto."""
        return _shown(self._facts, "code", options)

    def profile_operations(self, options):
        """Kinds of operations: a MultiGraphNodeProto."""
        return _shown(self._facts, "op", options)

    def profile_name_scope(self, options):
        """Operations by the parts of their names: a GraphNodeProto."""
        return _shown(self._facts, "scope", options)

    def profile_graph(self, options):
        """Operations above what they read: a GraphNodeProto."""
        return _shown(self._facts, "graph", options)

    def advise(self, options):
        """What the checkers of a dict say, as an AdviceProto; printed, too."""
        return advice.advise(self._facts, options or _ALL_CHECKERS)

    def serialize_to_string(self):
        """All that is known, as the bytes of a ProfileProto."""
        return self._facts.proto().SerializeToString()

    def _write_profile(self, filename):
        with open(filename, "wb") as f:
            f.write(self.serialize_to_string())


def profile(graph=None, run_meta=None, op_log=None, cmd="scope", options=_DEFAULT):
    """What a graph's operations cost: parameters, floating-point operations, and, with
    a RunMetadata of a run, time and memory.

    Args:
      graph: a tf.Graph; None: the default one.
      run_meta: a RunMetadata of one run with a trace.
      op_log: an OpLogProto of what is known beside the graph.
      cmd: "scope" for names, "graph" for operations above what they read, "op" for
        kinds, "code" for lines of the program.
      options: a dict, as ProfileOptionBuilder builds; the parameters of trainable
        variables where there is none.

    Returns:
      A GraphNodeProto for "scope" and "graph", else a MultiGraphNodeProto, which is
      also printed or written as the options say.
    """
    graph = _graph_or_default(graph)
    if options == _DEFAULT:
        options = ProfileOptionBuilder.trainable_variables_parameter()
    facts = _facts(graph, op_log, run_meta)
    if run_meta is not None:
        facts.add_step(1, run_meta)
    return _shown(facts, cmd, options)


def advise(graph=None, run_meta=None, options=_DEFAULT):
    """What checkers say of a graph and a run of it, as an AdviceProto; printed, too.

    `options` names checkers: a dict; all where there is none.
    """
    graph = _graph_or_default(graph)
    facts = _facts(graph, None, run_meta)
    if run_meta is not None:
        facts.add_step(1, run_meta)
    return advice.advise(facts, _ALL_CHECKERS if options == _DEFAULT else options)


def write_op_log(graph, log_dir, op_log=None, run_meta=None, add_trace=True):
    """Writes an OpLogProto of the graph to the file `tfprof_log` of a folder.

    `add_trace` adds the lines of the program that made each operation.
    """
    graph = _graph_or_default(graph)
    log = graph_facts.default_log(graph, op_log, run_meta, add_trace)
    os.makedirs(log_dir, exist_ok=True)
    with open(os.path.join(log_dir, "tfprof_log"), "wb") as f:
        f.write(log.SerializeToString())
