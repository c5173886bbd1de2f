"""Who runs programs with meshes: clients, jobs and their devices. Here it is always one
client, this process."""

import os

from headrace import _api as tf
from headrace._load import _headrace
from headrace.framework.settings import config

_CLIENTS = "DTENSOR_NUM_CLIENTS"
_CLIENT = "DTENSOR_CLIENT_ID"
_JOB = "DTENSOR_JOB_NAME"
_JOBS = "DTENSOR_JOBS"
_HEARTBEAT = "DTENSOR_ENABLE_HEARTBEAT"


class _Accelerators:
    initialized = False


def client_id():
    """The number of this client: the environment's DTENSOR_CLIENT_ID, 0 without.
    ValueError for a negative one."""
    found = int(os.environ.get(_CLIENT, "0"))
    if found < 0:
        raise ValueError(f"Environment variable {_CLIENT} must be >= 0, got {found}. ")
    if found >= num_clients():
        raise ValueError(
            f"Environment variable {_CLIENT} must be < {num_clients()}, got {found}"
        )
    return found


def num_clients():
    """How many clients there are: the environment's DTENSOR_NUM_CLIENTS, 1 without.
    ValueError for less than one."""
    found = int(os.environ.get(_CLIENTS, "1"))
    if found <= 0:
        raise ValueError(f"Environment variable {_CLIENTS} must be > 0, got {found}.")
    return found


def jobs():
    """The addresses of the clients, of the environment's DTENSOR_JOBS: a list."""
    text = os.environ.get(_JOBS)
    return text.split(",") if text else []


def job_name():
    """The job that all clients are: "localhost" of one client, else "worker", unless
    the environment's DTENSOR_JOB_NAME says another."""
    return os.environ.get(_JOB, "localhost" if num_clients() == 1 else "worker")


def full_job_name(task_id=None):
    """The job with replica and task, as device names have it.

    ValueError for a task other than 0 of one client.
    """
    task = client_id() if task_id is None else task_id
    if num_clients() == 1 and task != 0:
        raise ValueError(f"Unexpected task ID {task} in local runs")
    return f"{job_name()}/replica:0/task:{task}"


def heartbeat_enabled():
    """Whether clients watch each other: unless the environment's
    DTENSOR_ENABLE_HEARTBEAT says no. One client has nobody to watch."""
    return os.environ.get(_HEARTBEAT, "true").lower() in ("true", "1")


def local_devices(device_type, for_client_id=None):
    """The devices of a type that this client has, or the one of that number: a list of
    DeviceSpecs."""
    kind = _type(device_type)
    count = len(tf.config.list_logical_devices(kind))
    task = client_id() if for_client_id is None else for_client_id
    return [tf.DeviceSpec(job_name(), 0, task, kind, index) for index in range(count)]


def num_local_devices(device_type):
    """How many devices of the type this client has."""
    return len(tf.config.list_logical_devices(_type(device_type)))


def num_global_devices(device_type):
    """How many devices of the type all clients have."""
    return num_local_devices(device_type) * num_clients()


def _type(device_type):
    return device_type.upper() if device_type.lower() in _KINDS else device_type


_KINDS = ("cpu", "gpu", "tpu")


def preferred_device_type():
    """ "CPU": there are no accelerators."""
    return "CPU"


def initialize_accelerator_system(
    device_type=None,
    enable_coordination_service=True,
    num_logical_cpu_devices=None,
    experimental_reset_context=False,
    experimental_enable_megcore=False,
):
    """Begins the use of meshes of all clients, and gives the type of their devices.

    `num_logical_cpu_devices` makes so many logical CPUs. `enable_coordination_service`
    is of several clients: the one here has nobody to find. ValueError where it was called
    already, for unknown types of devices, and, unless `experimental_reset_context`, when
    operations have run; NotFoundError where no device of the type is there, and
    UnimplementedError for several clients, megacore and TPUs.
    """
    kind = preferred_device_type() if device_type is None else device_type
    if _Accelerators.initialized:
        raise ValueError(
            "Accelerator system has already been initialized. "
            "Call tf.experimental.dtensor.shutdown_accelerator_system() first."
        )
    if kind not in ("CPU", "GPU", "TPU"):
        raise ValueError(
            f"Unknown device_type {kind}. Allowed values are CPU, GPU, or TPU"
        )
    if kind == "TPU":
        _refuse_tpus()
    if kind == "GPU":
        raise tf.errors.NotFoundError(None, None, "No GPUs found, for device_type GPU")
    if experimental_enable_megcore:
        _refuse("experimental_enable_megcore is of TPUs, and there are none")
    if num_clients() > 1:
        _refuse(f"{num_clients()} clients ({_CLIENTS}): meshes lie in one process here")
    if _headrace.context_used() and not experimental_reset_context:
        raise ValueError(
            "TensorFlow has already been initialized. "
            "tf.experimental.dtensor.initialize_accelerator_system() must be called "
            "before TensorFlow is initialized."
        )
    if num_logical_cpu_devices is not None:
        count = max(int(num_logical_cpu_devices), 1)
        (cpu,) = tf.config.list_physical_devices("CPU")
        config.divide(cpu, [tf.config.LogicalDeviceConfiguration()] * count)
    _Accelerators.initialized = True
    return kind


initialize_multi_client = initialize_accelerator_system


def is_initialized():
    """Whether initialize_accelerator_system was called."""
    return _Accelerators.initialized


def shutdown_accelerator_system():
    """Ends what initialize_accelerator_system began; ValueError where nothing did."""
    if not _Accelerators.initialized:
        raise ValueError(
            "Accelerator system is not initialized. Call "
            "tf.experimental.dtensor.initialize_accelerator_system first."
        )
    _Accelerators.initialized = False


def _refuse(text):
    raise tf.errors.UnimplementedError(None, None, f"tf.experimental.dtensor: {text}")


def _refuse_tpus():
    raise tf.errors.NotFoundError(
        None, None, "Initialization failed, no valid TPUs found."
    )


def barrier(mesh, barrier_name=None, timeout_in_ms=None):
    """Returns when all clients have come here: of one client, when what it asked for has
    run. The name is for logs, the timeout in ms; nobody is waited for."""
    mesh.local_devices()  # what is no mesh says so
