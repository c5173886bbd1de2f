"""tf.saved_model.Asset: a file that belongs to a model."""

import os

from headrace._load import _headrace
from headrace.context.properties import read_only
from headrace.framework.trackable import Trackable


class Asset(Trackable):
    """A file that SavedModels take along: to functions a string tensor, its path."""

    def __init__(self, path):
        if not isinstance(path, _headrace.Tensor):
            path = _headrace.make_tensor(os.fspath(path))
        self._path = path

    asset_path = read_only("_path", "The path: a string tensor.")

    def __tf_tensor__(self, dtype=None, name=None):
        return self._path
