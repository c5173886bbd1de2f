"""tf.compat.v1.distributions: what TensorFlow 2.21 gave, samples included."""

import numpy as np
import pytest

import headrace as tf

v1 = tf.compat.v1
D = v1.distributions
NAN, INF = np.nan, np.inf

# A distribution, an event, and its results: of methods of the event, of those without an
# argument, and a sample of seed 5 after set_random_seed(7).
VALUES = {
    "normal": (
        lambda: D.Normal([0.0, 1.0], [1.0, 2.0]),
        [0.5, -1.0],
        {
            "prob": [0.35207, 0.12099],
            "log_prob": [-1.04394, -2.11209],
            "cdf": [0.69146, 0.15866],
            "log_cdf": [-0.36895, -1.84102],
            "survival_function": [0.30854, 0.84134],
            "log_survival_function": [-1.17591, -0.17275],
            "mean": [0, 1],
            "mode": [0, 1],
            "variance": [1, 4],
            "stddev": [1, 2],
            "entropy": [1.41894, 2.11209],
            "sample": [0.00728, 2.06872],
        },
    ),
    "bernoulli": (
        lambda: D.Bernoulli(probs=[0.2, 0.7]),
        [0, 1],
        {
            "prob": [0.8, 0.7],
            "log_prob": [-0.22314, -0.35667],
            "mean": [0.2, 0.7],
            "mode": [0, 1],
            "variance": [0.16, 0.21],
            "stddev": [0.4, 0.45826],
            "entropy": [0.5004, 0.61086],
            "sample": [0, 1],
        },
    ),
    "beta": (
        lambda: D.Beta([1.0, 2.0], [3.0, 0.5]),
        [0.3, 0.6],
        {
            "prob": [1.47, 0.71151],
            "log_prob": [0.38526, -0.34036],
            "cdf": [0.657, 0.17781],
            "log_cdf": [-0.42007, -1.72705],
            "survival_function": [0.343, 0.82219],
            "log_survival_function": [-1.07002, -0.19578],
            "mean": [0.25, 0.8],
            "mode": [NAN, NAN],
            "variance": [0.0375, 0.04571],
            "stddev": [0.19365, 0.21381],
            "entropy": [-0.43195, -0.76528],
            "sample": [0.11154, 0.66638],
        },
    ),
    "categorical": (
        lambda: D.Categorical(probs=[0.1, 0.3, 0.6]),
        [0, 2],
        {
            "prob": [0.1, 0.6],
            "cdf": [0, 0.4],
            "log_cdf": [-INF, -0.91629],
            "survival_function": [1, 0.6],
            "log_survival_function": [0, -0.51083],
            "mode": 2,
            "entropy": 0.89795,
            "sample": 2,
        },
    ),
    "dirichlet": (
        lambda: D.Dirichlet([1.0, 2.0, 3.0]),
        [0.2, 0.3, 0.5],
        {
            "prob": 4.5,
            "log_prob": 1.50408,
            "mean": [0.16667, 0.33333, 0.5],
            "mode": [NAN] * 3,
            "variance": [0.01984, 0.03175, 0.03571],
            "entropy": -1.24434,
            "covariance": [
                [0.01984, -0.00794, -0.0119],
                [-0.00794, 0.03175, -0.02381],
                [-0.0119, -0.02381, 0.03571],
            ],
            "sample": [0.08334, 0.27754, 0.63912],
        },
    ),
    "dirichlet of multinomials": (
        lambda: D.DirichletMultinomial(4.0, [1.0, 2.0, 3.0]),
        [1.0, 1.0, 2.0],
        {
            "prob": 0.09524,
            "log_prob": -2.35137,
            "mean": [0.66667, 1.33333, 2],
            "variance": [0.79365, 1.26984, 1.42857],
            "covariance": [
                [0.79365, -0.31746, -0.47619],
                [-0.31746, 1.26984, -0.95238],
                [-0.47619, -0.95238, 1.42857],
            ],
            "sample": [0, 2, 2],
        },
    ),
    "exponential": (
        lambda: D.Exponential([1.0, 2.0]),
        [0.5, 2.0],
        {
            "prob": [0.60653, 0.03663],
            "log_prob": [-0.5, -3.30685],
            "cdf": [0.39347, 0.98168],
            "log_cdf": [-0.93275, -0.01849],
            "survival_function": [0.60653, 0.01832],
            "log_survival_function": [-0.5, -4],
            "mean": [1, 0.5],
            "mode": [NAN, NAN],
            "variance": [1, 0.25],
            "stddev": [1, 0.5],
            "entropy": [1, 0.30685],
            "sample": [0.1428, 3.06707],
        },
    ),
    "gamma": (
        lambda: D.Gamma([1.0, 2.0], [3.0, 0.5]),
        [0.3, 0.6],
        {
            "prob": [1.21971, 0.11112],
            "cdf": [0.59343, 0.03694],
            "log_survival_function": [-0.9, -0.03764],
            "mean": [0.33333, 4],
            "mode": [NAN, 2],
            "variance": [0.11111, 8],
            "stddev": [0.33333, 2.82843],
            "entropy": [-0.09861, 2.27036],
            "sample": [0.14649, 2.92708],
        },
    ),
    "laplace": (
        lambda: D.Laplace([0.0, 1.0], [1.0, 2.0]),
        [0.5, -1.0],
        {
            "prob": [0.30327, 0.09197],
            "log_prob": [-1.19315, -2.38629],
            "cdf": [0.69673, 0.18394],
            "log_cdf": [-0.36135, -1.69315],
            "survival_function": [0.30327, 0.81606],
            "log_survival_function": [-1.19315, -0.20327],
            "mean": [0, 1],
            "variance": [2, 8],
            "entropy": [1.69315, 2.38629],
            "sample": [1.32374, -9.88196],
        },
    ),
    "multinomial": (
        lambda: D.Multinomial([4.0, 2.0], logits=[[0.2, 0.3, 0.5]], validate_args=True),
        [[1.0, 1.0, 2.0], [0.0, 1.0, 1.0]],
        {
            "prob": [0.16958, 0.24994],
            "mean": [[1.15773, 1.27949, 1.56278], [0.57887, 0.63975, 0.78139]],
            "variance": [[0.82265, 0.87022, 0.95221], [0.41132, 0.43511, 0.4761]],
            "covariance": [
                [
                    [0.82265, -0.37033, -0.45232],
                    [-0.37033, 0.87022, -0.49989],
                    [-0.45232, -0.49989, 0.95221],
                ],
                [
                    [0.41132, -0.18516, -0.22616],
                    [-0.18516, 0.43511, -0.24994],
                    [-0.22616, -0.24994, 0.4761],
                ],
            ],
            "sample": [[1, 2, 1], [1, 1, 0]],
        },
    ),
    "student's t": (
        lambda: D.StudentT([2.5, 0.5], [0.0, 1.0], [1.0, 2.0]),
        [0.5, -1.0],
        {
            "prob": [0.30623, 0.05915],
            "log_prob": [-1.18343, -2.82764],
            "cdf": [0.67115, 0.30112],
            "log_survival_function": [-1.11216, -0.35828],
            "mean": [0, NAN],
            "mode": [0, 1],
            "variance": [5, NAN],
            "stddev": [2.23607, NAN],
            "entropy": [1.84776, 4.35987],
            "sample": [0.01882, 1.93187],
        },
    ),
    "uniform": (
        lambda: D.Uniform([0.0, 1.0], [2.0, 3.0]),
        [0.5, 5.0],
        {
            "prob": [0.5, 0],
            "log_prob": [-0.69315, -INF],
            "cdf": [0.25, 1],
            "survival_function": [0.75, 0],
            "mean": [1, 2],
            "variance": [0.33333, 0.33333],
            "stddev": [0.57735, 0.57735],
            "entropy": [0.69315, 0.69315],
            "range": [2, 2],
            "sample": [1.73386, 1.00434],
        },
    ),
}
OF_EVENTS = (
    "prob log_prob cdf log_cdf survival_function log_survival_function quantile"
).split()


def result(distribution, method, event):
    if method == "sample":
        v1.set_random_seed(7)
        return distribution.sample(seed=5)
    arguments = (event,) if method in OF_EVENTS else ()
    return getattr(distribution, method)(*arguments)


@pytest.mark.parametrize("name", VALUES)
def test_values(name):
    make, event, wanted = VALUES[name]
    for method, value in wanted.items():
        found = result(make(), method, event)
        np.testing.assert_allclose(found, value, rtol=1e-3, atol=1e-5, err_msg=method)
        if name == "multinomial" and method == "sample":
            continue  # (A loop's draws have seeds of their own in each graph.)
        with tf.Graph().as_default(), v1.Session() as session:
            found = result(make(), method, event)
            assert found.name.startswith(make().name[:-3])
            np.testing.assert_allclose(
                session.run(found), value, rtol=1e-3, atol=1e-5, err_msg=method
            )


@pytest.mark.parametrize("name", VALUES)
def test_shapes_and_copies(name):
    make, _, _ = VALUES[name]
    one = make()
    shape = one.batch_shape.concatenate(one.event_shape)
    assert one.sample([2, 1], seed=1).shape == tf.TensorShape([2, 1]).concatenate(shape)
    assert one.sample(3).dtype == one.dtype
    assert one.batch_shape_tensor().numpy().tolist() == one.batch_shape.as_list()
    assert one.event_shape_tensor().numpy().tolist() == one.event_shape.as_list()
    assert bool(one.is_scalar_batch()) == (one.batch_shape.rank == 0)
    assert bool(one.is_scalar_event()) == (one.event_shape.rank == 0)
    other = one.copy(name="other")
    assert dict(one.parameters, name="other") == other.parameters
    assert type(other) is type(one)


def test_samples_of_unknown_number_and_batch():
    with tf.Graph().as_default(), v1.Session() as session:
        number = v1.placeholder(tf.int32, [None])
        loc = v1.placeholder(tf.float32, None)
        found = D.Normal(loc, 1.0).sample(number, seed=1)
        assert found.shape.rank is None
        assert session.run(found, {number: [2, 3], loc: [1.0, 2]}).shape == (2, 3, 2)
        known = D.Normal([0.0, 1.0], 1.0).sample(v1.placeholder(tf.int32, [2]))
        assert known.shape.as_list() == [None, None, 2]


# Pairs: the divergence, and the cross entropy.
DIVERGENCES = [
    (lambda: D.Normal(0.0, 1.0), lambda: D.Normal([1.0, 2.0], 3.0), [0.70972, 0.87639], [2.12866, 2.29533]),
    (lambda: D.Bernoulli(probs=0.3), lambda: D.Bernoulli(logits=1.0), 0.4024, 1.01326),
    (lambda: D.Beta(1.0, 2.0), lambda: D.Beta(2.0, 0.5), 1.73083, 1.53768),
    (lambda: D.Categorical(probs=[0.2, 0.8]), lambda: D.Categorical(logits=[1.0, 2.0]), 0.01286, 0.51326),
    (lambda: D.Dirichlet([1.0, 2.0]), lambda: D.Dirichlet([2.0, 0.5]), 1.73083, 1.53768),
    (lambda: D.Gamma(1.0, 2.0), lambda: D.Gamma(2.0, 0.5), 2.5998, 2.90666),
    (lambda: D.Exponential(2.0), lambda: D.Exponential(3.0), 0.09453, 0.40139),
    (lambda: D.Gamma(1.0, 2.0), lambda: D.Exponential(2.0), 0.0, 0.30685),
]  # fmt: skip


@pytest.mark.parametrize(("a", "b", "divergence", "entropy"), DIVERGENCES)
def test_divergences(a, b, divergence, entropy):
    near = {"rtol": 1e-3, "atol": 1e-5}
    np.testing.assert_allclose(D.kl_divergence(a(), b()), divergence, **near)
    np.testing.assert_allclose(a().kl_divergence(b()), divergence, **near)
    np.testing.assert_allclose(a().cross_entropy(b()), entropy, **near)


def test_divergences_of_registered_classes():
    class Mine(D.Normal):
        pass

    assert Mine(0.0, 1.0).kl_divergence(D.Normal(1.0, 1.0)).numpy() == 0.5

    @D.RegisterKL(Mine, D.Uniform)
    def nan(a, b, name=None):
        return tf.constant(NAN)

    assert np.isnan(Mine(0.0, 1.0).kl_divergence(D.Uniform()))
    strict = Mine(0.0, 1.0, allow_nan_stats=False)
    with pytest.raises(tf.errors.InvalidArgumentError, match="returned NaN values"):
        strict.kl_divergence(D.Uniform())
    with pytest.raises(ValueError, match="has already been registered to"):
        D.RegisterKL(Mine, D.Uniform)(nan)
    with pytest.raises(TypeError, match="kl_fn must be callable, received: 3"):
        D.RegisterKL(Mine, D.Beta)(3)


def test_extremes_of_the_normal_distribution():
    normal = D.Normal(0.0, 1.0)
    x = np.array([-40.0, -12.0, -3.0, 0.0, 6.0], np.float32)
    wanted = [-804.6084, -75.41068, -6.607726, -0.6931472, -9.865877e-10]
    np.testing.assert_allclose(normal.log_cdf(x), wanted, rtol=1e-5)
    np.testing.assert_allclose(normal.log_survival_function(-x), wanted, rtol=1e-5)
    np.testing.assert_allclose(normal.quantile([0.25, 0.5]), [-0.67449, 0], atol=1e-5)
    with tf.GradientTape() as tape:
        at = tf.constant([-40.0, 0.0, 9.0])
        tape.watch(at)
        value = normal.log_cdf(at)
    gradient = tape.gradient(value, at)
    np.testing.assert_allclose(gradient, [40.02497, 0.7978846, 0], rtol=1e-4, atol=1e-8)


def test_gradients_through_samples():
    with tf.GradientTape() as tape:
        scale = tf.constant(2.0)
        tape.watch(scale)
        sample = D.Normal(1.0, scale).sample(4, seed=1)
    standard = (sample - 1.0) / 2.0
    total = tf.reduce_sum(standard)
    np.testing.assert_allclose(tape.gradient(sample, scale), total, rtol=1e-5)


def test_texts():
    one = D.Normal([0.0], 1.0)
    assert one.name is None
    wanted = '("None", batch_shape=(1,), event_shape=(), dtype=float32)'
    assert str(one) == "tfp.distributions.Normal" + wanted
    wanted = "'None' batch_shape=(1,) event_shape=() dtype=float32>"
    assert repr(one) == "<tfp.distributions.Normal " + wanted
    kind = one.reparameterization_type
    assert kind == D.FULLY_REPARAMETERIZED != D.NOT_REPARAMETERIZED
    assert repr(kind) == "<Reparameterization Type: FULLY_REPARAMETERIZED>"
    assert D.Bernoulli(0.5).reparameterization_type == D.NOT_REPARAMETERIZED
    assert D.Bernoulli(0.5, dtype=tf.float32).sample().dtype == tf.float32
    with tf.Graph().as_default():
        assert [D.Beta(1.0, 1.0).name for _ in range(2)] == ["Beta/", "Beta_1/"]
        assert D.Beta(1.0, 1.0, name="b").mean().name.startswith("b/mean/")


def test_shapes_of_parameters():
    shapes = D.StudentT.param_static_shapes([2, 3])
    assert shapes == dict.fromkeys(("df", "loc", "scale"), tf.TensorShape([2, 3]))
    assert D.Bernoulli.param_shapes([2])["logits"].numpy().tolist() == [2]
    with pytest.raises(NotImplementedError, match="_param_shapes not implemented"):
        D.Dirichlet.param_shapes([2])
    with pytest.raises(ValueError, match="must be fully defined"):
        D.Normal.param_static_shapes(tf.TensorShape([None]))


class Halved(D.Distribution):
    """A program's own distribution, which has little."""

    def __init__(self, x, name="Halved"):
        self.x = tf.convert_to_tensor(x)
        super().__init__(
            dtype=tf.float32,
            reparameterization_type=D.NOT_REPARAMETERIZED,
            validate_args=False,
            allow_nan_stats=True,
            parameters={"x": x, "self": self},
            graph_parents=[self.x],
            name=name,
        )

    def _batch_shape(self):
        return self.x.shape

    def _event_shape(self):
        return tf.TensorShape([])

    def _sample_n(self, n, seed=None):
        return tf.ones(tf.concat([[n], tf.shape(self.x)], 0)) * self.x

    def _log_prob(self, value):
        return value * self.x

    def _cdf(self, value):
        return value / 4

    def _variance(self):
        return self.x


def test_own_distributions():
    one = Halved([1.0, 2.0])
    event = [1.0, 0.5]
    for method, wanted in (
        ("prob", [2.71828, 2.71828]),
        ("log_cdf", [-1.38629, -2.07944]),
        ("survival_function", [0.75, 0.875]),
        ("log_survival_function", [-0.28768, -0.13353]),
        ("stddev", [1, 1.41421]),
        ("sample", [1, 2]),
    ):
        np.testing.assert_allclose(result(one, method, event), wanted, rtol=1e-4)
    assert one.sample([2, 3]).shape == [2, 3, 2]
    assert one.copy(x=3.0).sample().numpy() == 3 and one.parameters == {"x": [1.0, 2.0]}
    for method in ("mean", "entropy", "mode"):
        with pytest.raises(NotImplementedError) as raised:
            getattr(one, method)()
        assert str(raised.value) == f"{method} is not implemented: Halved"
    with pytest.raises(ValueError, match="Graph parent item 0 is not a Tensor; 1."):
        D.Distribution(tf.float32, None, False, True, graph_parents=[1])


VALID = {"validate_args": True}
INVALID = tf.errors.InvalidArgumentError
# A call, its error, the begin of its text.
ERRORS = [
    (lambda: D.Normal(0.0, -1.0, **VALID), INVALID, ""),
    (lambda: D.Normal(tf.constant(0.0, tf.float64), tf.constant(1.0)), ValueError, "tf.Tensor(1.0, shape=(), dtype=float32), type=<dtype: 'float32'>, must be of the same type (<dtype: 'float64'>) as tf.Tensor(0.0"),
    (lambda: D.Normal(0, 1), ValueError, "Expected floating point type, got <dtype: 'int32'>."),
    (lambda: D.Normal(0.0, 1.0).sample([[1]]), ValueError, "Input is neither scalar nor vector."),
    (lambda: D.Normal(0.0, 1.0).sample(-1), INVALID, "Dimension -1 must be >= 0"),
    (lambda: D.Normal(0.0, 1.0).prob(tf.constant(1)), INVALID, "cannot compute Sub as input #1"),
    (lambda: D.Normal(0.0, 1.0).copy(foo=3.0), TypeError, "Normal.__init__() got an unexpected keyword argument 'foo'"),
    (lambda: D.Normal(0.0, 1.0).covariance(), NotImplementedError, "covariance is not implemented: Normal"),
    (lambda: D.Normal([1.0, 2], [1.0, 2, 3]).batch_shape, ValueError, "Incompatible shapes for broadcasting."),
    (lambda: D.Bernoulli(logits=1.0, probs=0.5), ValueError, "Must pass probs or logits, but not both."),
    (lambda: D.Bernoulli(), ValueError, "Must pass probs or logits, but not both."),
    (lambda: D.Bernoulli(probs=1), TypeError, "probs must having floating type."),
    (lambda: D.Bernoulli(probs=1.5, **VALID), INVALID, "probs has components greater than 1."),
    (lambda: D.Bernoulli(probs=0.5, **VALID).prob(2), INVALID, "Elements cannot exceed 1."),
    (lambda: D.Beta(-1.0, 1.0, **VALID), INVALID, "Concentration parameter must be positive."),
    (lambda: D.Beta(), ValueError, "Attempt to convert a value (None)"),
    (lambda: D.Beta(1.0, 2.0, **VALID).prob(1.5), INVALID, "sample must be less than `1`."),
    (lambda: D.Beta(0.5, 0.5, allow_nan_stats=False).mode(), INVALID, "Mode undefined for concentration1 <= 1."),
    (lambda: D.Beta(1.0, 1.0).quantile(0.5), NotImplementedError, "quantile is not implemented: Beta"),
    (lambda: D.Categorical(probs=0.5), ValueError, "Shape () must have rank at least 1"),
    (lambda: D.Categorical(probs=[0.5, 0.6], **VALID), INVALID, "Expected 'tf.Tensor(False, shape=(), dtype=bool)' to be true. Summarized data: b'probs does not sum to 1."),
    (lambda: D.Categorical(probs=[0.5, 0.5], **VALID).prob(-1), INVALID, "Elements must be non-negative."),
    (lambda: D.Categorical(probs=[0.5, 0.5], **VALID).prob(2), INVALID, "Elements cannot exceed 1."),
    (lambda: D.Categorical(probs=[0.5, 0.5]).mean(), NotImplementedError, "mean is not implemented: Categorical"),
    (lambda: D.Dirichlet([1.0], **VALID), INVALID, "Concentration parameter must have event_size >= 2."),
    (lambda: D.Dirichlet([1.0, -1.0], **VALID), INVALID, "Concentration parameter must be positive."),
    (lambda: D.Dirichlet([1.0, 2.0], **VALID).prob([0.5, 0.6]), INVALID, "Expected 'tf.Tensor(False, shape=(), dtype=bool)' to be true. Summarized data: b'sample last-dimension must sum to `1`"),
    (lambda: D.Dirichlet([0.5, 2.0], allow_nan_stats=False).mode(), INVALID, "Mode undefined when any concentration <= 1"),
    (lambda: D.DirichletMultinomial(-1.0, [1.0, 1.0], **VALID), INVALID, "'-1.0' must be non-negative."),
    (lambda: D.DirichletMultinomial(1.5, [1.0, 1.0], **VALID), INVALID, "'1.5' cannot contain fractional components."),
    (lambda: D.DirichletMultinomial(4.0, [1.0, 2.0], **VALID).prob([1.0, 2.0]), INVALID, "counts last-dimension must sum to `self.total_count`"),
    (lambda: D.Exponential(-1.0, **VALID), INVALID, ""),
    (lambda: D.Gamma(-1.0, 1.0, **VALID), INVALID, ""),
    (lambda: D.Gamma(0.5, 0.5, allow_nan_stats=False).mode(), INVALID, "mode not defined when any concentration <= 1"),
    (lambda: D.Laplace(0, 1), ValueError, "Expected floating point type"),
    (lambda: D.Multinomial(4.0, probs=[0.5, 0.5], **VALID).prob([1.0, 2.0]), INVALID, "counts must sum to `self.total_count`"),
    (lambda: D.Multinomial(4.0, probs=[0.5, 0.5], **VALID).prob([1.5, 2.5]), INVALID, "'[1.5 2.5]' cannot contain fractional components."),
    (lambda: D.StudentT(-1.0, 0.0, 1.0, **VALID), INVALID, ""),
    (lambda: D.StudentT([0.5], 0.0, 1.0, allow_nan_stats=False).mean(), INVALID, "mean not defined for components of df <= 1"),
    (lambda: D.Uniform(1.0, 0.0, **VALID), INVALID, "uniform not defined when low >= high."),
    (lambda: D.kl_divergence(D.Uniform(), D.Uniform()), NotImplementedError, "No KL(distribution_a || distribution_b) registered for distribution_a type Uniform and distribution_b type Uniform"),
    (lambda: D.Uniform().cross_entropy(D.Normal(0.0, 1.0)), NotImplementedError, "No KL("),
    (lambda: Halved(1.0).quantile(0.5), NotImplementedError, "quantile is not implemented: Halved"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "error", "text"), ERRORS)
def test_wrong_arguments(call, error, text):
    with pytest.raises(error) as raised:
        call()
    assert str(raised.value).startswith(text)
