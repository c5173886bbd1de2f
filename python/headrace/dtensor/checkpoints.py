"""Values with layouts in checkpoints."""

import collections

from headrace import _api as tf
from headrace._load import _headrace, raw
from headrace.dtensor import values
from headrace.dtensor.calls import refuse_plain
from headrace.dtensor.tensors import layout_of, no_hook, plain


class DTensorCheckpoint(tf.train.Checkpoint):
    """tf.train.Checkpoint, which saves and restores variables with layouts as well.

    `mesh` is the mesh of the variables; each keeps the layout that it has.
    """

    def __init__(self, mesh, root=None, **kwargs):
        super().__init__(root, **kwargs)
        self._mesh = mesh


def _check_mesh(mesh):
    mesh.num_local_devices()  # AttributeError for what is no mesh


def _as_saved(value, position):
    """A tensor's or variable's value, as a checkpoint holds it."""
    if layout_of(value) is None:
        refuse_plain("SaveV2", position, tf.convert_to_tensor(value))
    as_bf16 = getattr(value, "save_as_bf16", False)
    if isinstance(value, _headrace.VariableBase):
        value = value.value()
    found = plain(value)
    return raw.Cast(found, DstT=tf.bfloat16) if as_bf16 else found


def sharded_save(mesh, file_prefix, tensor_names, shape_and_slices, tensors):
    """Writes tensors and variables with layouts under those names.

    `shape_and_slices` are empty texts, as slices are not said by hand: UnknownError
    else. InvalidArgumentError where the numbers of names and tensors differ.
    """
    _check_mesh(mesh)
    with no_hook():
        names = tf.convert_to_tensor(tensor_names, tf.string)
        slices = tf.convert_to_tensor(shape_and_slices, tf.string)
        count = len(tensors)
        if names.shape != [count] or slices.shape != [count]:
            raise tf.errors.InvalidArgumentError(
                None,
                None,
                f"There are {count} tensors to save, but names of shape {names.shape} "
                f"and slices of shape {slices.shape}",
            )
        written = [text for text in slices.numpy().tolist() if text]
        if written:
            raise tf.errors.UnknownError(
                None,
                None,
                "DTensor SaveV2 requires shape_and_slices() field to be empty for "
                f"tensors, but get : {written[0].decode()}",
            )
        parts = [_as_saved(t, i + 3) for i, t in enumerate(tensors)]
        raw.SaveV2(file_prefix, names, slices, parts)


def name_based_save(mesh, checkpoint_prefix, name_tensor_dict):
    """Writes the tensors and variables of a dict under their names; ValueError for an
    empty one."""
    _check_mesh(mesh)
    if not name_tensor_dict:
        raise ValueError("name_based_save: there is no tensor to save")
    items = list(dict(name_tensor_dict).items())
    names, tensors = zip(*items)
    sharded_save(mesh, checkpoint_prefix, list(names), [""] * len(names), tensors)


def name_based_restore(mesh, checkpoint_prefix, name_tensor_dict):
    """Reads what those names have: an OrderedDict of tensors with the layouts, shapes
    and dtypes of the tensors or variables given.

    ValueError for what has no layout, NotFoundError for a name or file that is not
    there, InvalidArgumentError where shape or dtype differ.
    """
    _check_mesh(mesh)
    if not name_tensor_dict:
        raise ValueError("name_based_restore: there is no tensor to restore")
    given = dict(name_tensor_dict)
    for value in given.values():
        if layout_of(value) is None:
            raise ValueError("Saving/Restoring tensor must be a DTensor")
    with no_hook():
        read = raw.RestoreV2(
            checkpoint_prefix,
            list(given),
            [""] * len(given),
            dtypes=[_saved_dtype(v) for v in given.values()],
        )
    found = collections.OrderedDict()
    for (name, value), tensor in zip(given.items(), read):
        if tensor.shape != value.shape:
            raise tf.errors.InvalidArgumentError(
                None,
                None,
                f"tensor_name = {name}; expected shape {value.shape} does not equal "
                f"original shape {tensor.shape}",
            )
        with no_hook():
            tensor = (
                tensor
                if tensor.dtype == value.dtype
                else raw.Cast(tensor, DstT=value.dtype)
            )
        found[name] = values.relayout(tensor, layout_of(value))
    return found


def _saved_dtype(value):
    return tf.bfloat16 if getattr(value, "save_as_bf16", False) else value.dtype
