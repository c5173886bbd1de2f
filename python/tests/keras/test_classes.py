"""Constructors of Keras' classes: what help() shows, and what wrong calls are told."""

import inspect

import pytest

import headrace as tf

keras = tf.keras


def test_help_shows_a_constructors_own_parameters():
    shown = str(inspect.signature(keras.layers.Dense.__init__))
    assert shown.startswith("(self, units, activation=None, use_bias=True, kernel_init")
    assert shown.endswith("bias_constraint=None, **kwargs)")
    assert str(inspect.signature(keras.metrics.Precision)) == (
        "(thresholds=None, top_k=None, class_id=None, name=None, dtype=None)"
    )
    assert keras.layers.MaxPooling1D.__doc__.startswith("The largest of each window")


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: keras.losses.Huber(wrong=1), r"Huber.__init__\(\) got an unexpected"),
        (lambda: keras.layers.ELU(1, 2, 3), r"ELU.__init__\(\) takes from 1 to 2"),
        (lambda: keras.metrics.MeanIoU(), r"missing 1 required .* 'num_classes'"),
        (lambda: keras.layers.ELU(wrong=1), "Keyword argument not understood"),
        (lambda: keras.metrics.TruePositives(wrong=1), "got an unexpected keyword"),
    ],
)
def test_wrong_calls_are_refused_in_pythons_words(make, words):
    with pytest.raises(TypeError, match=words):
        make()


def test_a_subclass_has_the_bases_arguments_and_its_own():
    class Steep(keras.layers.LeakyReLU):
        def __init__(self, times, **kwargs):
            super().__init__(alpha=0.5, **kwargs)
            self.times = times

    layer = Steep(3, name="steep")
    assert (layer.alpha, layer.times, layer.name) == (0.5, 3, "steep")
    assert layer([-2.0]).numpy() == [-1.0]


def test_arguments_are_kept_as_what_they_stand_for():
    layer = keras.layers.Conv2D(2, 3, padding="SAME", activation="relu")
    assert layer.kernel_size == (3, 3) and layer.padding == "same"
    assert layer.data_format == "channels_last"
    assert layer.activation is keras.activations.relu
    assert isinstance(layer.bias_initializer, keras.initializers.Zeros)


def test_older_names():
    k = tf.keras
    assert k.experimental.CosineDecay is k.optimizers.schedules.CosineDecay
    assert k.layers.experimental.EinsumDense is k.layers.EinsumDense
    drawn = k.backend.random_binomial((100,), p=1.0).numpy()
    assert drawn.tolist() == [1.0] * 100


def test_rows_of_classes_have_defaults_of_their_rank():
    def defaults(cls, *names):
        return [inspect.signature(cls).parameters[n].default for n in names]

    layers = keras.layers
    assert defaults(layers.Conv3D, "strides", "data_format") == [(1, 1, 1), None]
    assert defaults(layers.DepthwiseConv1D, "strides", "data_format") == [1, None]
    assert defaults(layers.Cropping3D, "cropping") == [((1, 1), (1, 1), (1, 1))]
    assert defaults(layers.UpSampling2D, "size") == [(2, 2)]
    assert defaults(layers.MaxPool1D, "pool_size", "data_format") == [
        2,
        "channels_last",
    ]
    keras.backend.set_image_data_format("channels_first")
    try:
        assert layers.Conv1D(1, 1).data_format == "channels_last"
        assert layers.Conv2D(1, 1).data_format == "channels_first"
        assert layers.AveragePooling1D(2, 1, "same", None).data_format == (
            "channels_first"
        )
    finally:
        keras.backend.set_image_data_format("channels_last")
    with pytest.raises(TypeError, match="Conv2D.__init__.. missing 2 required"):
        layers.Conv2D()
    with pytest.raises(TypeError, match="takes 1 positional argument"):
        layers.Add(True)


@pytest.mark.parametrize("v1", [False, True])
def test_recurrent_layers_take_arguments_by_place(v1):
    layers = tf.compat.v1.keras.layers if v1 else keras.layers
    lstm = layers.LSTM(2, "relu", "tanh", True, "ones", "zeros", "ones", False)
    cell = lstm.cell
    assert cell.activation is keras.activations.relu and not cell.unit_forget_bias
    assert cell.recurrent_activation is keras.activations.tanh
    assert isinstance(cell.kernel_initializer, keras.initializers.Ones)
    simple = layers.SimpleRNN(2, "relu", False)
    assert simple.use_bias is False
    gru = layers.GRUCell(2, "relu", "tanh", False, "ones")
    assert gru.use_bias is False and gru.reset_after is not v1
    last = list(inspect.signature(layers.GRU).parameters)[-3:]
    assert last[1:] == ["reset_after", "kwargs"]
    convolving = layers.ConvLSTM2D(2, 3, (1, 1), "same", None, (1, 1), "relu")
    assert convolving.cell.padding == "same"
    config = layers.LSTM(3, dropout=0.5, activity_regularizer="l2").get_config()
    again = layers.LSTM.from_config(config)
    assert again.get_config() == config and config["dropout"] == 0.5
    hard = config["recurrent_activation"] == "hard_sigmoid"
    assert hard == v1


def test_masks_that_leave_nothing():
    x = tf.constant([[1.0, 2, 3], [3.0, 1, 2]])
    mask = tf.constant([[True, True, False], [False, False, False]])
    layers = keras.layers
    for axis, last in ((-1, [1 / 3] * 3), ([0, 1], [0.0] * 3)):
        found = layers.Softmax(axis=axis, robust_masking=True)(x * 1e10, mask).numpy()
        assert found[0].tolist() == [0.0, 1.0, 0.0] and found[1] == pytest.approx(last)
    config = layers.Softmax(robust_masking=True).get_config()
    assert config["robust_masking"] and layers.Softmax.from_config(config)
    assert "robust_masking" not in layers.Softmax().get_config()
    query = tf.reshape(tf.sin(tf.range(12.0)), (1, 3, 4))
    seen = tf.constant(
        [[[True, True, False], [False, True, False], [True, False, False]]]
    )
    layer = layers.MultiHeadAttention(1, 2, softmax_robust_masking=True)
    _, scores = layer(query, query, attention_mask=seen, return_attention_scores=True)
    assert (scores.numpy()[0, 0] > 0).tolist() == seen.numpy()[0].tolist()
    assert layer.get_config()["softmax_robust_masking"] is True


def test_older_formats_of_configurations():
    for space, item in (
        (keras.layers, keras.layers.Dense(2, name="d")),
        (keras.optimizers, keras.optimizers.SGD(0.5)),
        (
            keras.optimizers.schedules,
            keras.optimizers.schedules.ExponentialDecay(0.1, 2, 0.5),
        ),
    ):
        old = space.serialize(item, use_legacy_format=True)
        assert set(old) == {"class_name", "config"}
        again = space.deserialize(old, use_legacy_format=True)
        assert type(again) is type(item)
    assert keras.activations.deserialize(name="relu") is keras.activations.relu
    called = []
    callback = keras.callbacks.LambdaCallback(
        None, None, lambda *_, **__: called.append(1)
    )
    callback.on_batch_begin(0, {})
    assert called == [1]
