"""tf.config: devices, threads, how things run."""

import collections
import re

from headrace._load import _headrace
from headrace.framework.settings import cluster

PhysicalDevice = collections.namedtuple("PhysicalDevice", ["name", "device_type"])
LogicalDevice = collections.namedtuple("LogicalDevice", ["name", "device_type"])


class LogicalDeviceConfiguration(
    collections.namedtuple(
        "LogicalDeviceConfiguration",
        ["memory_limit", "experimental_priority", "experimental_device_ordinal"],
        defaults=(None, None, None),
    )
):
    """A logical device to be made of a physical one."""


_PHYSICAL = [PhysicalDevice("/physical_device:CPU:0", "CPU")]


class _Settings:
    visible = list(_PHYSICAL)
    logical = {}  # physical device -> list of LogicalDeviceConfiguration
    inter_op = 0
    soft_placement = True
    deterministic = False
    tf32 = True
    jit = ""
    optimizer = {"disable_model_pruning": False, "disable_meta_optimizer": False}
    device_policy = "silent"
    synchronous = True
    log_placement = False


def list_physical_devices(device_type=None):
    """The devices of this machine."""
    return [d for d in _PHYSICAL if device_type in (None, d.device_type)]


def list_logical_devices(device_type=None):
    """The devices that programs name, those of the tasks of a cluster among them that
    this process is connected to."""
    others = [LogicalDevice(*d) for d in cluster.devices()]
    others = [d for d in others if device_type in (None, d.device_type)]
    return local_devices(device_type) + others


def local_devices(device_type=None):
    """Those of this process."""
    out = []
    for d in _Settings.visible:
        count = len(_Settings.logical.get(d, [None]))
        out += [
            LogicalDevice(f"/device:{d.device_type}:{i}", d.device_type)
            for i in range(count)
        ]
    return [d for d in out if device_type in (None, d.device_type)]


def get_visible_devices(device_type=None):
    """The physical devices in use."""
    return [d for d in _Settings.visible if device_type in (None, d.device_type)]


def set_visible_devices(devices, device_type=None):
    """Chooses the physical devices in use."""
    devices = list(devices) if isinstance(devices, (list, tuple)) else [devices]
    for d in devices:
        if d not in _PHYSICAL:
            raise ValueError(f"Unrecognized device: {d!r}")
        if device_type is not None and d.device_type != device_type:
            raise ValueError(f"Unrecognized device: {d!r}")
    kept = [d for d in _Settings.visible if device_type not in (None, d.device_type)]
    if _headrace.context_used() and kept + devices != _Settings.visible:
        raise RuntimeError("Visible devices cannot be modified after being initialized")
    _Settings.visible = kept + devices


def get_logical_device_configuration(device):
    """What set_logical_device_configuration set, or None."""
    return _Settings.logical.get(_known(device))


def set_logical_device_configuration(device, logical_devices):
    """Splits a physical device into logical ones."""
    device = _known(device)
    wanted = None if logical_devices is None else list(logical_devices)
    if _headrace.context_used() and wanted != _Settings.logical.get(device):
        raise RuntimeError("Virtual devices cannot be modified after being initialized")
    divide(device, logical_devices)


def divide(device, logical_devices):
    """set_logical_device_configuration, also when operations have run: they all lie in
    one memory."""
    wanted = None if logical_devices is None else list(logical_devices)
    for c in logical_devices or []:
        if device.device_type == "CPU" and (
            c.memory_limit is not None or c.experimental_priority is not None
        ):
            raise ValueError(
                "Setting memory limit on CPU virtual devices is currently not supported"
            )
    if wanted is None:
        _Settings.logical.pop(device, None)
    else:
        _Settings.logical[device] = wanted


def _known(device):
    if device not in _PHYSICAL:
        raise ValueError(f"Unrecognized device: {device!r}")
    return device


def _refuse_when_used(what, changed):
    if changed and _headrace.context_used():
        raise RuntimeError(f"{what} cannot be modified after initialization.")


def get_intra_op_parallelism_threads():
    """Threads of one op; 0 lets the system choose."""
    return _headrace.intra_op_threads()


def set_intra_op_parallelism_threads(num_threads):
    """Sets the threads of one op."""
    changed = int(num_threads) != get_intra_op_parallelism_threads()
    _refuse_when_used("Intra op parallelism", changed)
    _headrace.set_intra_op_threads(int(num_threads))


def get_inter_op_parallelism_threads():
    """Ops that run side by side; 0 lets the system choose."""
    return _Settings.inter_op


def set_inter_op_parallelism_threads(num_threads):
    """Sets how many operations that take a processor while they wait (Python functions)
    a run of a graph has under way, where its session says no number."""
    changed = int(num_threads) != _Settings.inter_op
    _refuse_when_used("Inter op parallelism", changed)
    _Settings.inter_op = int(num_threads)
    _headrace.set_inter_op_threads(_Settings.inter_op)


def get_soft_device_placement():
    """Whether ops go to another device where theirs is missing."""
    return _Settings.soft_placement


def set_soft_device_placement(enabled):
    """Lets ops go to another device where theirs is missing."""
    _Settings.soft_placement = bool(enabled)


def run_functions_eagerly(run_eagerly):
    """Makes traced functions run as plain Python."""
    _headrace.run_functions_eagerly(bool(run_eagerly))


def functions_run_eagerly():
    """Whether traced functions run as plain Python."""
    return _headrace.functions_run_eagerly()


def enable_op_determinism():
    """Same inputs, same bits: always so here. Random operations then need a seed of
    their own or `tf.random.set_seed`: RuntimeError where there is none."""
    _Settings.deterministic = True
    _headrace.require_seeds(True)


def disable_op_determinism():
    """Leaves runs as deterministic as they always are here; seeds are no longer
    required."""
    _Settings.deterministic = False
    _headrace.require_seeds(False)


def is_op_determinism_enabled():
    """Whether enable_op_determinism was called."""
    return _Settings.deterministic


def enable_tensor_float_32_execution(enabled):
    """Keeps the setting; CPUs have no TensorFloat-32."""
    _Settings.tf32 = bool(enabled)


def tensor_float_32_execution_enabled():
    """The setting of enable_tensor_float_32_execution."""
    return _Settings.tf32


def get_optimizer_jit():
    """The setting of set_jit."""
    return _Settings.jit


def set_optimizer_jit(enabled):
    """Keeps the setting: functions are always compiled to plans here."""
    if enabled not in (True, False, "autoclustering"):
        raise ValueError(f"Invalid value for JIT: {enabled}")
    _Settings.jit = "autoclustering" if enabled else ""


def get_optimizer_experimental_options():
    """The settings of set_experimental_options, by name."""
    return dict(_Settings.optimizer)


def set_optimizer_experimental_options(options):
    """Keeps settings of the optimizer of graphs, by name: True, False, or a number.

    They change no result. Plans are optimized in one way here.
    """
    _Settings.optimizer.update(
        {k: {"on": True, "off": False}.get(v, v) for k, v in options.items()}
    )


_POLICIES = (None, "explicit", "warn", "silent", "silent_for_int32")


def get_device_policy():
    """The setting of set_device_policy."""
    return _Settings.device_policy


def set_device_policy(device_policy):
    """Keeps what to do with inputs that are on another device than an operation's:
    "explicit", "warn", "silent" (the default) or "silent_for_int32".

    All devices here share their memory, so that no input is on another.
    """
    if device_policy not in _POLICIES:
        raise ValueError(f"Invalid argument `device_policy`: {device_policy!r}.")
    _Settings.device_policy = device_policy or "silent"


def get_synchronous_execution():
    """The setting of set_synchronous_execution."""
    return _Settings.synchronous


def set_synchronous_execution(enable):
    """Keeps whether operations may still be under way when their call returns: here
    none is, either way.
    """
    _Settings.synchronous = bool(enable)


def get_log_device_placement():
    """The setting of set_log_device_placement."""
    return _Settings.log_placement


def set_log_device_placement(enabled):
    """Keeps the setting: everything is on the CPU here."""
    _Settings.log_placement = bool(enabled)


def get_device_details(device):
    """What is known of a physical device."""
    _known(device)
    return {}


def get_memory_growth(device):
    """CPUs have no such setting."""
    raise ValueError(f"Cannot get memory growth on device {device}: it is no GPU")


def set_memory_growth(device, enable):
    """CPUs have no such setting."""
    raise ValueError(
        "Cannot set memory growth on device when virtual devices configured"
        if device not in _PHYSICAL
        else "Cannot set memory growth on non-GPU and non-Pluggable devices"
    )


_DEVICE = re.compile(r"(?:.*/)?(?:device:)?([A-Za-z_]+):(\d+)")


def _memory_of(device):
    """ValueError unless a text names a device that there is, like "CPU:0"."""
    if not isinstance(device, str):
        raise TypeError(f"device must be a string, got {device!r}")
    found = _DEVICE.fullmatch(device)
    if found is None:
        raise ValueError(
            f"Failed parsing device name: '{device}'. Note a valid device string should at "
            'least contain a device type and a device index, like "GPU:0".'
        )
    kind, index = found[1].upper(), int(found[2])
    if not any(d.name.endswith(f":{kind}:{index}") for d in list_logical_devices()):
        raise ValueError(f"No matching devices found for '{device}'")


def get_memory_info(device):
    """{"current": bytes in use, "peak": the most so far} of a device, "CPU:0".

    The memory of CPUs is the process's and not counted: 0, as upstream.
    """
    _memory_of(device)
    return {"current": 0, "peak": 0}


def get_memory_usage(device):
    """The bytes in use on a device: see get_memory_info."""
    return get_memory_info(device)["current"]


def reset_memory_stats(device):
    """Begins the peak of a device's memory anew: see get_memory_info."""
    _memory_of(device)


def disable_mlir_bridge():
    """There is none, and programs run without."""


def enable_mlir_bridge():
    """NotImplementedError: there is no bridge to MLIR."""
    raise NotImplementedError("There is no MLIR bridge: programs run without it")
