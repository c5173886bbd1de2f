"""Datasets of folders with a sub-folder a class, and datasets split in two."""

import os

import numpy as np

from headrace import _api as tf
from headrace.framework.support import signatures
from headrace.keras.layer.preprocessing.image_sizes import smart_resize

_IMAGES = (".bmp", ".gif", ".jpeg", ".jpg", ".png")
_COLORS = {"rgb": 3, "rgba": 4, "grayscale": 1}
_RESIZERS = ("bilinear", "nearest", "bicubic", "area", "lanczos3", "lanczos5")
_RESIZERS += ("gaussian", "mitchellcubic")


def _check(labels, label_mode, class_names, kind):
    if labels not in ("inferred", None) and not isinstance(labels, (list, tuple)):
        raise ValueError(
            "`labels` argument should be a list/tuple of integer labels, of the same "
            f"size as the number of {kind} files in the target directory. If you wish "
            "to infer the labels from the subdirectory names in the target directory, "
            'pass `labels="inferred"`. If you wish to get a dataset that only contains '
            f"{kind}s (no labels), pass `label_mode=None`. Received: labels={labels}"
        )
    if class_names and labels != "inferred":
        raise ValueError(
            'You can only pass `class_names` if `labels="inferred"`. Received: '
            f"labels={labels}, and class_names={class_names}"
        )
    if label_mode not in ("int", "categorical", "binary", None):
        raise ValueError(
            '`label_mode` argument must be one of "int", "categorical", "binary", or '
            f"None. Received: label_mode={label_mode}"
        )


def _check_split(share, subset, shuffle, seed):
    if share is not None and not 0 < share < 1:
        raise ValueError(
            f"`validation_split` must be between 0 and 1, received: {share}"
        )
    if (share or subset) and not (share and subset):
        raise ValueError(
            "If `subset` is set, `validation_split` must be set, and inversely."
        )
    if subset not in ("training", "validation", "both", None):
        raise ValueError(
            '`subset` must be either "training", "validation" or "both", received: '
            f"{subset}"
        )
    if share and shuffle and seed is None:
        raise ValueError(
            "If using `validation_split` and shuffling the data, you must provide a "
            "`seed` argument, to make sure that there is no overlap between the "
            "training and validation subset."
        )


def _listed(folder, endings, follow_links):
    """The paths of files below a folder, in the order of their names."""
    found = []
    for root, _, names in os.walk(folder, followlinks=follow_links):
        found += [(root, name) for name in names]
    return [
        os.path.join(root, name)
        for root, name in sorted(found)
        if name.lower().endswith(endings)
    ]


def _indexed(directory, labels, endings, class_names, follow_links, seed):
    """(paths, labels, names of classes); the first two in an order of the seed's."""
    if not os.path.isdir(directory):
        raise tf.errors.NotFoundError(
            None, None, f"Could not find directory {directory}"
        )
    if labels == "inferred":
        there = sorted(
            name
            for name in os.listdir(directory)
            if os.path.isdir(os.path.join(directory, name)) and name[0] != "."
        )
        if class_names and set(class_names) != set(there):
            raise ValueError(
                "The `class_names` passed did not match the names of the "
                f"subdirectories of the target directory. Expected: {there}, but "
                f"received: {class_names}"
            )
        names = class_names or there
        # in the order of their names, whatever number each has
        by_class = {
            name: _listed(os.path.join(directory, name), endings, follow_links)
            for name in there
        }
        paths = [path for name in there for path in by_class[name]]
        labels = [list(names).index(n) for n in there for _ in by_class[n]]
    else:
        paths = _listed(directory, endings, follow_links)
        if labels is None:
            labels, names = [0] * len(paths), [""]
        else:
            names = sorted(set(labels))
    if len(labels) != len(paths):
        raise ValueError(
            "Expected the lengths of `labels` to match the number of files in the target "
            f"directory. len(labels) is {len(labels)} while we found {len(paths)} files "
            f"in directory {directory}."
        )
    print(f"Found {len(paths)} files belonging to {len(names)} classes.")
    labels = list(labels)
    if seed is not None:
        for values in (paths, labels):
            np.random.RandomState(seed).shuffle(values)
    return paths, labels, names


def _of_subset(paths, labels, share, subset):
    count = int(share * len(paths))
    if subset == "training":
        print(f"Using {len(paths) - count} files for training.")
        return paths[: len(paths) - count], labels[: len(paths) - count]
    print(f"Using {count} files for validation.")
    return paths[len(paths) - count :], labels[len(paths) - count :]


def _label_dataset(labels, label_mode, classes):
    labels = np.asarray(labels, "int32")
    dataset = tf.data.Dataset.from_tensor_slices(labels)
    if label_mode == "binary":
        return dataset.map(lambda x: tf.expand_dims(tf.cast(x, tf.float32), -1))
    if label_mode == "categorical":
        return dataset.map(lambda x: tf.one_hot(x, classes))
    return dataset


class _Folder:
    """What the three functions were told, and how a file is read."""

    def __init__(self, kind, endings, read, batch, given):
        self.__dict__.update(given)
        self.kind, self.endings, self.read, self.batch = kind, endings, read, batch
        _check(self.labels, self.label_mode, self.class_names, kind)
        _check_split(self.validation_split, self.subset, self.shuffle, self.seed)

    def datasets(self):
        """The dataset, or a list of both."""
        if self.labels is None or self.label_mode is None:
            self.labels = self.label_mode = None
        seed = self.seed
        if self.shuffle and seed is None:
            seed = np.random.randint(1e6)
        paths, labels, names = _indexed(
            self.directory,
            self.labels,
            self.endings,
            self.class_names,
            self.follow_links,
            seed if self.shuffle else None,
        )
        if self.label_mode == "binary" and len(names) != 2:
            raise ValueError(
                'When passing `label_mode="binary"`, there must be exactly 2 '
                f"class_names. Received: class_names={names}"
            )
        kinds = [self.subset]
        if self.subset == "both":
            kinds = ["training", "validation"]
        found = []
        for kind in kinds:
            mine = (paths, labels)
            if kind is not None:
                mine = _of_subset(paths, labels, self.validation_split, kind)
            shuffles = self.shuffle and (kind, self.subset) != ("validation", "both")
            found.append(self._dataset(*mine, names, seed, shuffles))
        return found if self.subset == "both" else found[0]

    def _dataset(self, paths, labels, names, seed, shuffles):
        if not paths:
            raise ValueError(
                f"No {self.kind} files found in directory {self.directory}. "
                f"Allowed format{'s' if len(self.endings) > 1 else ''}: "
                f"{self.endings if len(self.endings) > 1 else self.endings[0]}"
            )
        files = tf.data.Dataset.from_tensor_slices(paths)
        dataset = files.map(self.read, num_parallel_calls=tf.data.AUTOTUNE)
        if self.label_mode is not None:
            of_labels = _label_dataset(labels, self.label_mode, len(names))
            dataset = tf.data.Dataset.zip((dataset, of_labels))
        if shuffles:
            size = 1024 if self.batch_size is None else self.batch_size * 8
            dataset = dataset.shuffle(size, seed=seed)
        if self.batch_size is not None:
            dataset = self.batch(dataset, self.batch_size)
        dataset = dataset.prefetch(tf.data.AUTOTUNE)
        dataset.class_names, dataset.file_paths = names, paths
        return dataset


def _batch(dataset, size):
    return dataset.batch(size)


@signatures.having(
    "directory, labels='inferred', label_mode='int', class_names=None, "
    "color_mode='rgb', batch_size=32, image_size=(256, 256), shuffle=True, seed=None, "
    "validation_split=None, subset=None, interpolation='bilinear', "
    "follow_links=False, crop_to_aspect_ratio=False, **kwargs"
)
def image_dataset_from_directory(**given):
    """A dataset of batches of (images [batch, height, width, channels], labels) of the
    image files in `directory`, float32 and resized to `image_size`.

    `labels` are "inferred" from the names of the sub-folders, a list of a number each
    file in the order of paths, or None; `label_mode` makes them int32 numbers, float32
    rows of one 1 ("categorical"), [batch, 1] ("binary") or none. `subset` of
    `validation_split`: "training", "validation", or a list of "both". The dataset has
    class_names and file_paths. ValueError for arguments that do not fit the folder,
    NotFoundError where there is none.
    """
    size, color = given.pop("image_size"), given.pop("color_mode")
    how, cuts = given.pop("interpolation"), given.pop("crop_to_aspect_ratio")
    names = (
        "directory",
        "labels",
        "label_mode",
        "class_names",
        "batch_size",
        "shuffle",
        "seed",
    )
    names += ("validation_split", "subset", "follow_links")
    further = [name for name in given if name not in names]
    if further:
        raise TypeError(f"Unknown keywords argument(s): {tuple(further)}")
    if color not in _COLORS:
        raise ValueError(
            '`color_mode` must be one of {"rgb", "rgba", "grayscale"}. Received: '
            f"color_mode={color}"
        )
    if how not in _RESIZERS:
        raise NotImplementedError(
            f"Value not recognized for `interpolation`: {how}. Supported values are: "
            f"{list(_RESIZERS)}"
        )
    if not isinstance(size, (list, tuple)) or len(size) != 2:
        raise ValueError(
            "'size' must be a 1-D Tensor of 2 elements: new_height, new_width"
        )
    channels = _COLORS[color]

    def read(path):
        image = tf.io.decode_image(
            tf.io.read_file(path), channels=channels, expand_animations=False
        )
        image.set_shape((None, None, channels))
        if cuts:
            return smart_resize(image, size, interpolation=how)
        image = tf.image.resize(image, size, method=how)
        image.set_shape((*size, channels))
        return image

    return _Folder("image", _IMAGES, read, _batch, given).datasets()


@signatures.having(
    "directory, labels='inferred', label_mode='int', class_names=None, batch_size=32, "
    "max_length=None, shuffle=True, seed=None, validation_split=None, subset=None, "
    "follow_links=False"
)
def text_dataset_from_directory(max_length, **given):
    """A dataset of batches of (texts [batch], labels) of the files NAME.txt in
    `directory`, cut after `max_length` bytes.

    Other arguments and errors are image_dataset_from_directory's.
    """

    def read(path):
        text = tf.io.read_file(path)
        return text if max_length is None else tf.strings.substr(text, 0, max_length)

    return _Folder("text", (".txt",), read, _batch, given).datasets()


@signatures.having(
    "directory, labels='inferred', label_mode='int', class_names=None, batch_size=32, "
    "sampling_rate=None, output_sequence_length=None, ragged=False, shuffle=True, "
    "seed=None, validation_split=None, subset=None, follow_links=False"
)
def audio_dataset_from_directory(
    sampling_rate, output_sequence_length, ragged, **given
):
    """A dataset of batches of (sounds [batch, samples, channels], labels) of the files
    NAME.wav in `directory`: cut or filled with 0 to `output_sequence_length`, else to
    the longest of the batch, or ragged.

    Other arguments and errors are image_dataset_from_directory's. NotImplementedError
    for a `sampling_rate`: sounds are not resampled.
    """
    if ragged and output_sequence_length is not None:
        raise ValueError("Cannot set both `ragged` and `output_sequence_length`")
    if sampling_rate is not None:
        if not isinstance(sampling_rate, int):
            raise ValueError(
                "`sampling_rate` should have an integer value. Received: "
                f"sampling_rate={sampling_rate}"
            )
        if sampling_rate <= 0:
            raise ValueError(
                "`sampling_rate` should be higher than 0. Received: "
                f"sampling_rate={sampling_rate}"
            )
        raise NotImplementedError("audio_dataset_from_directory: sampling_rate")
    samples = -1 if output_sequence_length is None else output_sequence_length

    def read(path):
        return tf.audio.decode_wav(tf.io.read_file(path), desired_samples=samples)[0]

    def batch(dataset, size):
        if ragged:
            return dataset.ragged_batch(size)
        return dataset.padded_batch(size) if samples == -1 else dataset.batch(size)

    return _Folder("audio", (".wav",), read, batch, given).datasets()
