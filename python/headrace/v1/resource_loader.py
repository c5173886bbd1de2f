"""tf.compat.v1.resource_loader: files beside the code that asks for them."""

import os
import sys

_ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def _folder(depth):
    """The folder of the file whose code is `depth` calls above."""
    return os.path.dirname(
        os.path.realpath(sys._getframe(depth + 1).f_code.co_filename)
    )


def get_data_files_path():
    """The folder of the file that calls this."""
    return _folder(1)


def get_path_to_datafile(path):
    """The path of a file, from the folder of the file that calls this on."""
    return os.path.join(_folder(1), path)


def get_root_dir_with_all_resources():
    """The folder of this package."""
    return _ROOT


def load_resource(path):
    """The bytes of a file of this package; FileNotFoundError if there is none."""
    with open(os.path.join(_ROOT, path), "rb") as file:
        return file.read()


def readahead_file_path(path, readahead="128M"):
    """The path as it is: files are read as the system reads ahead."""
    return path
