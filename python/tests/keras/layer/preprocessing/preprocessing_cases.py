"""Cases of test_preprocessing.py. recorded.py writes their values; it
wants TF_USE_LEGACY_KERAS=1."""

import numpy as np

_RNG = np.random.RandomState(1)
IMAGES = _RNG.uniform(0, 255, (2, 5, 7, 3)).astype("float32")
TABLE = (_RNG.randn(50, 3) * [1, 10, 0.1] + 5).astype("float32")
TEXTS = ["Foo bar, baz!", "bar  QUX", "the bar (of) foo.", ""]


def _layers(tf):
    return tf.keras.layers


def _words(layer):
    return [str(w) for w in layer.get_vocabulary()]


def _ragged(x):
    return [x.values, x.row_splits]


def case_normalization(tf):
    k = _layers(tf)
    found = []
    for axis in (-1, None, 0, (0, 1)):
        layer = k.Normalization(axis=axis)
        data = TABLE if axis in (-1, None) else TABLE[:4]
        layer.adapt(data, batch_size=len(data))
        found += [layer(data[:4]), layer.mean, layer.variance, *layer.weights]
    layer = k.Normalization(axis=-1, invert=True, mean=[1, 2, 3.0], variance=4.0)
    return [*found, layer(TABLE[:3]), k.Normalization()(TABLE[:3])]


def case_normalization_of_batches(tf):
    layer = _layers(tf).Normalization()
    layer.adapt(tf.data.Dataset.from_tensor_slices(TABLE).batch(16))
    return [layer.mean, layer.variance, layer.count]


def case_discretization(tf):
    k = _layers(tf)
    found = []
    for bins, epsilon in ((4, 0.01), (3, 0.1), (7, 0.05)):
        layer = k.Discretization(num_bins=bins, epsilon=epsilon)
        layer.adapt(tf.data.Dataset.from_tensor_slices(TABLE[:, 1]).batch(50))
        found += [layer.bin_boundaries, layer(TABLE)]
    given = [0.0, 1.0, 2.0]
    x = [[-1.0, 0.0, 0.5, 9.0]]
    for mode in ("int", "multi_hot", "count"):
        found.append(k.Discretization(given, output_mode=mode)(np.array(x)))
    ragged = k.Discretization(given)(tf.ragged.constant([[1.0, 2.0], [0.5]]))
    return [*found, *_ragged(ragged)]


def case_hashing(tf):
    k = _layers(tf)
    words = tf.constant([["A"], ["B"], [""], ["dé"]])
    found = [
        layer(words)
        for layer in (
            k.Hashing(3),
            k.Hashing(3, mask_value=""),
            k.Hashing(7, salt=133),
            k.Hashing(7, salt=[133, 137]),
            k.Hashing(4, output_mode="one_hot"),
            k.Hashing(4, output_mode="count"),
        )
    ]
    found.append(k.Hashing(5)(np.array([[1, 2], [3, -4]])))
    crossed = k.HashedCrossing(5)
    a, b = tf.constant(["A", "B", "C"]), tf.constant([101, 102, 103])
    found += [crossed((a, b)), crossed((a[:, None], b[:, None]))]
    return [*found, k.HashedCrossing(6, output_mode="one_hot")((a, b))]


def case_category_encoding(tf):
    k = _layers(tf)
    x = np.array([[0, 1], [2, 2], [3, 1]])
    weights = np.array([[0.1, 0.2], [0.3, 0.4], [0.5, 0.6]])
    return [
        k.CategoryEncoding(4)(x),
        k.CategoryEncoding(4)(x[0]),
        k.CategoryEncoding(5, output_mode="count")(x),
        k.CategoryEncoding(4, output_mode="count")(x, count_weights=weights),
        k.CategoryEncoding(4, output_mode="one_hot")(x[2]),
        k.CategoryEncoding(4, output_mode="one_hot")(x[:, :1]),
        k.CategoryEncoding(4)(tf.ragged.constant([[1, 2], [3]])),
        tf.sparse.to_dense(k.CategoryEncoding(4, sparse=True)(x)),
    ]


def case_out_of_range(tf):
    return _layers(tf).CategoryEncoding(3)(np.array([[0, 5]]))


def case_string_lookup(tf):
    k = _layers(tf)
    found = []
    for options in (
        {},
        {"mask_token": ""},
        {"num_oov_indices": 3},
        {"num_oov_indices": 0},
        {"max_tokens": 4},
    ):
        layer = k.StringLookup(**options)
        layer.adapt(["b", "a", "a", "b", "c", "d", "d", "é"])
        found.append(_words(layer))
        if options.get("num_oov_indices") != 0:
            found.append(layer([["a", "x", "", "yy", "é"]]))
    for mode in ("one_hot", "multi_hot", "count"):
        layer = k.StringLookup(vocabulary=["a", "b"], output_mode=mode)
        found.append(layer(["a", "b", "q"]))
    layer = k.StringLookup(vocabulary=["a", "b"], invert=True)
    found.append(layer([[0, 1, 2, 9]]))
    layer = k.StringLookup(
        vocabulary=["a", "b"], output_mode="tf_idf", idf_weights=[0.5, 0.75]
    )
    found.append(layer([["a", "b", "q", "b"]]))
    layer = k.StringLookup(
        vocabulary=["[UNK]", "a", "b"],
        output_mode="count",
        pad_to_max_tokens=True,
        max_tokens=6,
    )
    return [*found, layer([["a", "b", "q", "b"], ["b"] * 4])]


def case_integer_lookup(tf):
    k = _layers(tf)
    layer = k.IntegerLookup()
    layer.adapt(np.array([[5, 7, 7], [7, 5, 1]]))
    found = [[int(w) for w in layer.get_vocabulary()], layer([[5, 1, 9]])]
    layer = k.IntegerLookup(vocabulary=[12, 36], mask_token=0, num_oov_indices=2)
    found.append(layer([[12, 36, 0, 7, 8]]))
    layer = k.IntegerLookup(vocabulary=[12, 36], invert=True)
    return [*found, layer([[0, 1, 2, 3]])]


def case_text_vectorization(tf):
    k = _layers(tf)
    found = []
    for options in (
        {},
        {"output_sequence_length": 2},
        {"ngrams": 2},
        {"ngrams": (1, 3)},
        {"output_mode": "multi_hot"},
        {"output_mode": "count", "max_tokens": 4},
        {"output_mode": "tf_idf"},
        {"split": "character", "standardize": None},
        {"standardize": "strip_punctuation"},
        {"max_tokens": 5, "output_mode": "count", "pad_to_max_tokens": True},
    ):
        layer = k.TextVectorization(**options)
        layer.adapt(TEXTS)
        found += [_words(layer), layer(["foo the zzz. Bar", "QUX"])]
    layer = k.TextVectorization(ragged=True, vocabulary=["foo", "bar"])
    found += _ragged(layer(["foo x bar", "", "bar"]))
    layer = k.TextVectorization(
        standardize=tf.strings.upper,
        split=lambda s: tf.strings.split(s, "-"),
        vocabulary=["A", "B"],
    )
    return [*found, layer([["a-b"], ["c"]]), layer("a-b")]


def case_images(tf):
    k = _layers(tf)
    found = [
        layer(IMAGES)
        for layer in (
            k.Resizing(3, 4),
            k.Resizing(8, 4, "bicubic"),
            k.Resizing(3, 3, crop_to_aspect_ratio=True),
            k.CenterCrop(3, 4),
            k.CenterCrop(6, 4),
            k.Rescaling(1 / 255.0, -0.5),
        )
    ]
    whole = IMAGES.astype("uint8")
    found += [k.Resizing(2, 9, "nearest")(whole), k.CenterCrop(2, 3)(whole[0])]
    smart = tf.keras.preprocessing.image.smart_resize
    return [*found, smart(IMAGES, (4, 4)), k.Rescaling(2)(np.array([1, 2]))]
