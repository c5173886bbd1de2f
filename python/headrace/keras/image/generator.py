"""tf.keras.preprocessing.image.ImageDataGenerator."""

import numpy as np

from headrace.framework.settings import logging
from headrace.framework.support import signatures
from headrace.keras import settings
from headrace.keras.image import transforms
from headrace.keras.image.iterators import DirectoryIterator, NumpyArrayIterator
from headrace.keras.image.table import DataFrameIterator

_TAKES = (
    "featurewise_center=False, samplewise_center=False, "
    "featurewise_std_normalization=False, samplewise_std_normalization=False, "
    "zca_whitening=False, zca_epsilon=1e-06, rotation_range=0, width_shift_range=0.0, "
    "height_shift_range=0.0, brightness_range=None, shear_range=0.0, zoom_range=0.0, "
    "channel_shift_range=0.0, fill_mode='nearest', cval=0.0, horizontal_flip=False, "
    "vertical_flip=False, rescale=None, preprocessing_function=None, data_format=None, "
    "validation_split=0.0, interpolation_order=1, dtype=None"
)
_TINY = 1e-6  # so that nothing is divided by zero


def _keep(self, data_format, dtype, validation_split, zoom_range, **given):
    self.__dict__.update(given)
    self.data_format = data_format or settings.image_data_format()
    self.dtype = dtype or settings.floatx()
    if self.data_format not in ("channels_last", "channels_first"):
        raise ValueError(
            '`data_format` should be `"channels_last"` (channel after row and column) or '
            '`"channels_first"` (channel before row and column). Received: '
            f"{data_format}"
        )
    if validation_split and not 0 < validation_split < 1:
        raise ValueError(
            "`validation_split` must be strictly between 0 and 1.  Received: "
            f"{validation_split}"
        )
    self._validation_split = validation_split
    last = self.data_format == "channels_last"
    self.row_axis, self.col_axis, self.channel_axis = (1, 2, 3) if last else (2, 3, 1)
    self.mean = self.std = self.zca_whitening_matrix = None
    self.zoom_range = _zoom(zoom_range)
    self._settle()


def _zoom(given):
    if isinstance(given, (float, int)):
        return [1 - given, 1 + given]
    if len(given) == 2 and all(isinstance(v, (float, int)) for v in given):
        return [given[0], given[1]]
    raise ValueError(
        "`zoom_range` should be a float or a tuple or list of two floats. Received: "
        f"{given}"
    )


def _shift(given, size):
    """A number of pixels: one of those given, or up to a number or share of `size`."""
    if not np.any(given):
        return 0
    if np.ndim(given) or isinstance(given, int):  # of 2: 0 or 1
        return np.random.choice(given) * np.random.choice([-1, 1])
    drawn = np.random.uniform(-given, given)
    return drawn * size if given < 1 else drawn


class ImageDataGenerator:
    """Batches of images, each changed at random and normalized.

    Attributes: those of its parameters. fit() finds what featurewise_center,
    featurewise_std_normalization and zca_whitening need. Random numbers are NumPy's.
    """

    __init__ = signatures.constructor(_TAKES, _keep)

    def _settle(self):
        """What some arguments say of others."""
        if self.zca_whitening:
            if not self.featurewise_center:
                self.featurewise_center = True
            if self.featurewise_std_normalization:
                self.featurewise_std_normalization = False
        if self.featurewise_std_normalization:
            self.featurewise_center = True
        if self.samplewise_std_normalization:
            self.samplewise_center = True
        given = self.brightness_range
        if given is not None and (
            not isinstance(given, (tuple, list)) or len(given) != 2
        ):
            raise ValueError(
                "`brightness_range should be tuple or list of two floats. Received: "
                f"{given}"
            )

    def flow(
        self,
        x,
        y=None,
        batch_size=32,
        shuffle=True,
        sample_weight=None,
        seed=None,
        save_to_dir=None,
        save_prefix="",
        save_format="png",
        ignore_class_split=False,
        subset=None,
    ):
        """Batches of arrays without end: x, or (x, y), or with sample weights."""
        return NumpyArrayIterator(
            x,
            y,
            self,
            batch_size,
            shuffle,
            sample_weight,
            seed,
            self.data_format,
            save_to_dir,
            save_prefix,
            save_format,
            subset,
            ignore_class_split,
            self.dtype,
        )

    def flow_from_directory(
        self,
        directory,
        target_size=(256, 256),
        color_mode="rgb",
        classes=None,
        class_mode="categorical",
        batch_size=32,
        shuffle=True,
        seed=None,
        save_to_dir=None,
        save_prefix="",
        save_format="png",
        follow_links=False,
        subset=None,
        interpolation="nearest",
        keep_aspect_ratio=False,
    ):
        """Batches of the images in a folder's folders, each of which is a class."""
        return DirectoryIterator(
            directory,
            self,
            target_size,
            color_mode,
            classes,
            class_mode,
            batch_size,
            shuffle,
            seed,
            self.data_format,
            save_to_dir,
            save_prefix,
            save_format,
            follow_links,
            subset,
            interpolation,
            keep_aspect_ratio,
            self.dtype,
        )

    def flow_from_dataframe(
        self,
        dataframe,
        directory=None,
        x_col="filename",
        y_col="class",
        weight_col=None,
        target_size=(256, 256),
        color_mode="rgb",
        classes=None,
        class_mode="categorical",
        batch_size=32,
        shuffle=True,
        seed=None,
        save_to_dir=None,
        save_prefix="",
        save_format="png",
        subset=None,
        interpolation="nearest",
        validate_filenames=True,
        keep_aspect_ratio=False,
        **kwargs,
    ):
        """Batches of the images that the column `x_col` of a pandas.DataFrame names in
        `directory`, with the labels of the column `y_col`, or columns.

        TypeError for what has no columns by name.
        """
        if kwargs:
            raise TypeError(f"Unexpected arguments: {sorted(kwargs)}")
        if not hasattr(dataframe, "columns"):
            raise TypeError(
                "flow_from_dataframe takes a pandas.DataFrame, got "
                f"{type(dataframe).__name__}"
            )
        return DataFrameIterator(
            dataframe,
            directory,
            self,
            x_col,
            y_col,
            weight_col,
            target_size,
            color_mode,
            classes,
            class_mode,
            batch_size,
            shuffle,
            seed,
            self.data_format,
            validate_filenames,
            save_to_dir=save_to_dir,
            save_prefix=save_prefix,
            save_format=save_format,
            subset=subset,
            interpolation=interpolation,
            keep_aspect_ratio=keep_aspect_ratio,
            dtype=self.dtype,
        )

    def standardize(self, x):
        """A batch of images, an array that is changed in place, as the arguments say."""
        if self.preprocessing_function:
            x = self.preprocessing_function(x)
        if self.rescale:
            x *= self.rescale
        if self.samplewise_center:
            x -= np.mean(x, keepdims=True)
        if self.samplewise_std_normalization:
            x /= np.std(x, keepdims=True) + _TINY
        if self.featurewise_center and self._was_fitted(
            "featurewise_center", self.mean
        ):
            x -= self.mean
        name = "featurewise_std_normalization"
        if self.featurewise_std_normalization and self._was_fitted(name, self.std):
            x /= self.std + _TINY
        matrix = self.zca_whitening_matrix
        if self.zca_whitening and self._was_fitted("zca_whitening", matrix):
            x = (x.reshape(-1, np.prod(x.shape[-3:])) @ matrix).reshape(x.shape)
        return x

    @staticmethod
    def _was_fitted(what, value):
        if value is None:
            logging.warn(
                f"This ImageDataGenerator specifies `{what}`, but it hasn't been fit on "
                "any training data. Fit it first by calling `.fit(numpy_data)`."
            )
        return value is not None

    def get_random_transform(self, img_shape, seed=None):
        """The arguments of apply_transform() for one image, drawn."""
        if seed is not None:
            np.random.seed(seed)
        rows, columns = img_shape[self.row_axis - 1], img_shape[self.col_axis - 1]
        uniform, turn, shear = np.random.uniform, self.rotation_range, self.shear_range
        found = {"theta": uniform(-turn, turn) if turn else 0}
        found["tx"] = _shift(self.height_shift_range, rows)
        found["ty"] = _shift(self.width_shift_range, columns)
        found["shear"] = uniform(-shear, shear) if shear else 0
        zoom = self.zoom_range
        both = zoom[0] == 1 and zoom[1] == 1
        found["zx"], found["zy"] = (1, 1) if both else uniform(zoom[0], zoom[1], 2)
        for name in ("horizontal", "vertical"):
            flips = getattr(self, f"{name}_flip")
            found[f"flip_{name}"] = (np.random.random() < 0.5) * flips
        shift, bright = self.channel_shift_range, self.brightness_range
        found["channel_shift_intensity"] = uniform(-shift, shift) if shift else None
        found["brightness"] = uniform(*bright) if bright is not None else None
        return found

    def apply_transform(self, x, transform_parameters):
        """One image changed by theta, tx, ty, shear, zx, zy, flip_horizontal,
        flip_vertical, channel_shift_intensity and brightness, of which a dict has some.
        """
        rows, columns = self.row_axis - 1, self.col_axis - 1
        given, axis = transform_parameters, self.channel_axis - 1
        affine = {n: given.get(n, 0) for n in ("theta", "tx", "ty", "shear")}
        affine.update({n: given.get(n, 1) for n in ("zx", "zy")})
        x = transforms.apply_affine_transform(
            x,
            **affine,
            row_axis=rows,
            col_axis=columns,
            channel_axis=axis,
            fill_mode=self.fill_mode,
            cval=self.cval,
            order=self.interpolation_order,
        )
        if given.get("channel_shift_intensity") is not None:
            shift = given["channel_shift_intensity"]
            x = transforms.apply_channel_shift(x, shift, axis)
        if given.get("flip_horizontal", False):
            x = transforms.flip_axis(x, columns)
        if given.get("flip_vertical", False):
            x = transforms.flip_axis(x, rows)
        if given.get("brightness") is not None:
            x = transforms.apply_brightness_shift(x, given["brightness"], False)
        return x

    def random_transform(self, x, seed=None):
        """One image changed at random."""
        return self.apply_transform(x, self.get_random_transform(x.shape, seed))

    def fit(self, x, augment=False, rounds=1, seed=None):
        """Finds the mean, deviation and whitening of images; with `augment` of `rounds`
        random changes of each.

        ValueError where they are no [images, height, width, channels].
        """
        x = np.asarray(x, dtype=self.dtype)
        if x.ndim != 4:
            raise ValueError(
                f"Input to `.fit()` should have rank 4. Got array with shape: {x.shape}"
            )
        if seed is not None:
            np.random.seed(seed)
        x = np.copy(x)
        if augment:
            changed = [self.random_transform(v) for _ in range(rounds) for v in x]
            x = np.array(changed, dtype=self.dtype)
        shape = [1, 1, 1]
        shape[self.channel_axis - 1] = x.shape[self.channel_axis]
        axes = (0, self.row_axis, self.col_axis)
        if self.featurewise_center:
            self.mean = np.mean(x, axis=axes).reshape(shape)
            x -= self.mean
        if self.featurewise_std_normalization:
            self.std = np.std(x, axis=axes).reshape(shape)
            x /= self.std + _TINY
        if self.zca_whitening:
            flat = x.reshape(len(x), -1)
            u, s, _ = np.linalg.svd(flat.T, full_matrices=False)
            inverse = np.sqrt(len(x)) / (s + self.zca_epsilon)
            self.zca_whitening_matrix = (u * inverse).dot(u.T)
