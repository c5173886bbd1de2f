"""Results of programs' metrics that branch on the state; configurations of classes that
pass a constructor by. Values are TensorFlow's."""

import headrace as tf

L = tf.keras.layers


class Jumps(tf.keras.metrics.Metric):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.total = self.add_weight(name="total", initializer="zeros")

    def update_state(self, y_true, y_pred, sample_weight=None):
        self.total.assign_add(tf.reduce_sum(y_pred))

    def result(self):
        if self.total > 3.0:
            return self.total * 10.0
        return self.total


def test_a_result_may_branch_on_the_state():
    metric = Jumps(name="jumps")
    step = tf.function(lambda y, p: metric(y, p))
    assert [float(step(1.0, 2.0)), float(step(1.0, 2.0))] == [2.0, 40.0]
    assert float(tf.function(lambda: metric.result())()) == 40.0
    assert float(metric.result()) == 40.0


def test_in_a_session_too():
    with tf.Graph().as_default():
        metric = Jumps(name="jumps")
        value = metric(1.0, tf.constant(4.0))
        with tf.compat.v1.Session() as session:
            session.run([v.initializer for v in metric.variables])
            assert session.run(value) == 40.0
            assert session.run(metric.result()) == 40.0


def test_a_class_that_takes_a_weight_away_says_the_rest_itself():
    class Taken(L.Dense):
        def __init__(self, units, **kwargs):
            super().__init__(units, **kwargs)
            delattr(self, "kernel_initializer")

        def get_config(self):
            config = super(L.Dense, self).get_config()
            return {**config, "units": self.units}

    config = Taken(2).get_config()
    assert "kernel_initializer" not in config
    assert {"name", "trainable", "dtype", "units"} <= set(config)


def test_cells_say_their_implementation():
    for cell in (L.LSTMCell(2), L.GRUCell(2)):
        assert cell.get_config()["implementation"] == 2
        assert type(cell).from_config(cell.get_config()).implementation == 2
    assert "implementation" not in L.SimpleRNNCell(2).get_config()


def test_layers_say_the_dtype_that_they_compute_in():
    layer = L.Dense(2, dtype="mixed_float16")
    assert layer._compute_dtype == "float16"
    assert layer._compute_dtype_object is tf.float16
