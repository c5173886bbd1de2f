"""tf.test.Benchmark: classes whose methods measure, and what reports of them."""

import os
import re
import sys
import time

import numpy as np

from headrace import _api as tf
from headrace._load import _headrace
from headrace.framework.support import protos
from headrace.v1 import timelines

_PREFIX = "TEST_REPORT_FILE_PREFIX"  # the environment's variable of reports' files
_classes = {}  # {module and name: class}, as they are defined


class Benchmark:
    """Measures in methods named `benchmark...` of classes derived from it.

    tf.test.main with --benchmarks=REGEX runs those that match. Reports are
    BenchmarkEntries, written to files that begin with the environment's
    TEST_REPORT_FILE_PREFIX, else printed.
    """

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        _classes[f"{cls.__module__}.{cls.__qualname__}"] = cls

    @classmethod
    def is_abstract(cls):
        """Whether it is one of the bases, Benchmark itself, and never run."""
        return cls.__module__ == __name__

    def _get_name(self, overwrite_name=None):
        """The name of a report: of the method that runs, or the one that is given."""
        frame, method = sys._getframe(1), None
        while frame is not None:
            if frame.f_locals.get("self") is self:
                method = frame.f_code.co_name
            frame = frame.f_back
        if method is None:
            raise ValueError("Unable to determine calling Benchmark class.")
        return f"{type(self).__name__}.{overwrite_name or method}"

    def report_benchmark(
        self,
        iters=None,
        cpu_time=None,
        wall_time=None,
        throughput=None,
        extras=None,
        name=None,
        metrics=None,
    ):
        """Reports what was measured.

        Args:
          iters: how many turns there were.
          cpu_time: seconds of the processor.
          wall_time: seconds of the clock.
          throughput: in what unit there is, a number.
          extras: {name: number or text}.
          name: what to call it; the method's name by default.
          metrics: dicts of "name", "value" and, where there are limits, "min_value" and
            "max_value".

        Raises:
          OSError: if the file is there already.
        """
        entry = protos.BenchmarkEntry(name=self._get_name(name))
        for field, value in (
            ("iters", iters),
            ("cpu_time", cpu_time),
            ("wall_time", wall_time),
            ("throughput", throughput),
        ):
            if value is not None:
                setattr(entry, field, value)
        for key, value in (extras or {}).items():
            kind = "string_value" if isinstance(value, str) else "double_value"
            setattr(entry.extras[key], kind, value)
        for metric in metrics or ():
            made = entry.metrics.add(name=metric["name"], value=metric["value"])
            for limit in ("min_value", "max_value"):
                if metric.get(limit) is not None:
                    getattr(made, limit).value = metric[limit]
        _write(entry)

    def evaluate(self, tensors):
        """The tensors' values, in graphs those in the default session."""
        if _headrace.is_eager():
            return tf.nest.map_structure(lambda t: t.numpy(), tensors)
        return tf.compat.v1.get_default_session().run(tensors)

    def run_op_benchmark(
        self,
        sess,
        op_or_tensor,
        feed_dict=None,
        burn_iters=2,
        min_iters=10,
        store_trace=False,
        store_memory_usage=True,
        name=None,
        extras=None,
        mbs=0,
    ):
        """Runs an operation, or a tensor's, again and again, and reports the median.

        Args:
          sess: a session.
          op_or_tensor: what it runs; a tensor is not fetched.
          feed_dict: what it is fed.
          burn_iters: how many turns come before those that are measured.
          min_iters: how many turns are measured.
          store_trace: whether a further turn's timeline is reported, in Chrome's form.
          store_memory_usage: whether the most bytes of each allocator are, as far as
            the session tells.
          name: what to call it; the method's name by default.
          extras: further {name: number or text} to report.
          mbs: how many megabytes a turn goes through, for the throughput; 0: unknown.

        Returns:
          A dict of "iters", "wall_time", "extras", "name" and "throughput".
        """
        op = op_or_tensor.op if tf.is_tensor(op_or_tensor) else op_or_tensor
        for _ in range(burn_iters):
            sess.run(op, feed_dict=feed_dict)
        seconds = [_seconds(sess, op, feed_dict) for _ in range(min_iters)]
        extras = dict(extras or {})
        if store_trace or store_memory_usage:
            stats = _traced(sess, op, feed_dict)
            if store_trace:
                extras["full_trace_chrome_format"] = timelines.chrome_trace(stats)
            if store_memory_usage:
                extras.update(_most_bytes(stats))
        median = float(np.median(seconds)) if seconds else -1.0
        found = {"iters": min_iters, "wall_time": median, "extras": extras}
        found["name"] = self._get_name(name)
        found["throughput"] = mbs / median
        throughput = found["throughput"] if mbs else None
        self.report_benchmark(min_iters, None, median, throughput, extras, name)
        return found


def _write(entry):
    entries = protos.BenchmarkEntries(entry=[entry])
    prefix = os.environ.get(_PREFIX)
    if prefix is None:
        print(entries)
        return
    path = prefix + entry.name.replace("/", "__")
    if os.path.exists(path):
        raise OSError(f"File already exists: {path}")
    with open(path, "wb") as file:
        file.write(entries.SerializeToString())


def _seconds(session, op, feed_dict):
    begin = time.time()
    session.run(op, feed_dict=feed_dict)
    return time.time() - begin


def _traced(session, op, feed_dict):
    """The StepStats of a run."""
    options = tf.compat.v1.RunOptions(trace_level=tf.compat.v1.RunOptions.FULL_TRACE)
    metadata = tf.compat.v1.RunMetadata()
    session.run(op, feed_dict=feed_dict, options=options, run_metadata=metadata)
    return metadata.step_stats


def _most_bytes(stats):
    """{a name of each allocator: the most bytes that a node had of it}."""
    found = {}
    for device in stats.dev_stats:
        for node in device.node_stats:
            for memory in node.memory:
                key = f"allocator_maximum_num_bytes_{memory.allocator_name}"
                found[key] = max(found.get(key, 0), memory.peak_bytes)
    return found


def benchmark_config():
    """A ConfigProto for measuring: operations are not left out as unneeded."""
    config = tf.compat.v1.ConfigProto()
    rewriter = type(config.graph_options.rewrite_options)
    config.graph_options.rewrite_options.dependency_optimization = rewriter.OFF
    return config


def run_matching(regex):
    """Runs the methods of all classes whose name and theirs the regex is found in."""
    pattern = None if regex == "all" else re.compile(regex)
    for full, cls in list(_classes.items()):
        if cls.is_abstract():
            continue
        for method in sorted(n for n in dir(cls) if n.startswith("benchmark")):
            name = f"{full}.{method}"
            if callable(getattr(cls, method)) and (
                pattern is None or pattern.search(name)
            ):
                getattr(cls(), method)()
