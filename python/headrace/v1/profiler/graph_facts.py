"""What is known of a graph's operations: from its nodes, from what ran, from logs."""

import sys

from headrace.context import call_stacks
from headrace.framework import errors
from headrace.framework.support import protos
from headrace.framework.tensor_shape import TensorShape
from headrace.v1 import collections
from headrace.v1.profiler.stats import Stats

TRAINABLE = "_trainable_variables"


class Execution:
    """What one step's statistics say of an operation."""

    def __init__(self):
        self.times = {}  # by device: (start, microseconds)
        self.accelerators = {}  # the same of streams of accelerators
        self.devices = set()
        self.memory = []  # an ExecMemory each run
        self.run_count = 0
        self.start = self.end = 0

    def add(self, device, node):
        """Adds a NodeExecStats of that device."""
        begin, length = node.all_start_micros, max(node.op_end_rel_micros, 1)
        self.start = min(self.start or begin, begin)
        self.end = max(self.end, begin + length)
        if "/stream:" in device:
            if device.endswith("/stream:all"):
                where = device.partition("/stream:")[0]
                self.accelerators.setdefault(where, []).append((begin, length))
            return
        self.run_count += 1
        self.devices.add(device)
        self.times.setdefault(device, []).append((begin, length))
        self.memory.append(_memory(node, begin + length))

    def stats(self):
        """The counts of all runs in the step."""
        cpu, accelerator = (
            sum(length for runs in times.values() for _, length in runs)
            for times in (self.times, self.accelerators)
        )
        summed = {
            field: sum(getattr(m, field) for m in self.memory)
            for field in (
                "requested_bytes",
                "peak_bytes",
                "residual_bytes",
                "output_bytes",
            )
        }
        return Stats(
            exec_micros=cpu + accelerator,
            accelerator_exec_micros=accelerator,
            cpu_exec_micros=cpu,
            run_count=self.run_count,
            **summed,
        )

    def write(self, proto):
        """Fills an ExecProfile."""
        proto.run_count = self.run_count
        proto.all_start_micros, proto.latest_end_micros = self.start, self.end
        for times, field in (
            (self.accelerators, proto.accelerator_execs),
            (self.times, proto.cpu_execs),
        ):
            for device, runs in times.items():
                for run in runs:
                    field[device].times.add(int64_values=run)
        proto.memory_execs.extend(self.memory)
        proto.devices.extend(sorted(self.devices))


def _memory(node, when):
    """What a NodeExecStats says of memory, as an ExecMemory."""
    kept = node.memory_stats
    temporary, persistent = kept.temp_memory_size, kept.persistent_memory_size
    made = protos.ExecMemory(
        memory_micros=when,
        host_temp_bytes=temporary,
        host_persistent_bytes=persistent,
        requested_bytes=temporary + persistent,
        peak_bytes=temporary + persistent,
        residual_bytes=persistent,
    )
    for used in node.memory:
        made.requested_bytes += used.total_bytes
        made.peak_bytes += used.peak_bytes
        made.residual_bytes += used.live_bytes
    for output in node.output:
        allocation = output.tensor_description.allocation_description
        made.output_bytes += allocation.allocated_bytes
        if allocation.allocated_bytes:
            made.output_memory[output.slot].bytes = allocation.allocated_bytes
            made.output_memory[output.slot].ptr = allocation.ptr
    return made


class Entry:
    """One operation: `op` is its Operation, None for a node that only ran."""

    def __init__(self, number, name, kind, op=None):
        self.id, self.name, self.kind, self.op = number, name, kind, op
        self.types = {kind}
        self.inputs = []  # (entry, output of it), control inputs last
        self.shape = None  # the sizes of what it holds; None: it holds nothing
        self.output_shapes = [] if op is None else [_sizes(t.shape) for t in op.outputs]
        self.float_ops = 0
        self.trace = []  # (file, line, function), the outermost first
        self.executions = {}
        self.device = ""

    @property
    def parameters(self):
        """How many numbers it holds."""
        if self.shape is None or any(size < 0 for size in self.shape):
            return 0
        count = 1
        for size in self.shape:
            count *= size
        return count

    def input_shapes(self):
        """{place: sizes} of what is known of its inputs."""
        found = {}
        for place, (source, index) in enumerate(self.inputs):
            shapes = source.output_shapes
            if index < len(shapes) and shapes[index] is not None:
                found[place] = shapes[index]
        return found

    def stats(self, step):
        """Its counts in a step; with -1 the means of all steps that it ran in."""
        steps = self.executions if step < 0 else [step]
        ran = [self.executions[s].stats() for s in steps if s in self.executions]
        made = Stats()
        for stats in ran:
            made.add(stats)
        for field in Stats.__slots__:
            setattr(made, field, getattr(made, field) // max(len(ran), 1))
        made.parameters = self.parameters
        made.float_ops = self.float_ops * max(made.run_count, 1)
        made.definition_count = 1
        return made

    def devices(self, step):
        """The devices that it ran on."""
        steps = self.executions if step < 0 else [step]
        ran = (self.executions[s].devices for s in steps if s in self.executions)
        return sorted(set().union(*ran))


def _sizes(shape):
    """A shape's sizes, -1 for unknown ones, [1] for a scalar's; None where the rank is
    not known."""
    if shape.rank is None:
        return None
    return [-1 if size is None else size for size in shape.as_list()] or [1]


def _held(op):
    """The sizes that the attribute "shape" of an operation says; None where none."""
    if "shape" not in op._node.attr_names():
        return None
    shape = op.get_attr("shape")
    return _sizes(shape) if isinstance(shape, TensorShape) else None


class GraphFacts:
    """All operations of a graph, by name, and the steps that were added."""

    def __init__(self, graph):
        self.graph, self.entries, self.steps = graph, {}, []
        self.has_trace = self.has_accelerator = False
        if graph is not None:
            self.add_operations()

    def add_operations(self):
        """Adds those that the graph got since."""
        operations = self.graph.get_operations()
        for op in operations[len(self.entries) :]:
            entry = Entry(len(self.entries), op.name, op.type, op)
            self.entries[op.name] = entry
            entry.shape = _held(op)
            edges = [(t.op.name, t.value_index) for t in op.inputs]
            edges += [(c.name, 0) for c in op.control_inputs]
            entry.inputs = [(self.entries[n], i) for n, i in edges if n in self.entries]

    def add_step(self, step, metadata):
        """Adds what a RunMetadata says of a step."""
        if step not in self.steps:
            self.steps.append(step)
        for device_stats in metadata.step_stats.dev_stats:
            device = _canonical(device_stats.device)
            self.has_accelerator |= "/stream:" in device
            for node in device_stats.node_stats:
                name = node.node_name.partition(":")[0]
                if name not in self.entries:
                    self.entries[name] = Entry(len(self.entries), name, name)
                entry = self.entries[name]
                entry.executions.setdefault(step, Execution()).add(device, node)
                if "/stream:" not in device:
                    entry.device = device
                    entry.types.add(device)

    def add_log(self, log):
        """Adds what an OpLogProto says of operations that are there."""
        texts = log.id_to_string
        for row in log.log_entries:
            entry = self.entries.get(row.name)
            if entry is None:
                continue
            if row.float_ops:
                entry.float_ops = row.float_ops
            entry.types.update(row.types)
            if row.code_def.traces:
                self.has_trace = True
                entry.trace = [
                    (texts[t.file_id], t.lineno, texts[t.function_id])
                    for t in row.code_def.traces
                ]

    def proto(self):
        """The ProfileProto of all that is known."""
        made = protos.ProfileProto(has_trace=self.has_trace, steps=sorted(self.steps))
        ids = Texts()
        for entry in self.entries.values():
            _write_entry(made.nodes[entry.id], entry, ids)
        for text, number in ids.numbers.items():
            made.id_to_string[number] = text
        return made


def _write_entry(node, entry, ids):
    """Fills a ProfileNode."""
    node.name, node.op, node.id = entry.name, entry.kind, entry.id
    for place, (source, index) in enumerate(entry.inputs):
        node.inputs[place] = source.id
        node.src_output_index[source.id] = index
    for index, sizes in enumerate(entry.output_shapes):
        if sizes is not None:
            node.output_shapes[index].int64_values.extend(sizes)
    if entry.shape is not None:
        node.shape.extend(entry.shape)
    node.op_types.extend(sorted(entry.types))
    node.canonical_device = node.host_device = entry.device
    node.float_ops = entry.float_ops
    ids.write(node.trace, entry.trace)
    if entry.op is not None:
        for name, value in entry.op.node_def.attr.items():
            node.attrs[name].CopyFrom(value)
    for step, execution in entry.executions.items():
        execution.write(node.execs[step])


class Texts:
    """Numbers for texts, as OpLogProto and ProfileProto have them."""

    def __init__(self):
        self.numbers = {}

    def number(self, text):
        """The text's number, from 1 on."""
        return self.numbers.setdefault(text, len(self.numbers) + 1)

    def write(self, code, trace):
        """Fills a CodeDef."""
        for file, line, function in trace:
            code.traces.add(
                file_id=self.number(file),
                function_id=self.number(function),
                lineno=line,
                func_start_line=-1,
            )


def _canonical(device):
    """A device's name in small letters: ".../device:cpu:0"."""
    head, found, rest = device.rpartition("device:")
    return head + found + rest.lower() if found else device.lower()


def _complete_shapes(graph, metadata):
    """Sets what shapes results had in a step where the graph does not know them."""
    for device_stats in metadata.step_stats.dev_stats:
        for node in device_stats.node_stats:
            if not node.output:
                continue
            try:
                op = graph.get_operation_by_name(node.node_name)
            except KeyError:
                continue
            for output, tensor in zip(node.output, op.outputs):
                sizes = [d.size for d in output.tensor_description.shape.dim]
                if tensor.shape.rank in (None, len(sizes)):
                    tensor.set_shape(sizes)


def default_log(graph, given=None, metadata=None, traced=True):
    """The OpLogProto of a graph: floating-point operations, trainable variables and,
    where `traced`, the lines that made each; what `given` says stands above."""
    if metadata is not None:
        _complete_shapes(graph, metadata)
    log, texts, unknown = protos.OpLogProto(), Texts(), 0
    rows = {}
    for op in graph.get_operations():
        count = op._node.float_ops
        unknown += count == -1
        row = rows[op.name] = protos.OpLogEntry(name=op.name)
        row.float_ops = max(count or 0, 0)
        if traced:
            texts.write(row.code_def, call_stacks.user_frames(op.traceback))
    for variable in graph.get_collection(collections.GraphKeys.TRAINABLE_VARIABLES):
        name = variable.op.name
        if name in rows and TRAINABLE not in rows[name].types:
            rows[name].types.append(TRAINABLE)
    if unknown and metadata is None:
        text = f"{unknown} ops no flops stats due to incomplete shapes.\n"
        sys.stderr.write(text)
    for row in given.log_entries if given is not None else ():
        known = rows.setdefault(row.name, protos.OpLogEntry(name=row.name))
        known.types.extend(t for t in row.types if t not in known.types)
        if row.float_ops:
            known.float_ops = row.float_ops
    said = [r for r in rows.values() if r.float_ops or r.types or r.code_def.traces]
    log.log_entries.extend(said)
    for text, number in texts.numbers.items():
        log.id_to_string[number] = text
    return log


def check_step(facts, step):
    """Whether the step was added, or the mean of all is meant; says so if not."""
    if step < 0 or step in facts.steps:
        return True
    known = "".join(f"{s} " for s in sorted(facts.steps))
    sys.stderr.write(f"Options -step={step} not found.\nAvailable steps: {known}\n")
    return False


def unknown_command(command):
    """The error of a view that there is not."""
    return errors.InvalidArgumentError._of(f"unknown cmd: {command}")
