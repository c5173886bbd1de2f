"""tf.summary.trace_on, trace_export, trace_off: graphs and profiles of what runs."""

import collections

from headrace._load import _headrace
from headrace.context import stack
from headrace.context.locks import ForkLock
from headrace.framework.settings import logging
from headrace.summary import metadata as metadata_
from headrace.summary import profiler as profiler_
from headrace.summary import writing

_Trace = collections.namedtuple("_Trace", "graph profiler")
_lock = ForkLock()
_current = None  # the _Trace under way in the process


def _may(in_function, otherwise):
    """False, with a warning, inside traced functions and graphs."""
    if not stack.executing_eagerly():
        logging.warn(in_function if stack.inside_function() else otherwise)
        return False
    return True


def trace_on(graph=True, profiler=False, profiler_outdir=None):
    """Begins to collect what `trace_export` writes: the graphs of the functions that
    run and, where `profiler` is true, a profile, written under `profiler_outdir`.

    Warns and does nothing inside traced functions and graphs, and where a trace is
    under way. AlreadyExistsError where another profile is.
    """
    global _current
    if not _may(
        "Cannot enable trace inside a tf.function.",
        "Must enable trace in eager mode.",
    ):
        return
    with _lock:
        if _current is not None:
            logging.warn("Trace already enabled")
            return
        if profiler and profiler_outdir is None:
            logging.warn(
                "No `profiler_outdir` passed to trace_on(). Profiler won't be enabled."
            )
        elif profiler:
            profiler_.start(profiler_outdir)
        _headrace.collect_ran_functions()
        _current = _Trace(graph, profiler and profiler_outdir is not None)


def _run_metadata(graphs, steps):
    """A serialised RunMetadata: step_stats = 1, partition_graphs = 3, function_graphs =
    4 {partition_graphs = 1, pre_optimization_graph = 2, post_optimization_graph = 3}.
    `graphs`: (as traced, as planned) a function."""
    field = metadata_.field
    out = [field(1, steps)]
    for traced, planned in graphs:
        out.append(field(3, planned))
        out.append(field(4, field(1, planned) + field(2, traced) + field(3, planned)))
    return b"".join(out)


def trace_export(name, step=None, profiler_outdir=None):
    """Ends the trace and writes it to the default writer, if there is one: a summary
    of tag `name` with the functions' graphs; a profile has its own file.

    ValueError where no trace is under way, and where no step is known: then it goes
    on. `profiler_outdir` is trace_on's to say. Warns and does nothing inside traced
    functions and graphs.
    """
    global _current
    if not _may(
        "Cannot export trace inside a tf.function.",
        "Can only export trace while executing eagerly.",
    ):
        return
    if profiler_outdir is not None:
        logging.warn(
            "Ignoring `profiler_outdir` passed to trace_export(). Please pass it to "
            "trace_on() instead."
        )
    with _lock:
        if _current is None:
            raise ValueError(
                "Must enable trace before export through tf.summary.trace_on."
            )
        writing.check_step(step)
        trace, _current = _current, None
    # First: whatever fails, the process records no longer.
    steps = _headrace.stop_profile(True, True) if trace.profiler else b""
    run = _run_metadata(_headrace.take_ran_graphs(), steps)
    plugin = "graph_run_metadata"
    if trace.graph and not trace.profiler:
        plugin = "graph_run_metadata_graph"
    info = metadata_.encode(plugin, b"1")
    writing.write(name, run, step, info)


def trace_off():
    """Ends the trace under way, if there is one, and forgets what it collected."""
    global _current
    with _lock:
        trace, _current = _current, None
    if trace is None:
        return
    _headrace.take_ran_graphs()
    if trace.profiler:
        profiler_.stop(save=False)
