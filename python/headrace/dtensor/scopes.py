"""The mesh that operations without a mesh of their own use: default_mesh, run_on."""

import contextlib
import sys
import threading

from headrace import _api as tf
from headrace._load import _headrace
from headrace.context import strategies
from headrace.dtensor import tensors
from headrace.dtensor.mesh import Mesh
from headrace.framework import conversion, devices

_state = strategies.carry(threading.local())


def current():
    """The mesh that holds on this thread, or the last that did; None before."""
    return getattr(_state, "mesh", None)


def active():
    """The mesh in whose scope this thread is; None outside of all."""
    return current() if devices.current().endswith("CUSTOM:0") else None


def device_name():
    """The name of the device that stands for all meshes: with `tf.device`, operations
    give tensors with layouts on the default mesh."""
    return tensors.DEVICE


def get_default_mesh():
    """The default mesh; None where none was set yet."""
    return current()


def _adopt(tensor):
    mesh = current()
    # Constants stay plain: they are made by the module of conversions, which called
    # natively, two frames from here.
    if mesh is not None and sys._getframe(2).f_code.co_filename != conversion.__file__:
        tensors.adopt(tensor, mesh)


devices.on_custom_device(_adopt)


def _check(mesh):
    if not isinstance(mesh, Mesh):
        raise ValueError(f"Expect `mesh` to be `Mesh`, got {type(mesh)}")


@contextlib.contextmanager
def default_mesh(mesh):
    """A scope in which operations without a mesh of their own run on `mesh`.

    What they give is whole on all of its devices; so are small constants that they
    take. ValueError for what is no Mesh.
    """
    _check(mesh)
    before, _state.mesh = current(), mesh
    try:
        with _on_device(), tf.variable_creator_scope(_create_variable):
            yield
    finally:
        if before is not None:
            _state.mesh = before


run_on = default_mesh


def _on_device():
    if not _headrace.is_eager():
        return contextlib.nullcontext()
    return tf.device(tensors.DEVICE)


_variable_class = []  # filled by variables.py, which needs what is here


def _create_variable(next_creator, **kwargs):
    if not _headrace.is_eager() or not _variable_class:
        return next_creator(**kwargs)
    return _variable_class[0].of_tensor(next_creator, kwargs)
