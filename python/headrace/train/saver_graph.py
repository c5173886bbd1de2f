"""The nodes of a Saver (or, eagerly, what they do)."""

import contextlib
import uuid

from headrace._load import _headrace, raw
from headrace.context import stack
from headrace.framework import conversion, dtypes, execution
from headrace.framework.devices import DeviceSpec
from headrace.framework.trackable import Trackable
from headrace.ops import array_ops, string_ops


def assigned(variable, value, reshape):
    """The operation that gives a graph's variable a value of a checkpoint."""
    if reshape:
        value = array_ops.reshape(value, variable.shape)
    if not isinstance(variable, _headrace.VariableBase):
        checked = not reshape and variable.shape.is_fully_defined()
        return raw.Assign(variable._ref(), value, validate_shape=checked).op
    value = array_ops.identity(value)
    value.set_shape(variable.shape)
    raw.AssignVariableOp(variable.handle, value)
    graph = stack.current()
    return graph._last_operation()


def _processor_of(device):
    """The name of the first processor of that device's task, which has its files."""
    spec = DeviceSpec.from_string(device)
    return spec.replace(device_type="CPU", device_index=0).to_string()


def _on(device):
    """A context that places a graph's nodes on the device; eagerly, or where that is
    none, one that does nothing."""
    graph = stack.current()
    if graph is None or not device:
        return contextlib.nullcontext()
    return graph.device(device)


@contextlib.contextmanager
def apart(graph, scope):
    """Makes nodes of a graph that wait for nothing, under a name scope."""
    with graph.as_default(), graph.control_dependencies(None), graph.name_scope(scope):
        yield


class Saveable:
    """A variable, or a slice of one, under its name in checkpoints."""

    restored = True  # by Saver.restore

    def __init__(self, name, variable):
        info = getattr(variable, "_save_slice_info", None)
        self.variable = variable
        self.name = name if info is None else info.full_name
        self.slice_spec = "" if info is None else info.spec
        self.is_reference = not isinstance(variable, _headrace.VariableBase)

    @property
    def dtype(self):
        return dtypes.as_dtype(self.variable.dtype).base_dtype

    def to_save(self):
        if self.is_reference:
            return self.variable._ref()
        if _headrace.is_eager():
            return self.variable.read_value()
        value = self.variable._graph_element()
        kind = DeviceSpec.from_string(self.variable.device).device_type
        if kind in (None, "CPU"):
            return value
        # Files are written by a processor, to which the value is brought once.
        with _on(_processor_of(self.variable.device)):
            return array_ops.identity(value)

    def assign(self, value, reshape):
        """The operation that gives it the value; eagerly, gives it."""
        if not _headrace.is_eager() or self.is_reference:
            return assigned(self.variable, value, reshape)
        if reshape:
            value = array_ops.reshape(value, self.variable.shape)
        return self.variable.assign(value)


def is_variable(value):
    return isinstance(value, _headrace.VariableBase) or hasattr(value, "_ref")


def _is_slice(part):
    return getattr(part, "_save_slice_info", None) is not None


def _name_of(variable):
    info = getattr(variable, "_save_slice_info", None)
    if info is not None:
        return info.full_name
    return getattr(variable, "_shared_name", None) or variable.name.partition(":")[0]


def parts_of(variable):
    """A list of the parts of a variable that is cut, else of itself."""
    parts = getattr(variable, "_get_variable_list", None)
    return [variable] if parts is None else list(parts())


def _parts(value):
    """A variable, the parts of a partitioned one, or what another object has saved."""
    own = getattr(value, "_gather_saveables_for_checkpoint", None)
    if own is not None and isinstance(value, Trackable) and not is_variable(value):
        return list(own().values())
    return list(value) if isinstance(value, (list, tuple)) else parts_of(value)


def _by_name(variables):
    """{name: variables, or slices of one} of a list of variables."""
    named = {}
    for variable in variables:
        if hasattr(variable, "_get_variable_list"):
            _check_unused(named, variable.name)
            named[variable.name] = _parts(variable)
            continue
        for part in _parts(variable):
            if isinstance(part, Saveable):
                named[part.name] = [part]
                continue
            if not is_variable(part):
                raise TypeError(f"Variable to save is not a Variable: {part}")
            name = _name_of(part)
            if not _is_slice(part):
                _check_unused(named, name)
            elif name in named and not _is_slice(named[name][0]):
                raise ValueError(
                    f"Mixing slices and non-slices with the same name: {name}"
                )
            named.setdefault(name, []).append(part)
    return named


def _check_unused(named, name):
    if name in named:
        raise ValueError(f"At least two variables have the same name: {name}")


def saveables(variables):
    """Saveables sorted by name, of a list of variables or a dict by name."""
    if isinstance(variables, dict):
        named = {name: _parts(value) for name, value in variables.items()}
    else:
        named = _by_name(variables)
    found, seen = [], set()
    for name in sorted(named):
        for part in named[name]:
            if isinstance(part, Saveable):
                found.append(part)
                continue
            if not is_variable(part):
                raise TypeError(
                    "names_to_saveables must be a dict mapping string names to "
                    f"Tensors/Variables. Not a variable: {part}"
                )
            if id(part) in seen:
                raise ValueError(
                    f"The same saveable will be restored with two names: {name}"
                )
            seen.add(id(part))
            found.append(Saveable(name, part))
    return found


def _called(items, op):
    """(name, names, slices) of an operation of that kind: its own name, and what it
    is told of the items, tensors of strings that are named under it."""
    graph = stack.current()  # None: eager, where names are for nothing
    name = graph.unique_name(op, mark_as_used=False) if graph else op
    told = {
        "tensor_names": [s.name for s in items],
        "shape_and_slices": [s.slice_spec for s in items],
    }
    made = [
        conversion.constant(texts, dtypes.string, [len(texts)], f"{name}/{what}/")
        for what, texts in told.items()
    ]
    return f"{name}/", *made


def _add_save(prefix, items, first_format):
    tensors = [s.to_save() for s in items]
    name, *told = _called(items, "SaveSlices" if first_format else "SaveV2")
    save = raw.SaveSlices if first_format else raw.SaveV2
    save(prefix, *told, tensors, name=name)
    with execution.control_dependencies([stack.last_operation()]):
        return array_ops.identity(prefix, name="control_dependency")


def save(filename, items, first_format=False):
    """Writes all into one file; a tensor of its name that is there afterwards."""
    return _add_save(filename, items, first_format)


def _by_device(items):
    """(device, items) of each device that has some, by its name."""
    shards = {}
    for item in items:
        shards.setdefault(item.variable.device or "", []).append(item)
    return sorted(shards.items())


def save_sharded(filename, items, first_format=False):
    """Writes a file for each device, then makes one checkpoint of them (of the first
    format, the files are it)."""
    graph = stack.current()
    base = filename
    if not first_format:
        part = conversion.constant(f"_temp_{uuid.uuid4().hex}/part")
        base = string_ops.join([filename, part])
    shards = _by_device(items)
    count = conversion.constant(len(shards), name="num_shards")
    files, saved = [], []
    for i, (device, shard) in enumerate(shards):
        with _on(_processor_of(device)):
            name = raw.ShardedFilename(base, i, count, name="ShardedFilename")
            files.append(name)
            saved.append(_add_save(name, shard, first_format))
    if first_format:
        with graph.control_dependencies([s.op for s in saved]):
            return raw.ShardedFilespec(base, count)
    last = _processor_of(shards[-1][0])
    with _on(last), graph.control_dependencies([s.op for s in saved]):
        name = graph.unique_name("MergeV2Checkpoints", mark_as_used=False)
        files = array_ops.stack(files, name=f"{name}/checkpoint_prefixes/")
        raw.MergeV2Checkpoints(files, filename, delete_old_dirs=True, name=f"{name}/")
        merged = graph._last_operation()
        with graph.control_dependencies([merged]):
            return array_ops.identity(filename)


def restore_sharded(filename, items, sequentially, reshape):
    """Has each device read and assign what it has; the operation that stands for it."""
    done = []
    for device, shard in _by_device(item for item in items if item.restored):
        with _on(device):
            restored = _restored(filename, shard, sequentially, reshape)
            done.append(execution.group(*restored, name="restore_shard"))
    return execution.group(*done, name="restore_all")


def restore(filename, items, sequentially, reshape):
    """Reads and assigns all; the operation that stands for it."""
    items = [item for item in items if item.restored]
    done = _restored(filename, items, sequentially, reshape)
    return execution.group(*done, name="restore_all")


def _restored(filename, items, sequentially, reshape):
    """The operations that assign what is read."""
    if not sequentially:
        return _restore_together(filename, items, reshape)
    done = []
    for item in items:
        with execution.control_dependencies(done[-1:]):
            done += _restore_together(filename, [item], reshape)
    return done


def _restore_together(filename, items, reshape):
    with _on("/device:CPU:0"):
        name, *told = _called(items, "RestoreV2")
        values = raw.RestoreV2(
            filename, *told, dtypes=[s.dtype for s in items], name=name
        )
    done = []
    for item, value in zip(items, values):
        with _on(item.variable.device):
            done.append(item.assign(value, reshape))
    return done


def step_value(step, session):
    """A step counter's value: of a variable, tensor, array or number."""
    if isinstance(step, _headrace.EagerTensor):
        return int(step.numpy())
    if is_variable(step) or isinstance(step, _headrace.Tensor):
        return int(step.numpy() if _headrace.is_eager() else session.run(step))
    return int(step)


def scoped(saver_def, scope):
    """The same with the names of nodes imported under `scope`."""
    return renamed(saver_def, lambda name: f"{scope}/{name}")


def renamed(saver_def, rename):
    """The same with the names that a function makes of those of nodes."""
    out = type(saver_def)()
    out.CopyFrom(saver_def)
    for field in ("filename_tensor_name", "save_tensor_name", "restore_op_name"):
        setattr(out, field, rename(getattr(saver_def, field)))
    return out
