"""What goes into the networks of tf.keras.applications, and what comes out of them."""

import functools
import json
import os

import numpy as np

from headrace import _api as tf
from headrace.keras import settings

_MEANS = [103.939, 116.779, 123.68]  # of blue, green and red in ImageNet
_SHARES = [0.485, 0.456, 0.406]  # of red, green and blue, of 1
_DEVIATIONS = [0.229, 0.224, 0.225]
_INDEX = "imagenet_class_index.json"


def preprocess_input(x, data_format=None, mode="caffe"):
    """Images of 0 to 255 as networks want them; an array of floats is changed in place.

    `mode` is "caffe" (blue, green, red, less the means of ImageNet), "tf" (-1 to 1) or
    "torch" (0 to 1, less the means, by the deviations). ValueError for other words.
    """
    if mode not in ("caffe", "tf", "torch"):
        raise ValueError(
            f"Expected mode to be one of `caffe`, `tf` or `torch`. Received: mode={mode}"
        )
    if data_format is None:
        data_format = settings.image_data_format()
    elif data_format not in ("channels_first", "channels_last"):
        raise ValueError(
            "Expected data_format to be one of `channels_first` or `channels_last`. "
            f"Received: data_format={data_format}"
        )
    is_array = isinstance(x, np.ndarray)
    if is_array and not np.issubdtype(x.dtype, np.floating):
        x = x.astype(settings.floatx(), copy=False)
    if not is_array:
        x = tf.convert_to_tensor(x)
        if not x.dtype.is_floating:
            x = tf.cast(x, settings.floatx())
    change = _of_array if is_array else _of_tensor
    return change(x, mode, -3 if data_format == "channels_first" else -1)


def _along(values, axis, dtype):
    shape = [-1] + [1] * (-axis - 1)
    return np.reshape(np.asarray(values, dtype), shape)


def _of_array(x, mode, axis):
    if mode == "tf":
        x /= 127.5
        x -= 1.0
        return x
    if mode == "torch":
        x /= 255.0
        x -= _along(_SHARES, axis, x.dtype)
        x /= _along(_DEVIATIONS, axis, x.dtype)
        return x
    x = np.flip(x, axis)
    x -= _along(_MEANS, axis, x.dtype)
    return x


def _of_tensor(x, mode, axis):
    dtype = x.dtype.as_numpy_dtype
    if mode == "tf":
        return x / 127.5 - 1.0
    if mode == "torch":
        x = x / 255.0 - _along(_SHARES, axis, dtype)
        return x / _along(_DEVIATIONS, axis, dtype)
    return tf.reverse(x, [axis]) - _along(_MEANS, axis, dtype)


def _of_mode(mode):
    def preprocess(x, data_format=None):
        return preprocess_input(x, data_format, mode)

    preprocess.__name__ = "preprocess_input"
    preprocess.__doc__ = f"""imagenet_utils.preprocess_input() in the mode "{mode}"."""
    return preprocess


preprocess_caffe, preprocess_tf, preprocess_torch = map(
    _of_mode, ("caffe", "tf", "torch")
)


def preprocess_nothing(x, data_format=None):
    """x: these networks scale what they get themselves."""
    return x


@functools.cache
def _classes(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def decode_predictions(preds, top=5):
    """For each row of [batch, 1000] the `top` likeliest classes of ImageNet, a list of
    (id, name, score).

    Their names are read of imagenet_class_index.json in ~/.keras/models, which is not
    downloaded: ValueError where it is not there, or for another shape.
    """
    if len(preds.shape) != 2 or preds.shape[1] != 1000:
        raise ValueError(
            "`decode_predictions` expects a batch of predictions (i.e. a 2D array of "
            f"shape (samples, 1000)). Found array with shape: {preds.shape}"
        )
    path = os.path.join(os.path.expanduser("~"), ".keras", "models", _INDEX)
    if not os.path.exists(path):
        raise ValueError(
            f"decode_predictions: the names of classes are not downloaded. Put {_INDEX} "
            "of https://storage.googleapis.com/download.tensorflow.org/data into "
            f"{os.path.dirname(path)}"
        )
    names, rows = _classes(path), np.asarray(preds)
    return [
        [(*names[str(i)], row[i]) for i in np.argsort(row)[-top:][::-1]] for row in rows
    ]
