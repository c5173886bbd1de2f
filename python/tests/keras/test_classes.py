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
