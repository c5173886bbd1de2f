"""Checkpoints as tables of tensors, without the objects they came from."""

import os

from headrace._load import _headrace
from headrace.io import gfile
from headrace.train import checkpoint_state

CheckpointReader = _headrace.CheckpointReader
CheckpointReader.get_variable_to_dtype_map = lambda self: self._dtypes()


def prefix_of(path):
    """The checkpoint itself, or a folder's newest; ValueError where it has none."""
    path = os.fspath(path)
    if gfile.isdir(path):
        latest = checkpoint_state.latest_checkpoint(path)
        if latest is None:
            raise ValueError(
                f"Couldn't find 'checkpoint' file or checkpoints in given directory {path}"
            )
        return latest
    return path


def load_checkpoint(ckpt_dir_or_file):
    """A CheckpointReader of a checkpoint, named by its prefix or by its folder, whose
    latest one is taken. ValueError where the folder has none, NotFoundError for missing files.
    """
    return _headrace.open_checkpoint(prefix_of(ckpt_dir_or_file))


def list_variables(ckpt_dir_or_file):
    """[(key, shape)], sorted."""
    shapes = load_checkpoint(ckpt_dir_or_file).get_variable_to_shape_map()
    return sorted(shapes.items())


def load_variable(ckpt_dir_or_file, name):
    """The tensor of a key, as an array."""
    name = name[:-2] if name.endswith(":0") else name
    return load_checkpoint(ckpt_dir_or_file).get_tensor(name)


def new_checkpoint_reader(filepattern):
    """tf.compat.v1.train.NewCheckpointReader."""
    return _headrace.open_checkpoint(os.fspath(filepattern))
