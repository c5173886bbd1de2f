"""Why functions are traced again: told when asked, and warned of when too often."""

import collections
import reprlib
import weakref

from headrace._load import _headrace
from headrace.context.locks import ForkLock
from headrace.framework.settings import logging
from headrace.function import trace_types

_TRACES_TO_WARN = 5  # within ...
_CALLS_TO_WATCH = 10  # ... so many calls
_MOST_WARNINGS = 2

_RETRACING = (
    "%d out of the last %d calls to %s triggered tf.function retracing. Tracing is "
    "expensive and the excessive number of tracings could be due to (1) creating "
    "@tf.function repeatedly in a loop, (2) passing tensors with different shapes, (3) "
    "passing Python objects instead of tensors. For (1), please define your "
    "@tf.function outside of the loop. For (2), @tf.function has reduce_retracing=True "
    "option that can avoid unnecessary retracing. For (3), please refer to "
    "https://www.tensorflow.org/guide/function#controlling_retracing and "
    "https://www.tensorflow.org/api_docs/python/tf/function for  more details.%s"
)


def _shown(t):
    if isinstance(t, trace_types.Literal):
        return reprlib.repr(t.value)
    if isinstance(t, trace_types.Object):
        return t.described
    text = repr(t)
    return text if len(text) <= 200 else text[:197] + "..."


def _differences(path, old, new, out):
    """Appends (path, old, new) of the parts of two types that differ."""
    if old == new:
        return
    if isinstance(old, trace_types.Structure) and old.same_shape(new):
        for place, a, b in zip(old.places(), old.items, new.items):
            _differences(path + place, a, b, out)
    else:
        out.append((path, old, new))


class Retraces(_headrace.Retraces):
    """What changed at each of a function's traces, against the most similar one."""

    def __init__(self, names):
        super().__init__()
        self._names = names  # of the parameters

    def compare(self, types, traces):
        """Text that says how `types` differ from those of the nearest of the last
        `traces`, ConcreteFunctions; None without any."""
        differences = []
        for old in traces[-self.MOST_COMPARED :]:
            found = []
            for name, a, b in zip(self._names, old._function_type.types, types):
                _differences(name, a, b, found)
            differences.append(found)
        nearest = self.nearest(list(map(len, differences)))
        if nearest is None:
            return None
        return self.reason(
            [(path, _shown(a), _shown(b)) for path, a, b in differences[nearest]]
        )


class RetracingWatch:
    """Counts calls and traces to warn of functions that are traced too often.

    Functions made of the same code share one: making them in a loop is such a case.
    """

    def __init__(self):
        self._functions = weakref.WeakSet()
        self._lock = ForkLock()
        self._others = 0  # calls without tracing since the last trace
        self._runs = []  # calls from each trace to the next
        self._warnings = 0

    def add(self, function):
        with self._lock:
            self._functions.add(function)

    def called(self, count=1):
        """Calls that traced nothing."""
        self._others += count

    def traced(self, name, reason):
        """A call was traced, and went well."""
        with self._lock:
            self._others += sum(f._take_calls() for f in self._functions)
            if self._runs:
                self._runs[-1] += self._others
            self._others = 0
            self._runs.append(1)
            runs = self._runs
            while len(runs) > 1 and sum(runs) - runs[0] > _CALLS_TO_WATCH:
                runs.pop(0)
            if self._warnings >= _MOST_WARNINGS or len(runs) < _TRACES_TO_WARN:
                return
            self._warnings += 1
            told = len(runs), sum(runs), name, f" Here {reason}." if reason else ""
        logging.warn(_RETRACING, *told)


_watches = collections.OrderedDict()
_MOST_WATCHES = 1024


def watch_of(python_function):
    """The watch of a function's code."""
    code = getattr(python_function, "__code__", None)
    if code is None:
        return RetracingWatch()
    key = (code.co_filename, code.co_firstlineno, code.co_name, hash(code.co_code))
    watch = _watches.pop(key, None) or RetracingWatch()
    _watches[key] = watch
    while len(_watches) > _MOST_WATCHES:
        _watches.popitem(last=False)
    return watch
