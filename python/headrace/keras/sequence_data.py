"""Windows of series, and pairs of words: keras.preprocessing.sequence and
timeseries_dataset_from_array.
"""

import json
import random

import numpy as np

from headrace import _api as tf
from headrace.keras.classes import takes
from headrace.keras.utility import Sequence


def timeseries_dataset_from_array(
    data,
    targets,
    sequence_length,
    sequence_stride=1,
    sampling_rate=1,
    batch_size=128,
    shuffle=False,
    seed=None,
    start_index=None,
    end_index=None,
):
    """A dataset of batches of windows over the rows of `data`.

    A window has `sequence_length` rows, `sampling_rate` apart, and begins
    `sequence_stride` rows behind the one before; its target is that of its first row
    (None: windows alone). Only rows from `start_index` up to `end_index` are taken.
    Without a `batch_size` elements are single windows. ValueError for numbers that are
    not positive or lie outside of the data.
    """
    _check_range(len(data), 0, start_index=start_index, end_index=end_index)
    _check_range(
        len(data), 1, sampling_rate=sampling_rate, sequence_stride=sequence_stride
    )
    if start_index and end_index and end_index <= start_index:
        raise ValueError(
            "`end_index` must be higher than `start_index`. Received: "
            f"start_index={start_index}, and end_index={end_index} "
        )
    begin = start_index or 0
    end = len(data) if end_index is None else end_index
    count = end - begin - sequence_length * sampling_rate + sampling_rate
    if targets is not None:
        count = min(count, len(targets))
    starts = np.arange(0, max(count, 0), sequence_stride, dtype="int64")
    if shuffle:
        seed = np.random.randint(int(1e6)) if seed is None else seed
        np.random.RandomState(seed).shuffle(starts)
    rows = tf.convert_to_tensor(data)[begin:end]
    offsets = tf.range(sequence_length, dtype=tf.int64) * sampling_rate
    dataset = tf.data.Dataset.from_tensor_slices(starts).map(
        lambda start: tf.gather(rows, start + offsets),
        num_parallel_calls=tf.data.AUTOTUNE,
    )
    if targets is not None:
        wanted = tf.convert_to_tensor(targets)[begin:end]
        of_targets = tf.data.Dataset.from_tensor_slices(starts).map(
            lambda start: tf.gather(wanted, start), num_parallel_calls=tf.data.AUTOTUNE
        )
        dataset = tf.data.Dataset.zip((dataset, of_targets))
    dataset = dataset.prefetch(tf.data.AUTOTUNE)
    if batch_size is None:
        return dataset.shuffle(1024, seed=seed) if shuffle else dataset
    if shuffle:
        dataset = dataset.shuffle(batch_size * 8, seed=seed)
    return dataset.batch(batch_size)


def _check_range(length, least, **given):
    """ValueError unless least <= value < length, for values that are given."""
    for name, value in given.items():
        if value is None:
            continue
        if value < least:
            bound = "higher than 0" if least else "0 or greater"
            raise ValueError(f"`{name}` must be {bound}. Received: {name}={value}")
        if value >= length:
            raise ValueError(
                f"`{name}` must be lower than the length of the data. Received: "
                f"{name}={value}, for data of length {length}"
            )


@takes(
    "data, targets, length, sampling_rate=1, stride=1, start_index=0, end_index=None, "
    "shuffle=False, reverse=False, batch_size=128"
)
class TimeseriesGenerator(Sequence):
    """Batches of windows over `data`, each with the target behind its end."""

    def _begin(self):
        if len(self.data) != len(self.targets):
            raise ValueError(
                "Data and targets have to be of same length. Data length is "
                f"{len(self.data)} while target length is {len(self.targets)}"
            )
        self.start_index += self.length
        if self.end_index is None:
            self.end_index = len(self.data) - 1
        if self.start_index > self.end_index:
            raise ValueError(
                f"`start_index+length={self.start_index} > end_index={self.end_index}` "
                "is disallowed, as no part of the sequence would be left to be used as "
                "current step."
            )

    def __len__(self):
        span = self.end_index - self.start_index + self.batch_size * self.stride
        return span // (self.batch_size * self.stride)

    def __getitem__(self, index):
        if self.shuffle:
            ends = np.random.randint(
                self.start_index, self.end_index + 1, size=self.batch_size
            )
        else:
            first = self.start_index + self.batch_size * self.stride * index
            last = min(first + self.batch_size * self.stride, self.end_index + 1)
            ends = np.arange(first, last, self.stride)
        samples = np.array(
            [self.data[end - self.length : end : self.sampling_rate] for end in ends]
        )
        targets = np.array([self.targets[end] for end in ends])
        return (samples[:, ::-1] if self.reverse else samples), targets

    def get_config(self):
        """The arguments of the constructor as a dict, data and targets as JSON."""
        plain = {}
        for name in ("data", "targets"):
            values = getattr(self, name)
            values = values.tolist() if hasattr(values, "tolist") else values
            plain[name] = json.dumps(values)
        names = ("length", "sampling_rate", "stride", "start_index", "end_index")
        names += ("shuffle", "reverse", "batch_size")
        return {**plain, **{name: getattr(self, name) for name in names}}

    def to_json(self, **kwargs):
        """The class's name and get_config() as JSON."""
        config = {"class_name": type(self).__name__, "config": self.get_config()}
        return json.dumps(config, **kwargs)


def make_sampling_table(size, sampling_factor=1e-5):
    """How likely the word of each rank is kept, if words are as frequent as Zipf says:
    float64, [size]."""
    gamma = 0.577
    rank = np.arange(size)
    rank[0] = 1
    inverse = rank * (np.log(rank) + gamma) + 0.5 - 1.0 / (12.0 * rank)
    share = sampling_factor * inverse
    return np.minimum(1.0, share / np.sqrt(share))


def skipgrams(
    sequence,
    vocabulary_size,
    window_size=4,
    negative_samples=1.0,
    shuffle=True,
    categorical=False,
    sampling_table=None,
    seed=None,
):
    """([word, other] pairs, labels): 1 for words within `window_size` of each other, 0
    for `negative_samples` times as many pairs drawn at random. 0 is no word.

    Words are left out with the probability that `sampling_table` says. With
    `categorical` labels are [0, 1] and [1, 0].
    """
    yes, no = ([0, 1], [1, 0]) if categorical else (1, 0)
    couples, labels = [], []
    for i, word in enumerate(sequence):
        if not word:
            continue
        if sampling_table is not None and sampling_table[word] < random.random():
            continue
        near = range(max(0, i - window_size), min(len(sequence), i + window_size + 1))
        for j in near:
            if j != i and sequence[j]:
                couples.append([word, sequence[j]])
                labels.append(yes)
    if negative_samples > 0:
        count = int(len(labels) * negative_samples)
        words = [couple[0] for couple in couples]
        random.shuffle(words)
        couples += [
            [words[i % len(words)], random.randint(1, vocabulary_size - 1)]
            for i in range(count)
        ]
        labels += [no] * count
    if shuffle:
        seed = random.randint(0, 10**7) if seed is None else seed
        for values in (couples, labels):
            random.seed(seed)
            random.shuffle(values)
    return couples, labels
