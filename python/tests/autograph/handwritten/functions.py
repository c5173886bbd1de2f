"""Inner functions, closures, methods, decorators, comprehensions, with and try."""

import contextlib
import functools

from .table import Static, gives, tf

LIMIT = 2.0


@gives(3.0, 1.0, 3)
def a_closure_reads_its_surroundings(x, n):
    y = x * 2.0

    def inner(t):
        if t > 0.0:
            return t + y
        return t - y

    return inner(x) if n > 2 else x


@gives(8.0, 1.0, 3)
def a_closure_sees_what_the_loop_changes(x, n):
    def doubled():
        return x * 2.0

    for _ in tf.range(n - 1):
        x = x + 1.5
    return doubled() + x * 0.0


@gives((2.5, 2.5), 1.0, 3)
def nonlocal_names(x, n):
    total = x

    def add(t):
        nonlocal total
        if t > 0.0:
            total = total + t
        return total

    add(-x)
    last = add(x * 1.5)
    return total, last


@gives(7.0, 1.0, 3)
def default_arguments(x, n):
    def inner(t, times=2.0, *, plus=x):
        while t < 3.0:
            t = t * times
        return t + plus

    return inner(x, plus=3.0) if n > 2 else inner(x)


@gives(4.0, 1.0, 3)
def lambdas(x, n):
    larger = lambda a, b: a if a > b else b
    return larger(x, 3.0) + (lambda t: -t if t < 0.0 else t)(-x)


@gives(15.0, 1.0, 3)
def any_arguments(x, n):
    def inner(*parts, scale=1.0, **named):
        s = 0.0
        for p in parts:
            s = s + p
        for k in sorted(named):
            s = s + named[k]
        return s * scale if s > 0.0 else s

    return inner(x, *[x, x], scale=3.0, **{"b": x, "a": x})


@gives(16.0, 1.0, 4)
def a_function_defined_in_a_loop(x, n):
    for _ in tf.range(n):

        def twice(t):
            if t > 0.0:
                return t * 2.0
            return t

        x = twice(x)
    return x


def _limited(t):
    if t > LIMIT:
        return tf.constant(LIMIT)
    return t


@gives((2.0, 1.0), 3.0, 1.0)
def a_function_of_the_module(x, y):
    return _limited(x), _limited(y)


def _power(t, k):
    if k == 0:
        return tf.ones_like(t)
    if t > 100.0:
        return t
    return t * _power(t, k - 1)


@gives(8.0, 2.0, Static(3))
def recursion_on_a_python_value(x, k):
    return _power(x, k)


def _clipped(function):
    @functools.wraps(function)
    def wrapper(*args):
        r = function(*args)
        if r > 3.0:
            r = tf.constant(3.0)
        return r

    return wrapper


@_clipped
def _scaled(t):
    if t > 1.0:
        return t * 10.0
    return t


@gives((3.0, 0.5), 2.0, 0.5)
def a_decorated_function(x, y):
    return _scaled(x), _scaled(y)


@gives(-3.0, 3.0)
def a_partial(x):
    def signed(sign, t):
        if t > 0.0:
            return t * sign
        return t

    return functools.partial(signed, -1.0)(x)


class _Base:
    factor = 2.0

    def scaled(self, t):
        if t > 1.0:
            return t * self.factor
        return t


class _Derived(_Base):
    def __init__(self, factor):
        self.factor = factor

    def scaled(self, t):
        t = super().scaled(t)
        if t > 5.0:
            t = t - 1.0
        return t

    def __call__(self, t):
        return self.scaled(t) if t > 0.0 else t

    @classmethod
    def of_three(cls):
        return cls(3.0)

    @staticmethod
    def positive(t):
        if t < 0.0:
            return -t
        return t

    @property
    def limited(self):
        return tf.minimum(self.factor, 2.0)


@gives((5.0, -1.0), 2.0, -1.0)
def methods_and_super(x, y):
    held = _Derived(3.0)
    return held.scaled(x), held.scaled(y)


@gives((5.0, 1.0, 2.0), 2.0)
def calls_of_objects_and_of_classes(x):
    held = _Derived.of_three()
    return held(x), _Derived.positive(-x) - 1.0, held.limited


@gives(([1.0, 2.0, -3.0], {"a": 1.0, "b": 1.0}), 1.0)
def comprehensions(x):
    parts = [x * k if x * k < 2.5 else -x * k for k in (1.0, 2.0, 3.0)]
    return parts, {k: x for k in "ab" if x is not None}


@gives(9.0, [1.0, 2.0])
def comprehensions_of_comprehensions(v):
    products = [[v[i] * v[j] for j in range(2)] for i in range(2)]
    return tf.add_n([p for row in products for p in row])


@gives((3.0, 1.0), 2.0)
def a_generator_expression_is_python(x):
    return sum(t for t in [x, x * 0.5]), next(t for t in [x - 1.0])


@gives(6.0, 2.0)
def a_generator_runs_as_it_is(x):
    def parts():
        yield x
        yield x * 2.0

    s = 0.0
    for p in parts():
        s = s + p
    return s


@gives((3.0, 1), 2.0)
def try_except_finally(x):
    turns = 0
    try:
        if x > 1.0:
            x = x + 1.0
        raise KeyError("of Python's own")
    except KeyError:
        turns += 1
    finally:
        x = x + 0.0
    return x, turns


@contextlib.contextmanager
def _noted(notes):
    notes.append("in")
    yield len(notes)
    notes.append("out")


@gives((4.0, 2), 2.0)
def with_statements(x):
    notes = []
    with _noted(notes) as count, tf.name_scope("more"):
        if x > 1.0:
            x = x * 2.0
        x = x * count
    return x, len(notes)


@gives((1.0, 2.0, [3.0, 4.0]), 1.0)
def unpacking(x):
    a, (b, *rest) = x, [x * 2.0, x * 3.0, x * 4.0]
    if a > b:
        a, b = b, a
    return a, b, rest


@gives(2.0, 1.0)
def a_gradient_inside(x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x
        for _ in tf.range(2):
            if y > 0.5:
                y = y * x
    return tape.gradient(y, x) - 1.0


@gives(5.0, 1.0)
def assert_on_python_values(x):
    k = 5
    assert k > 2, "never"
    assert isinstance(x, tf.Tensor)
    return x * float(k)


@gives((3.0, -3.0), 3.0)
def functions_passed_on(x):
    def run(function, t):
        if t > 0.0:
            t = function(t)
        return t

    return run(tf.identity, x), run(lambda t: -t, x)


@gives([2.0, 1.0, 6.0], [1.0, -1.0, 3.0])
def a_function_mapped(v):
    def part(t):
        if t > 0.0:
            return t * 2.0
        return -t

    return tf.map_fn(part, v)


@tf.autograph.experimental.do_not_convert
def _as_it_is(t):
    return t * 2.0 if t is not None else 0


@gives(4.0, 2.0)
def a_function_not_to_be_converted(x):
    return _as_it_is(x)


@gives(7.0, 1.0, 3)
def the_operators_of_the_framework(x, n):
    def step(i, t):
        if i > 1:
            return i + 1, t + 1.0
        return i + 1, t * 2.0

    t = tf.while_loop(lambda i, t: i < n, step, [0, x])[1]
    return tf.cond(n > 2, lambda: t + 2.0, lambda: t)


@gives(5.0, 1.0)
def what_an_inner_function_changes_is_read_in_branches(x):
    total = x

    def add(t):
        nonlocal total
        total = total + t

    for t in (x, x * 2.0):
        if x > 0.5:
            total = total + 1.0
        add(t - 0.5 * x)
    return total
