"""Functions that make meshes."""

import numpy as np

from headrace import _api as tf
from headrace.dtensor import jobs
from headrace.dtensor.mesh import Mesh


def _names_and_sizes(mesh_dims):
    items = mesh_dims.items() if isinstance(mesh_dims, dict) else mesh_dims
    return [d[0] for d in items], [d[1] for d in items]


def _of_host(device):
    """The full name of a device of this process."""
    spec = device
    if not isinstance(device, tf.DeviceSpec):
        spec = tf.DeviceSpec.from_string("/" + device.lstrip("/"))
    return spec.replace(job=jobs.job_name(), replica=0, task=jobs.client_id())


def _refuse_compiler(use_xla_spmd, kind):
    if use_xla_spmd:
        raise ValueError(
            f"XLA SPMD is not currently not supported for {kind.upper()} mesh."
        )


def create_mesh(
    mesh_dims=None, mesh_name="", devices=None, device_type=None, use_xla_spmd=False
):
    """A mesh of this process's devices.

    `mesh_dims` are (name, size) pairs or a dict of them; without, there is one dimension
    "x" over all devices, whose size may also be said as -1. `devices` are names such as
    "CPU:1". ValueError where sizes and devices do not fit.
    """
    if devices is None:
        kind = device_type or "CPU"
        specs = jobs.local_devices(kind)
    else:
        specs = [_of_host(device) for device in devices]
        kind = specs[0].device_type if specs else device_type or "CPU"
    if mesh_dims is None:
        mesh_dims = [("x", len(specs))]
    elif len(mesh_dims) == 1:
        names, sizes = _names_and_sizes(mesh_dims)
        if sizes[0] == -1:
            mesh_dims = [(names[0], len(specs))]
    names, sizes = _names_and_sizes(mesh_dims)
    if not sizes or _product(sizes) != len(specs):
        raise ValueError(
            f"length of devices ({len(specs)}) must be equal to total size of the mesh "
            f"of shape {sizes}"
        )
    _refuse_compiler(use_xla_spmd, kind)
    ids = np.arange(len(specs)).reshape(sizes)
    return Mesh(names, ids, list(range(len(specs))), specs, mesh_name)


def _product(sizes):
    return int(np.prod(sizes))


def create_distributed_mesh(
    mesh_dims, mesh_name="", local_devices=None, device_type=None, use_xla_spmd=False
):
    """A mesh of the devices of all clients: here of this process's alone.

    ValueError before initialize_accelerator_system, and where sizes and devices do not
    fit.
    """
    names, sizes = _names_and_sizes(mesh_dims)
    kind = device_type or "CPU"
    if not jobs.is_initialized():
        raise ValueError(
            "Accelerators are uninitialized, please run "
            "dtensor.initialize_accelerator_system() first."
        )
    if kind.upper() == "TPU":
        raise ValueError(
            "Invalid TPU topology, run dtensor.initialize_tpu_system() first"
        )
    if local_devices is None:
        specs = jobs.local_devices(kind)
    else:
        specs = [_of_host(device) for device in local_devices]
    if _product(sizes) != len(specs):
        raise ValueError(
            f"Global number of devices ({len(specs)} per client * 1 clients = "
            f"{len(specs)}) must be equal to total size of the mesh of shape "
            f"{tuple(sizes)}"
        )
    _refuse_compiler(use_xla_spmd, kind)
    ids = np.arange(len(specs)).reshape(sizes)
    return Mesh(names, ids, list(range(len(specs))), specs, mesh_name)
