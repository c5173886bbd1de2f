"""Programs whose values tests/golden/keras/values.npz keeps.

Written anew by a Python that has TensorFlow 2.21 and tf-keras:
`TF_USE_LEGACY_KERAS=1 python keras_cases.py tensorflow ../../../tests/golden/keras`.
"""

import importlib
import sys

import numpy as np

_RNG = np.random.RandomState(1)
SEQ = _RNG.randn(2, 5, 4).astype("float32")
IMAGE = _RNG.randn(2, 6, 7, 3).astype("float32")
VECTOR = _RNG.randn(3, 4).astype("float32")
VOLUME = _RNG.randn(1, 4, 4, 4, 2).astype("float32")
IDS = np.array([[1, 0, 3], [2, 5, 6]])
MASK = np.array([[1, 1, 0, 1, 0], [1, 1, 1, 1, 1]], bool)
Y_TRUE = _RNG.rand(4, 3).astype("float32")
Y_PRED = _RNG.rand(4, 3).astype("float32")
LABELS = np.array([0, 2, 1, 1])
ONE_HOT = np.eye(3, dtype="float32")[LABELS]
WEIGHTS = np.array([1.0, 2.0, 0.0, 1.0], "float32")


def layer_cases(k):
    """{name: (layer, input)}."""
    return {
        "lstm": (k.LSTM(3), SEQ),
        "lstm_seq": (k.LSTM(3, return_sequences=True, return_state=True), SEQ),
        "gru": (k.GRU(3), SEQ),
        "gru_before": (
            k.GRU(3, reset_after=False, return_sequences=True, go_backwards=True),
            SEQ,
        ),
        "simple_rnn": (k.SimpleRNN(3), SEQ),
        "stacked": (k.RNN([k.LSTMCell(3), k.GRUCell(2)], return_state=True), SEQ),
        "both_ways": (k.Bidirectional(k.LSTM(3, return_sequences=True)), SEQ),
        "both_summed": (k.Bidirectional(k.GRU(3), merge_mode="sum"), SEQ),
        "time_distributed": (k.TimeDistributed(k.Dense(2)), SEQ),
        "conv1d": (k.Conv1D(2, 3, padding="causal", activation="relu"), SEQ),
        "conv2d": (k.Conv2D(4, 3, strides=2, padding="same"), IMAGE),
        "conv2d_dilated": (k.Conv2D(4, (2, 3), dilation_rate=2), IMAGE),
        "conv2d_groups": (k.Conv2D(6, 3, groups=3), IMAGE),
        "conv3d": (k.Conv3D(2, 2), VOLUME),
        "transposed": (k.Conv2DTranspose(4, 3, strides=2, padding="same"), IMAGE),
        "transposed_valid": (k.Conv2DTranspose(4, 3, strides=2), IMAGE),
        "depthwise": (k.DepthwiseConv2D(3, depth_multiplier=2), IMAGE),
        "separable": (k.SeparableConv2D(4, 3), IMAGE),
        "max_pool": (k.MaxPooling2D(), IMAGE),
        "average_pool": (k.AveragePooling2D(3, 2, "same"), IMAGE),
        "max_pool1d": (k.MaxPool1D(2), SEQ),
        "average_pool1d": (k.AvgPool1D(2), SEQ),
        "max_pool3d": (k.MaxPool3D(2), VOLUME),
        "global_max": (k.GlobalMaxPooling2D(), IMAGE),
        "global_average": (k.GlobalAveragePooling2D(keepdims=True), IMAGE),
        "global_average1d": (k.GlobalAveragePooling1D(), SEQ),
        "batch_norm": (k.BatchNormalization(), VECTOR),
        "batch_norm_image": (k.BatchNormalization(), IMAGE),
        "batch_norm_axis": (k.BatchNormalization(axis=1), IMAGE),
        "layer_norm": (k.LayerNormalization(), SEQ),
        "layer_norm_axes": (k.LayerNormalization(axis=[1, 2]), IMAGE),
        "group_norm": (k.GroupNormalization(3), IMAGE),
        "unit_norm": (k.UnitNormalization(), VECTOR),
        "embedding": (k.Embedding(7, 3, mask_zero=True), IDS),
        "prelu": (k.PReLU(shared_axes=[1]), SEQ),
        "leaky": (k.LeakyReLU(), VECTOR),
        "elu": (k.ELU(2.0), VECTOR),
        "softmax": (k.Softmax(), VECTOR),
        "relu": (k.ReLU(1.0, 0.1, 0.2), VECTOR),
        "thresholded": (k.ThresholdedReLU(0.5), VECTOR),
        "flatten": (k.Flatten(), IMAGE),
        "reshape": (k.Reshape((-1, 2)), VECTOR),
        "permute": (k.Permute((2, 1)), SEQ),
        "repeat": (k.RepeatVector(2), VECTOR),
        "zero_padding": (k.ZeroPadding2D(((1, 2), (0, 1))), IMAGE),
        "cropping": (k.Cropping2D(1), IMAGE),
        "up_sampling": (k.UpSampling2D(2), IMAGE),
        "up_sampling1d": (k.UpSampling1D(3), SEQ),
        "attention": (k.Attention(use_scale=True), [SEQ, SEQ + 1]),
        "additive": (k.AdditiveAttention(), [SEQ, SEQ + 1]),
        "add": (k.Add(), [SEQ, SEQ]),
        "subtract": (k.Subtract(), [SEQ, SEQ * 3]),
        "multiply": (k.Multiply(), [SEQ, SEQ]),
        "average": (k.Average(), [SEQ, SEQ + 1]),
        "maximum": (k.Maximum(), [SEQ, -SEQ]),
        "minimum": (k.Minimum(), [SEQ, -SEQ]),
        "concatenate": (k.Concatenate(axis=1), [SEQ, SEQ]),
        "dot": (k.Dot(axes=2), [SEQ, SEQ]),
        "dot_normalized": (k.Dot(axes=(1, 1), normalize=True), [VECTOR, VECTOR]),
        "dense": (k.Dense(3, "gelu"), SEQ),
    }


_MASKED = [
    "lstm",
    "gru_before",
    "simple_rnn",
    "both_ways",
    "global_average1d",
    "lstm_seq",
]


def fill(layer):
    """Weights that do not depend on initializers."""
    rng = np.random.RandomState(0)
    values = []
    for v, old in zip(layer.weights, layer.get_weights()):
        more = 0.6 if "var" in v.name else 0
        values.append(rng.uniform(-0.5, 0.5, old.shape).astype("float32") + more)
    layer.set_weights(values)


def one_layer(tf, name, layer, value):
    """Outputs, weights by name, gradients, and what training changes."""
    out = {}
    x = tf.nest.map_structure(tf.constant, value)
    layer(x)
    fill(layer)
    for i, v in enumerate(tf.nest.flatten(layer(x))):
        out[f"out{i}"] = v.numpy()
    for w in layer.weights:
        out["weight " + w.name.split(":")[0]] = w.numpy()
    if name.startswith("batch_norm"):
        out["trained"] = layer(x, training=True).numpy()
        out["mean"] = layer.moving_mean.numpy()
        out["variance"] = layer.moving_variance.numpy()
    if name in _MASKED:
        found = tf.nest.flatten(layer(x, mask=tf.constant(MASK)))
        out.update({f"masked{i}": v.numpy() for i, v in enumerate(found)})
    if name != "embedding":
        sources = tf.nest.flatten(x) + layer.trainable_weights
        with tf.GradientTape() as tape:
            tape.watch(tf.nest.flatten(x))
            y = tf.nest.flatten(layer(x))[0]
            loss = tf.reduce_sum(y * y)
        for i, g in enumerate(tape.gradient(loss, sources)):
            out[f"gradient{i}"] = g.numpy()
    return out


def attention(tf):
    """Heads, masks, and a model whose embedding masks what follows."""
    k, out = tf.keras.layers, {}
    heads = k.MultiHeadAttention(2, 3, value_dim=2)
    x = tf.constant(SEQ)
    heads(x, x)
    fill(heads)
    found, scores = heads(
        x,
        x * 2,
        attention_mask=tf.constant(MASK)[:, None, :],
        return_attention_scores=True,
        use_causal_mask=True,
    )
    out["heads"], out["scores"] = found.numpy(), scores.numpy()
    out.update({"weight " + w.name: w.numpy() for w in heads.weights})
    model = tf.keras.Sequential(
        [
            k.Embedding(7, 3, mask_zero=True),
            k.LSTM(2, return_sequences=True),
            k.Bidirectional(k.GRU(2)),
            k.Dense(1),
        ]
    )
    ids = tf.constant([[1, 2, 0, 0], [3, 4, 5, 0]])
    model(ids)
    fill(model)
    out["masked model"] = model(ids).numpy()
    return out


_LOSSES = [
    "MeanSquaredError",
    "MeanAbsoluteError",
    "MeanAbsolutePercentageError",
    "MeanSquaredLogarithmicError",
    "Hinge",
    "SquaredHinge",
    "CategoricalHinge",
    "Huber",
    "LogCosh",
    "KLDivergence",
    "Poisson",
    "CosineSimilarity",
    "BinaryCrossentropy",
    "CategoricalCrossentropy",
    "BinaryFocalCrossentropy",
]


def losses(tf):
    module, out = tf.keras.losses, {}
    for name in _LOSSES:
        y = ONE_HOT if "ross" in name or "inge" in name else Y_TRUE
        cls = getattr(module, name)
        out[name] = np.asarray(cls()(y, Y_PRED))
        for reduction in ("auto", "sum", "none"):
            value = cls(reduction=reduction)(y, Y_PRED, sample_weight=WEIGHTS)
            out[f"{name} {reduction}"] = np.asarray(value)
    sparse = module.SparseCategoricalCrossentropy
    shares = Y_PRED / Y_PRED.sum(1, keepdims=True)
    for name, loss, y, p in (
        ("sparse", sparse(), LABELS, shares),
        ("sparse logits", sparse(from_logits=True), LABELS, Y_PRED),
        ("ignored", sparse(from_logits=True, ignore_class=1), LABELS, Y_PRED),
        (
            "smooth binary",
            module.BinaryCrossentropy(from_logits=True, label_smoothing=0.2),
            ONE_HOT,
            Y_PRED,
        ),
        (
            "smooth",
            module.CategoricalCrossentropy(label_smoothing=0.2),
            ONE_HOT,
            Y_PRED,
        ),
    ):
        out[name] = np.asarray(loss(y, p))
    return out


_METRICS = [
    "Accuracy",
    "BinaryAccuracy",
    "CategoricalAccuracy",
    "MeanSquaredError",
    "RootMeanSquaredError",
    "MeanAbsoluteError",
    "CosineSimilarity",
    "Hinge",
    "CategoricalHinge",
    "LogCoshError",
    "KLDivergence",
    "Poisson",
    "BinaryCrossentropy",
    "CategoricalCrossentropy",
    "Precision",
    "Recall",
    "AUC",
    "TruePositives",
    "FalsePositives",
    "TrueNegatives",
    "FalseNegatives",
    "TopKCategoricalAccuracy",
]
_SPARSE_METRICS = [
    "SparseCategoricalAccuracy",
    "SparseTopKCategoricalAccuracy",
    "SparseCategoricalCrossentropy",
]


def metrics(tf):
    module, out = tf.keras.metrics, {}

    def new(name):
        return getattr(module, name)(**({"k": 2} if "Top" in name else {}))

    def keep(name, metric, *args, **kwargs):
        metric.update_state(*args, **kwargs)
        out[name] = np.asarray(metric.result())

    for name in _METRICS:
        metric = new(name)
        keep(name, metric, ONE_HOT, Y_PRED)
        keep(name + " weighted", metric, ONE_HOT, Y_PRED[::-1].copy(), WEIGHTS)
        out[name + " name"] = np.array(metric.name)
    for name in _SPARSE_METRICS:
        metric = new(name)
        keep(name, metric, LABELS, Y_PRED)
        out[name + " name"] = np.array(metric.name)
    keep("pr", module.AUC(curve="PR"), ONE_HOT, Y_PRED)
    keep("iou", module.MeanIoU(3), LABELS, [0, 1, 1, 2])
    keep("thresholds", module.Precision(thresholds=[0.2, 0.6]), ONE_HOT, Y_PRED)
    keep("top recall", module.Recall(top_k=1), ONE_HOT, Y_PRED)
    keep("mean", module.Mean(), [[1.0, 2], [3, 4]], sample_weight=[1.0, 3.0])
    means = module.MeanTensor()
    means.update_state([1.0, 2])
    keep("mean tensor", means, [3.0, 2], sample_weight=[1.0, 0.5])
    return out


def schedules(tf):
    s = tf.keras.optimizers.schedules
    rows = {
        "exponential": s.ExponentialDecay(0.1, 10, 0.5),
        "stairs": s.ExponentialDecay(0.1, 10, 0.5, True),
        "inverse": s.InverseTimeDecay(0.1, 10, 0.5),
        "polynomial": s.PolynomialDecay(0.1, 20, 0.01, 2.0),
        "cycle": s.PolynomialDecay(0.1, 10, 0.01, 0.5, True),
        "pieces": s.PiecewiseConstantDecay([5, 15], [0.1, 0.2, 0.3]),
        "cosine": s.CosineDecay(0.1, 30, 0.1),
        "warm": s.CosineDecay(0.0, 30, 0.1, warmup_target=0.2, warmup_steps=10),
        "restarts": s.CosineDecayRestarts(0.1, 7, 1.5, 0.8, 0.1),
    }
    return {
        name: np.array([float(rate(i)) for i in range(0, 40, 3)])
        for name, rate in rows.items()
    }


_OPTIONS = {
    "SGD": [{}, {"momentum": 0.9, "nesterov": True}, {"momentum": 0.5}],
    "Adam": [{}, {"amsgrad": True}, {"clipvalue": 0.1}],
    "RMSprop": [{}, {"momentum": 0.9, "centered": True}, {"centered": True}],
    "Ftrl": [
        {},
        {
            "l1_regularization_strength": 0.01,
            "l2_regularization_strength": 0.01,
            "beta": 0.1,
        },
    ],
    "AdamW": [{}, {"weight_decay": 0.1}],
}
_PLAIN = [{}, {"clipnorm": 0.5}, {"clipvalue": 0.1}]


def optimizers(tf, legacy):
    """Two variables after four steps, every second one with rows' gradients."""
    module = tf.keras.optimizers.legacy if legacy else tf.keras.optimizers
    names = ["SGD", "Adam", "RMSprop", "Adagrad", "Ftrl", "Adadelta", "Adamax"]
    out = {}
    for name in names if legacy else [*names, "AdamW"]:
        for i, options in enumerate(_OPTIONS.get(name, _PLAIN)):
            optimizer = getattr(module, name)(0.1, **options)
            v = tf.Variable([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
            w = tf.Variable(2.0)
            for step in range(4):
                with tf.GradientTape() as tape:
                    if step % 2:
                        rows = tf.gather(v, [0, 2, 0])
                        loss = tf.reduce_sum(tf.square(rows)) + w * w
                    else:
                        loss = tf.reduce_sum(v * v) * 0.1 + w
                grads = tape.gradient(loss, [v, w])
                optimizer.apply_gradients(zip(grads, [v, w]))
            out[f"{name}{i} v"], out[f"{name}{i} w"] = v.numpy(), w.numpy()
    return out


def groups(tf):
    """{name: function that gives its arrays}."""
    found = {
        "layer " + name: lambda n=name, c=case: one_layer(tf, n, *c)
        for name, case in layer_cases(tf.keras.layers).items()
    }
    found["attention"] = lambda: attention(tf)
    found["losses"] = lambda: losses(tf)
    found["metrics"] = lambda: metrics(tf)
    found["schedules"] = lambda: schedules(tf)
    found["optimizers"] = lambda: optimizers(tf, False)
    found["legacy optimizers"] = lambda: optimizers(tf, True)
    return found


def key(group, name):
    return f"{group}: {name}".replace("/", "|")


if __name__ == "__main__":
    arrays = {
        key(group, name): value
        for group, function in groups(importlib.import_module(sys.argv[1])).items()
        for name, value in function().items()
    }
    np.savez_compressed(sys.argv[2] + "/values.npz", **arrays)
