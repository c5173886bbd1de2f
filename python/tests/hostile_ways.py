"""The ways in which ops are called: eagerly, traced, in sessions, for gradients.

Of each tensor a trace knows the value, the shape, the rank or nothing.
"""

import headrace as tf

v1 = tf.compat.v1
VALUE, SHAPE, RANK, NOTHING = range(4)
WAYS = (
    "eager",
    "traced",
    "session",
    "gradient",
    "traced gradient",
    "session gradient",
    "traced",
)
RUNS = 2  # the second of new shapes has a plan of its own


def _map(fn, kwargs):
    def one(v):
        if isinstance(v, (list, tuple)):
            return [one(x) for x in v]
        return fn(v) if isinstance(v, tf.Tensor) else v

    return {k: one(v) for k, v in kwargs.items()}


def _tensors(kwargs):
    found = []
    _map(found.append, kwargs)
    return found


def _can_be_fed(t):
    return t.dtype not in (tf.resource, tf.variant)


def _levels(rng, tensors):
    """What a trace knows of each: nothing, without a generator."""
    if rng is None:
        return [NOTHING if _can_be_fed(t) else VALUE for t in tensors]
    level = (NOTHING, RANK, SHAPE, None)[int(rng.integers(4))]
    return [
        VALUE
        if not _can_be_fed(t)
        else level
        if level is not None
        else int(rng.integers(4))
        for t in tensors
    ]


def _known(t, level):
    if level == SHAPE:
        return t.shape
    return [None] * t.shape.rank if level == RANK else None


def _results(out):
    return [x for x in tf.nest.flatten(out) if isinstance(x, tf.Tensor)]


def _sources(tensors):
    return [t for t in tensors if t.dtype.is_floating or t.dtype.is_complex]


def _of_tape(call, kwargs):
    """The op's gradient; its results where it has none."""
    sources = _sources(_tensors(kwargs))
    with tf.GradientTape() as tape:
        for s in sources:
            tape.watch(s)
        out = _results(call(**kwargs))
    targets = _sources(out)
    if not (targets and sources):
        return out
    try:
        found = tape.gradient(targets, sources)
    except LookupError:  # the op has none, as upstream says it
        return out
    return [_dense(g) for g in found if g is not None]


def _of_graph(call, kwargs):
    sources = _sources(_tensors(kwargs))
    out = _results(call(**kwargs))
    targets = _sources(out)
    if not (targets and sources):
        return out
    try:
        found = tf.gradients(targets, sources)
    except LookupError:
        return out
    return [_dense(g) for g in found if g is not None]


def _dense(g):
    return g if isinstance(g, tf.Tensor) else g.values


def _read(results):
    for t in results:
        if _can_be_fed(t):
            t.numpy()


def _traced(call, kwargs, rng):
    tensors = _tensors(kwargs)
    levels = _levels(rng, tensors)
    hidden = [i for i, level in enumerate(levels) if level != VALUE]
    specs = [
        tf.TensorSpec(_known(tensors[i], levels[i]), tensors[i].dtype) for i in hidden
    ]

    def body(*args):
        given = dict(zip(hidden, args, strict=True))
        order = iter(range(len(tensors)))

        def one(t):
            i = next(order)
            return given.get(i, t)

        return _results(call(**_map(one, kwargs)))

    f = tf.function(body, input_signature=specs, autograph=False)
    for _ in range(RUNS):
        _read(f(*[tensors[i] for i in hidden]))


def _session(call, kwargs, rng):
    tensors = _tensors(kwargs)
    if not all(map(_can_be_fed, tensors)):
        return _traced(call, kwargs, rng)
    levels = iter(_levels(rng, tensors))
    feeds = {}
    with tf.Graph().as_default():

        def one(t):
            level = next(levels)
            if level == VALUE:
                return tf.constant(t.numpy(), t.dtype)
            holder = v1.placeholder(t.dtype, _known(t, level))
            feeds[holder] = t.numpy()
            return holder

        out = call(**_map(one, kwargs))
        fetches = [t for t in _results(out) if _can_be_fed(t)]
        if not fetches:
            if not isinstance(out, tf.Operation):
                return None
            fetches = out
        with v1.Session() as session:
            for _ in range(RUNS):
                session.run(fetches, feeds, options=v1.RunOptions(timeout_in_ms=20_000))
    return None


def call_in(way, call, kwargs, rng):
    """Calls the op so and reads what it gives. The op's errors are not caught."""
    if way == "eager":
        _read(_results(call(**kwargs)))
    elif way == "gradient":
        _read(_of_tape(call, kwargs))
    elif way == "traced":
        _traced(call, kwargs, rng)
    elif way == "traced gradient":
        _traced(lambda **k: _of_tape(call, k), kwargs, rng)
    elif way == "session":
        _session(call, kwargs, rng)
    elif way == "session gradient":
        _session(lambda **k: _of_graph(call, k), kwargs, rng)
    else:
        raise AssertionError(way)
