"""Which device each node of a session's graph has, as logs and metadata of runs tell."""

import functools

from headrace.framework.devices import DeviceSpec
from headrace.framework.settings import logging
from headrace.framework.support import protos
from headrace.graph.operation import Operation

_HERE = DeviceSpec("localhost", 0, 0, "CPU", 0)


@functools.lru_cache(1024)
def _full(asked, processors):
    """The device's full name; that of the first processor where there is none such."""
    spec = _HERE.make_merged_spec(DeviceSpec.from_string(asked))
    here = spec.job == "localhost" and spec.replica == spec.task == 0
    known = spec.device_type == "CPU" and spec.device_index < processors
    return (spec if here and known else _HERE).to_string()


def _is_generator(op):
    """Whether it makes one value of nothing, and so goes where that is read."""
    outputs = op.outputs
    return not op.inputs and len(outputs) == 1 and not outputs[0].dtype._is_ref_dtype


class Placement:
    """The devices of a graph's operations, for a session with so many processors."""

    def __init__(self, graph, processors):
        self._graph, self._processors = graph, processors

    def of(self, op):
        """The full name of an operation's device."""
        if op.device:
            return _full(op.device, self._processors)
        for group in op.colocation_groups():
            name = group.decode().removeprefix("loc:@")
            if name != op.name and self._graph._core.find(name) is not None:
                return self.of(self._graph.get_operation_by_name(name))
        if _is_generator(op):
            readers = {self.of(r) for r in op.outputs[0].consumers() if r.inputs}
            if len(readers) == 1:
                return readers.pop()
        return _full("", self._processors)

    def of_name(self, name, otherwise=""):
        """The same of a node's name; `otherwise`, or the first processor's name, for one
        that is a function's or that a run adds."""
        node = self._graph._core.find(name)
        if node is None:
            return _full(otherwise, self._processors)
        return self.of(self._graph._operation(node))

    def log(self):
        """Prints the device of each operation: first those that read something."""
        ops = self._graph.get_operations()
        for op in sorted(ops, key=_is_generator):
            print(f"{op.name}: ({op.type}): {self.of(op)}", flush=True)

    def by_device(self, step_stats):
        """StepStats whose steps are sorted by the devices of their nodes."""
        sorted_stats = protos.StepStats()
        devices = {}
        for device in step_stats.dev_stats:
            for stats in device.node_stats:
                name = self.of_name(stats.node_name, device.device)
                if name not in devices:
                    devices[name] = sorted_stats.dev_stats.add(device=name)
                devices[name].node_stats.add().CopyFrom(stats)
                thread = stats.thread_id
                if thread in device.thread_names:
                    names = devices[name].thread_names
                    names[thread] = device.thread_names[thread]
        return sorted_stats

    def partitions(self, fetches, targets, feeds):
        """GraphDefs, one a device, of what a run of these tensors, operations and fed
        tensors needs; fed values come from _Arg nodes and fetched ones go to _Retval."""
        return _Partitions(self, fetches, targets, feeds).made()


class _Partitions:
    def __init__(self, placement, fetches, targets, feeds):
        self._placement = placement
        self._parts = {}  # GraphDefs by device
        self._sent = {}  # names of received tensors, by tensor and device
        self._fed = {t.name: f"_arg_{_flat(t)}_{i}" for i, t in enumerate(feeds)}
        self._fetches, self._feeds = fetches, feeds
        self._needed = self._reach([t.op for t in fetches] + list(targets))

    def _reach(self, ends):
        """What these need, each behind what it needs itself."""
        order, seen, open_ops = [], set(), [(op, False) for op in reversed(ends)]
        while open_ops:
            op, done = open_ops.pop()
            if done:
                order.append(op)
                continue
            if op._id in seen or self._is_fed(op):
                continue
            seen.add(op._id)
            open_ops.append((op, True))
            before = [t.op for t in op.inputs if t.name not in self._fed]
            open_ops += [(o, False) for o in reversed(before + op.control_inputs)]
        return order

    def _is_fed(self, op):
        return bool(op.outputs) and all(t.name in self._fed for t in op.outputs)

    def made(self):
        for i, tensor in enumerate(self._feeds):
            device = self._placement.of(tensor.op)
            node = self._add(device, self._fed[tensor.name], "_Arg", tensor.dtype)
            node.attr["index"].i = i
        for op in self._needed:
            self._add_op(op)
        for i, tensor in enumerate(self._fetches):
            device = self._placement.of(tensor.op)
            name = f"_retval_{_flat(tensor)}_{i}"
            node = self._add(device, name, "_Retval", tensor.dtype)
            node.attr["index"].i = i
            node.input.append(self._input(tensor, device))
        return list(self._parts.values())

    def _part(self, device):
        if device not in self._parts:
            made = self._parts[device] = protos.GraphDef()
            made.versions.CopyFrom(self._placement._graph.as_graph_def().versions)
        return self._parts[device]

    def _add(self, device, name, op, dtype, key="T"):
        node = self._part(device).node.add(name=name, op=op, device=device)
        node.attr[key].type = dtype.base_dtype.as_datatype_enum
        return node

    def _add_op(self, op):
        device = self._placement.of(op)
        # Before the node itself: what it receives comes first.
        inputs = [self._input(t, device) for t in op.inputs]
        waited = [f"^{o.name}" for o in op.control_inputs if not self._is_fed(o)]
        node = self._part(device).node.add()
        node.CopyFrom(op.node_def)
        node.device = device
        node.input[:] = inputs + [w for w in waited if self._same(w[1:], device)]

    def _same(self, name, device):
        return self._placement.of_name(name) == device

    def _input(self, tensor, device):
        """How a node of `device` names the tensor."""
        if tensor.name in self._fed:
            return self._fed[tensor.name]
        there = self._placement.of(tensor.op)
        name = tensor.name.removesuffix(":0")
        if there == device:
            return name
        key = tensor.name, device
        if key not in self._sent:
            number = 2 * len(self._sent)
            base = f"{tensor.op.name}/_"
            self._transfer(f"{base}{number}", "_Send", tensor, there, device)
            made = self._transfer(f"{base}{number + 1}", "_Recv", tensor, there, device)
            self._sent[key] = made.name
        return self._sent[key]

    def _transfer(self, name, kind, tensor, there, here):
        is_send = kind == "_Send"
        device, key = (there, "T") if is_send else (here, "tensor_type")
        node = self._add(device, name, kind, tensor.dtype, key)
        if is_send:
            node.input.append(tensor.name.removesuffix(":0"))
        node.attr["tensor_name"].s = f"edge_{tensor.name}".encode()
        node.attr["send_device"].s = there.encode()
        node.attr["recv_device"].s = here.encode()
        return node


def _flat(tensor):
    return f"{tensor.op.name}_{tensor.value_index}"


def log_devices():
    """What a session says first of the devices that it knows."""
    logging.info("Device mapping: no known devices.")
