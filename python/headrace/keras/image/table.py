"""Batches of the images that a table names."""

import os

import numpy as np

from headrace.framework.settings import logging
from headrace.keras.image.iterators import FileIterator, check_class_mode


class DataFrameIterator(FileIterator):
    """Batches of the images of a pandas.DataFrame's column, with labels of others."""

    allowed_class_modes = {
        *("binary", "categorical", "input", "multi_output", "raw", "sparse"),
        None,
    }

    def __init__(
        self,
        dataframe,
        directory,
        image_data_generator,
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
        data_format,
        validate_filenames,
        **options,
    ):
        self._set_images(
            image_data_generator, target_size, color_mode, data_format, options
        )
        check_class_mode(class_mode, self.allowed_class_modes)
        self.class_mode = class_mode
        names = [os.path.join(directory or "", n) for n in dataframe[x_col]]
        kept = [not validate_filenames or os.path.isfile(n) for n in names]
        if not all(kept):
            logging.warn(
                f"Found {kept.count(False)} invalid image filename(s) in "
                f'x_col="{x_col}". These filename(s) will be ignored.'
            )
        columns = {c: list(dataframe[c]) for c in self._columns(y_col, weight_col)}
        rows = [i for i, ok in enumerate(kept) if ok]
        if classes and class_mode in ("categorical", "binary", "sparse"):
            rows = [i for i in rows if columns[y_col][i] in classes]
        if self.split is not None:
            first, last = (int(share * len(rows)) for share in self.split)
            rows = rows[first:last]
        self.filepaths = [names[i] for i in rows]
        self.filenames = [list(dataframe[x_col])[i] for i in rows]
        columns = {c: [v[i] for i in rows] for c, v in columns.items()}
        self.sample_weight = np.array(columns[weight_col]) if weight_col else None
        self._set_labels(columns, y_col, classes)
        super().__init__(len(rows), batch_size, shuffle, seed)

    def _columns(self, y_col, weight_col):
        wanted = y_col if isinstance(y_col, (list, tuple)) else [y_col]
        wanted = [] if self.class_mode in ("input", None) else list(wanted)
        return wanted + ([weight_col] if weight_col else [])

    def _set_labels(self, columns, y_col, classes):
        kind, said = self.class_mode, ""
        if kind in ("categorical", "binary", "sparse"):
            given = columns[y_col]
            known = list(classes) if classes else sorted(set(given))
            if kind == "binary" and len(known) != 2:
                raise ValueError(
                    'If class_mode="binary" there must be 2 classes. '
                    f"{len(known)} classes were given."
                )
            self.class_indices = {name: i for i, name in enumerate(known)}
            self.labels = self.classes = [self.class_indices[v] for v in given]
            said = f" belonging to {len(known)} classes"
        elif kind == "raw":
            one = not isinstance(y_col, (list, tuple))
            self.labels = np.array(
                columns[y_col] if one else list(zip(*(columns[c] for c in y_col)))
            )
        elif kind == "multi_output":
            self._outputs = [np.array(columns[c]) for c in y_col]
        about = "validated" if self.filepaths else "valid"
        print(f"Found {len(self.filepaths)} {about} image filenames{said}.")

    def _with_labels(self, batch, index_array):
        if self.class_mode != "multi_output":
            return super()._with_labels(batch, index_array)
        found = (batch, [column[index_array] for column in self._outputs])
        if self.sample_weight is None:
            return found
        return (*found, self.sample_weight[index_array])
