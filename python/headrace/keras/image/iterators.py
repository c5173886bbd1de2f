"""Batches of images without end: of arrays, folders, tables."""

import os

import numpy as np

from headrace.framework.settings import logging
from headrace.keras import image_files, settings
from headrace.keras.utility import Sequence

_FORMATS = (".png", ".jpg", ".jpeg", ".bmp", ".ppm", ".tif", ".tiff")
_MODES = {"rgba": 4, "rgb": 3, "grayscale": 1}


class Iterator(Sequence):
    """Batches of `n` items, epoch after epoch; subclasses make those of some indices."""

    def __init__(self, n, batch_size, shuffle, seed):
        self.n, self.batch_size, self.shuffle, self.seed = n, batch_size, shuffle, seed
        self.total_batches_seen = 0
        self.index_array = None
        self.reset()

    def _get_batches_of_transformed_samples(self, index_array):
        """The batch of the items with these indices."""
        raise NotImplementedError

    def reset(self):
        """Begins with the first batch again."""
        self.batch_index = 0

    def _set_index_array(self):
        many = np.random.permutation if self.shuffle else np.arange
        self.index_array = many(self.n)

    def on_epoch_end(self):
        """Shuffles anew."""
        self._set_index_array()

    def __len__(self):
        return -(-self.n // self.batch_size)

    def _sow(self):
        if self.seed is not None:
            np.random.seed(self.seed + self.total_batches_seen)

    def __getitem__(self, idx):
        if idx >= len(self):
            raise ValueError(
                f"Asked to retrieve element {idx}, but the Sequence has length "
                f"{len(self)}"
            )
        self._sow()
        self.total_batches_seen += 1
        if self.index_array is None:
            self._set_index_array()
        start = self.batch_size * idx
        part = self.index_array[start : start + self.batch_size]
        return self._get_batches_of_transformed_samples(part)

    def __iter__(self):
        return self

    def __next__(self):
        """The next batch; it goes round for ever."""
        self._sow()
        if self.batch_index == 0:
            self._set_index_array()
        start = self.batch_index * self.batch_size % self.n if self.n else 0
        more = self.n > start + self.batch_size
        self.batch_index = self.batch_index + 1 if more else 0
        self.total_batches_seen += 1
        part = self.index_array[start : start + self.batch_size]
        return self._get_batches_of_transformed_samples(part)

    next = __next__

    def _save(self, batch, indices):
        """Writes the images of a batch into the folder that was asked for."""
        if not self.save_to_dir:
            return
        for i, j in enumerate(indices):
            mark = np.random.randint(int(1e4))
            name = f"{self.save_prefix}_{j}_{mark}.{self.save_format}"
            img = image_files.array_to_img(batch[i], self.data_format, scale=True)
            img.save(os.path.join(self.save_to_dir, name))


def _floats(dtype):
    return dtype or settings.floatx()


class NumpyArrayIterator(Iterator):
    """Batches of arrays: what ImageDataGenerator.flow() gives."""

    def __init__(
        self,
        x,
        y,
        image_data_generator,
        batch_size=32,
        shuffle=False,
        sample_weight=None,
        seed=None,
        data_format=None,
        save_to_dir=None,
        save_prefix="",
        save_format="png",
        subset=None,
        ignore_class_split=False,
        dtype=None,
    ):
        self.data_format = data_format or settings.image_data_format()
        self.dtype = _floats(dtype)
        self.image_data_generator = image_data_generator
        x, others = self._parted(x)
        self._check_lengths(x, others, y, sample_weight)
        arrays = [x, y, sample_weight, *others]
        if subset is not None:
            split = int(len(x) * image_data_generator._validation_split)
            self._check_subset(subset, y, split, ignore_class_split)
            part = slice(split) if subset == "validation" else slice(split, None)
            arrays = [a if a is None else np.asarray(a)[part] for a in arrays]
        x, y, sample_weight, *self.x_misc = arrays
        self.x = np.asarray(x, dtype=self.dtype)
        if self.x.ndim != 4:
            raise ValueError(
                "Input data in `NumpyArrayIterator` should have rank 4. You passed an "
                "array with shape",
                self.x.shape,
            )
        channels = self.x.shape[3 if self.data_format == "channels_last" else 1]
        if channels not in (1, 3, 4):
            logging.warn(
                f"NumpyArrayIterator: images of {channels} channels, with data_format "
                f'"{self.data_format}"; 1, 3 or 4 are expected'
            )
        self.y = None if y is None else np.asarray(y)
        self.sample_weight = (
            None if sample_weight is None else np.asarray(sample_weight)
        )
        self.save_to_dir, self.save_prefix = save_to_dir, save_prefix
        self.save_format = save_format
        super().__init__(len(self.x), batch_size, shuffle, seed)

    @staticmethod
    def _parted(x):
        """(the images, a list of what else goes in)."""
        if not isinstance(x, (tuple, list)):
            return x, []
        first, rest = x[0], x[1]
        rest = [np.asarray(r) for r in rest] if isinstance(rest, list) else [rest]
        rest = [np.asarray(r) for r in rest]
        if any(len(first) != len(r) for r in rest):
            raise ValueError(
                "All of the arrays in `x` should have the same length. Found a pair "
                f"with: len(x[0]) = {len(first)}, len(x[?]) = "
                f"{[len(r) for r in rest]}"
            )
        return first, rest

    @staticmethod
    def _check_lengths(x, others, y, sample_weight):
        for what, value in (("`y` (labels)", y), ("`sample_weight`", sample_weight)):
            if value is not None and len(x) != len(value):
                short = "y" if what[1] == "y" else "sample_weight"
                raise ValueError(
                    f"`x` (images tensor) and {what} should have the same length. Found: "
                    f"x.shape = {np.asarray(x).shape}, {short}.shape = "
                    f"{np.asarray(value).shape}"
                )

    @staticmethod
    def _check_subset(subset, y, split, ignore_class_split):
        if subset not in ("training", "validation"):
            raise ValueError(
                "Invalid subset name:",
                subset,
                '; expected "training" or "validation".',
            )
        if y is None or ignore_class_split:
            return
        if not np.array_equal(np.unique(y[:split]), np.unique(y[split:])):
            raise ValueError(
                "Training and validation subsets have different number of classes after "
                "the split. If your numpy arrays are sorted by the label, you might want "
                "to shuffle them."
            )

    def _get_batches_of_transformed_samples(self, index_array):
        shape = (len(index_array), *self.x.shape[1:])
        batch, generator = np.zeros(shape, self.dtype), self.image_data_generator
        for i, j in enumerate(index_array):
            image = self.x[j]
            params = generator.get_random_transform(image.shape)
            image = generator.apply_transform(image.astype(self.dtype), params)
            batch[i] = generator.standardize(image)
        self._save(batch, index_array)
        others = [x[index_array] for x in self.x_misc]
        found = [[batch, *others] if others else batch]
        if self.y is None:
            return found[0]
        found.append(self.y[index_array])
        if self.sample_weight is not None:
            found.append(self.sample_weight[index_array])
        return tuple(found)


class FileIterator(Iterator):
    """Batches of images of files: subclasses set filepaths, labels and class_mode."""

    def _set_images(self, generator, target_size, color_mode, data_format, options):
        self.image_data_generator = generator
        self.target_size = tuple(target_size)
        if color_mode not in _MODES:
            raise ValueError(
                "Invalid color mode:",
                color_mode,
                '; expected "rgb", "rgba", or "grayscale".',
            )
        self.color_mode = color_mode
        self.data_format = data_format or settings.image_data_format()
        channels = _MODES[color_mode]
        sizes = self.target_size
        last = self.data_format == "channels_last"
        self.image_shape = (*sizes, channels) if last else (channels, *sizes)
        for name, value in options.items():
            setattr(self, name, value)
        self.dtype = _floats(options.get("dtype"))
        if self.subset is None:
            self.split = None
            return
        if self.subset not in ("training", "validation"):
            raise ValueError(
                f"Invalid subset name: {self.subset};"
                'expected "training" or "validation"'
            )
        share = generator._validation_split
        self.split = (0, share) if self.subset == "validation" else (share, 1)

    def _get_batches_of_transformed_samples(self, index_array):
        shape = (len(index_array), *self.image_shape)
        batch, generator = np.zeros(shape, self.dtype), self.image_data_generator
        for i, j in enumerate(index_array):
            img = image_files.load_img(
                self.filepaths[j],
                color_mode=self.color_mode,
                target_size=self.target_size,
                interpolation=self.interpolation,
                keep_aspect_ratio=self.keep_aspect_ratio,
            )
            x = image_files.img_to_array(img, self.data_format)
            params = generator.get_random_transform(x.shape)
            x = generator.apply_transform(x, params)
            batch[i] = generator.standardize(x)
        self._save(batch, index_array)
        return self._with_labels(batch, index_array)

    def _with_labels(self, batch, index_array):
        kind = self.class_mode
        if kind is None:
            return batch
        if kind == "input":
            found = (batch, batch.copy())
        elif kind == "categorical":
            labels = np.zeros((len(batch), len(self.class_indices)), self.dtype)
            for i, j in enumerate(index_array):
                labels[i, self.labels[j]] = 1.0
            found = (batch, labels)
        elif kind in ("binary", "sparse"):
            found = (batch, np.asarray(self.labels)[index_array].astype(self.dtype))
        else:
            found = (batch, np.asarray(self.labels)[index_array])
        weights = getattr(self, "sample_weight", None)
        return found if weights is None else (*found, weights[index_array])


class DirectoryIterator(FileIterator):
    """Batches of a folder's images, whose folders are classes."""

    allowed_class_modes = {"categorical", "binary", "sparse", "input", None}

    def __init__(
        self,
        directory,
        image_data_generator,
        target_size=(256, 256),
        color_mode="rgb",
        classes=None,
        class_mode="categorical",
        batch_size=32,
        shuffle=True,
        seed=None,
        data_format=None,
        save_to_dir=None,
        save_prefix="",
        save_format="png",
        follow_links=False,
        subset=None,
        interpolation="nearest",
        keep_aspect_ratio=False,
        dtype=None,
    ):
        options = dict(
            save_to_dir=save_to_dir,
            save_prefix=save_prefix,
            save_format=save_format,
            subset=subset,
            interpolation=interpolation,
            keep_aspect_ratio=keep_aspect_ratio,
            dtype=dtype,
        )
        self._set_images(
            image_data_generator, target_size, color_mode, data_format, options
        )
        check_class_mode(class_mode, self.allowed_class_modes)
        self.directory, self.class_mode = directory, class_mode
        if not classes:
            classes = sorted(e.name for e in os.scandir(directory) if e.is_dir())
        self.num_classes = len(classes)
        self.class_indices = {name: i for i, name in enumerate(classes)}
        self.filenames, found = [], []
        for name in classes:
            files = self._files_of(os.path.join(directory, name), follow_links)
            self.filenames += [os.path.relpath(f, directory) for f in files]
            found += [self.class_indices[name]] * len(files)
        self.classes = np.array(found, "int32")
        print(f"Found {len(found)} images belonging to {len(classes)} classes.")
        super().__init__(len(found), batch_size, shuffle, seed)

    def _files_of(self, folder, follow_links):
        found = [
            os.path.join(root, name)
            for root, _, names in sorted(os.walk(folder, followlinks=follow_links))
            for name in sorted(names)
            if name.lower().endswith(_FORMATS)
        ]
        if self.split is None:
            return found
        first, last = (int(share * len(found)) for share in self.split)
        return found[first:last]

    @property
    def filepaths(self):
        """A list of the files' paths."""
        return [os.path.join(self.directory, name) for name in self.filenames]

    @property
    def labels(self):
        """The class of each file, an array."""
        return self.classes


def check_class_mode(given, allowed):
    """ValueError for a class_mode that there is not."""
    if given not in allowed:
        raise ValueError(f"Invalid class_mode: {given}; expected one of: {allowed}")
