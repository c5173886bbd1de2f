"""PATH/dataset_spec.pb: what the elements of a saved dataset are like."""

import os

from headrace._load import _headrace
from headrace.context import errors
from headrace.elements import nest, structured
from headrace.framework.type_spec import TypeSpec
from headrace.io import gfile

_FILE = "dataset_spec.pb"


def packed(spec):
    """A spec as the bytes of a StructuredValue."""
    return _headrace.encode_structure(structured.encoded(spec))


def unpacked(data):
    """The spec that a StructuredValue holds."""
    spec = structured.decoded(_headrace.decode_structure(data))
    if not all(isinstance(leaf, TypeSpec) for leaf in nest.flatten(spec)):
        raise TypeError("element_spec is cut")
    return spec


def write(path, data):
    """Puts a serialised spec into a folder, which is made."""
    gfile.makedirs(path)
    file = os.path.join(path, _FILE)
    _headrace.write_file_atomically(file, data)


def read(path):
    """The spec in a folder."""
    file = os.path.join(path, _FILE)
    try:
        with gfile.GFile(file, "rb") as f:
            data = f.read()
    except errors.NotFoundError:
        raise errors.NotFoundError._of(
            f"tf.data snapshot element_spec file not found: {file}."
        ) from None
    try:
        return unpacked(data)
    except NotImplementedError as e:
        raise NotImplementedError(f"{file}: {e}; pass element_spec") from None
    except (errors.OpError, TypeError, ValueError) as e:
        raise errors.DataLossError._of(f"{file} is damaged: {e}") from None
