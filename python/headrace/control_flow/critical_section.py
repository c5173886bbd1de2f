"""tf.CriticalSection: parts of a program that one step at a time is in."""

import contextlib
import threading

from headrace._load import _headrace, raw
from headrace.context import stack
from headrace.context.properties import read_only
from headrace.framework import conversion, dtypes, execution, name_scopes, nest

_SECTIONS, _EXECUTIONS = "critical_sections", "critical_section_executions"
_entered = threading.local()  # .keys: the sections that this thread is in


class _Execution:
    """One execute() in a graph: its lock, and the resources that it uses."""

    def __init__(self, section, lock, resources, exclusive):
        self.section, self.lock = section, lock
        self.resources, self.exclusive = resources, exclusive

    def __repr__(self):
        return (
            f"_ExecutionSignature(op={self.lock!r}, handle={self.section._handle!r}, "
            f"resources={self.resources}, exclusive_resource_access={self.exclusive})"
        )


class CriticalSection:
    """A lock that execute() holds while it runs a function: others wait.

    Eager code, traced functions and the graphs of sessions all wait for each other. Of
    one `shared_name` are all sections of that name (in graphs, those of one session).
    """

    def __init__(
        self, name=None, shared_name=None, critical_section_def=None, import_scope=None
    ):
        if critical_section_def is not None and (name or shared_name):
            raise ValueError(
                f"Arguments critical_section_def={critical_section_def} and shared_name="
                f"{shared_name} are mutually exclusive. Please only specify one of them."
            )
        if critical_section_def is not None:
            raise ValueError("Argument `critical_section_def` is not supported.")
        if shared_name is not None and not isinstance(shared_name, str):
            raise TypeError(
                f"Expected string for argument 'shared_name' not {shared_name}."
            )
        self._key = shared_name or id(self)
        with execution.init_scope():
            with name_scopes.name_scope(name, "CriticalSection") as scope:
                self._handle = raw.MutexV2(
                    container="", shared_name=shared_name or "", name=scope
                )
            self._name = name or "CriticalSection"
            if not _headrace.is_eager():
                self._name = self._handle.op.name
                stack.default_graph().add_to_collection(_SECTIONS, self)

    name = read_only("_name", "The name of the operation, or what it would be.")

    def execute(self, fn, exclusive_resource_access=True, name=None):
        """What fn() returns, run while nothing else is in this section.

        Args:
          fn: takes no arguments. In graphs all operations that it makes are in the
            section, and what it returns (a structure of tensors) is there when the
            section is left.
          exclusive_resource_access: in graphs no other section's execute() may use the
            resources that `fn` uses, unless both say False.
          name: of the scope of the operations.

        Raises:
          ValueError: `fn` enters the section again, returns None or nothing in a graph,
            or uses a resource that another section uses.
        """
        if not callable(fn):
            raise TypeError(f"'{type(fn).__name__}' object is not callable")
        with self._entered():
            if not _headrace.is_eager():
                with name_scopes.name_scope(name, "critical_section_execute"):
                    return self._in_graph(fn, bool(exclusive_resource_access))
            lock = [raw.MutexLock(self._handle)]
            try:
                return nest.map_structure(_tensor, fn())
            finally:
                lock.clear()  # it is let go with its tensor, which a traceback may hold

    @contextlib.contextmanager
    def _entered(self):
        inside = _entered.__dict__.setdefault("keys", [])
        if self._key in inside:
            raise ValueError(
                f"Attempting to lock a CriticalSection ({self._name}) in which we are "
                "already running. This is illegal and may cause deadlocks."
            )
        inside.append(self._key)
        try:
            yield
        finally:
            inside.remove(self._key)

    def _in_graph(self, fn, exclusive):
        graph = stack.default_graph()
        lock = raw.MutexLock(self._handle)
        before = set(graph.get_operations())
        with execution.control_dependencies([lock]):
            result = nest.map_structure(_returned, fn(), expand_composites=True)
        if not nest.flatten(result):
            raise ValueError("'tensors' must have at least one Tensor. Received: [].")
        made = [
            op
            for op in graph.get_operations()
            if op not in before and op.type != "Placeholder"
        ]
        self._check_resources(graph, lock, made, exclusive)
        # What the section uses from without is there before it is entered: it could wait
        # for another execute() of the section otherwise.
        inside = {*made, lock.op}
        used = {t.op for op in made for t in op.inputs} | {
            c for op in made for c in op.control_inputs
        }
        lock.op._add_control_inputs(
            [op for op in used if op not in inside and op.type != "Placeholder"]
        )
        with execution.control_dependencies(made):
            left = raw.ConsumeMutexLock(lock)
        with execution.control_dependencies([left]):
            return nest.map_structure(_after, result, expand_composites=True)

    def _check_resources(self, graph, lock, made, exclusive):
        def names(tensors):
            return [t.name for t in tensors]

        found = []
        for tensor in (t for op in made for t in op.inputs):
            if tensor.dtype == dtypes.resource and tensor.name not in names(found):
                found.append(tensor)
        for other in graph.get_collection(_EXECUTIONS):
            if other.section._key == self._key or not (exclusive or other.exclusive):
                continue
            shared = [t for t in found if t.name in names(other.resources)]
            if shared:
                raise ValueError(
                    f"This execution would access resources: {shared}. Either this lock "
                    f"(CriticalSection: {self._handle}) or lock '{other}' "
                    f"(CriticalSection: {other.section._handle}) requested exclusive "
                    "resource access of this resource. Did you mean to call execute "
                    "with keyword argument exclusive_resource_access=False?"
                )
        done = _Execution(self, lock.op, found, exclusive)
        graph.add_to_collection(_EXECUTIONS, done)


def _is_operation(x):
    return not isinstance(x, _headrace.Tensor) and hasattr(x, "node_def")


def _tensor(x):
    """A tensor, or what is made of tensors."""
    if x is None or getattr(type(x), "_is_composite_tensor", False):
        return x
    return conversion.convert_to_tensor(x)


def _returned(x):
    if x is None:
        raise ValueError(
            "Tried to convert 'input' to a tensor and failed. Error: None values not "
            "supported."
        )
    return x if _is_operation(x) else _tensor(x)


def _after(x):
    return execution.group(x) if _is_operation(x) else raw.Identity(x)
