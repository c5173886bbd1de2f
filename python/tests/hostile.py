"""Calls ops with hostile arguments: python hostile.py JOURNAL SEED COUNT OP...

With the COUNT "each": each input of calls that work, wrong in turn.

Every call must end in a result or in an error of the classes below. Each case is
written to the journal before it runs, so that a crash is known by its last line.
"""

import itertools
import os
import resource
import sys
import zlib

import headrace as tf
import hostile_values as values
import numpy as np
from headrace._load import _headrace
from headrace.framework.support import protos
from hostile_values import pick
from hostile_ways import WAYS, call_in

# The last: an op that was removed from graphs of this version.
ALLOWED = (tf.errors.OpError, ValueError, TypeError, NotImplementedError)
# They wait for ever, or end the process, by right.
LEFT_OUT = {
    "Abort",
    *("Stage", "Unstage", "StagePeek"),
    *("Batch", "BatchFunction", "Unbatch", "UnbatchGrad"),
    *("CollectiveReduce", "CollectiveReduceV2", "CollectiveReduceV3"),
    *("CollectiveGather", "CollectiveGatherV2", "CollectiveReduceScatterV2"),
    *("CollectiveAllToAllV2", "CollectiveAllToAllV3"),
    *("CollectiveBcastSend", "CollectiveBcastSendV2", "CollectiveBcastRecv"),
    *("CollectiveBcastRecvV2", "CollectiveInitializeCommunicator"),
    *(
        f"{kind}Map{op}"
        for kind in ("", "Ordered")
        for op in ("Stage", "Unstage", "UnstageNoKey", "Peek")
    ),
}
MEMORY = 1 << 30  # what a case may ask for on top of what there is
_LIST_LENGTHS = [0, 1, 1, 2, 2, 3, 4, 4, 5]


def op_def(name):
    return protos.OpDef.FromString(_headrace.export_op_named(name))


def names():
    return sorted(set(dir(tf.raw_ops)) - LEFT_OUT)


# --- A case made from the op's signature alone.


def _types(attr):
    allowed = [tf.as_dtype(t) for t in attr.allowed_values.list.type]
    return allowed or values.TYPES


def _scalar_attr(rng, attr, kind):
    if kind == "type":
        return pick(rng, _types(attr))
    if kind == "int":
        few = [0, 1, 2, 3, attr.minimum] if attr.has_minimum else [0, 1, 2, 3, -1]
        return pick(rng, few if rng.integers(3) else values.INTEGERS)
    if kind == "float":
        return pick(rng, values.FLOATS)
    if kind == "bool":
        return bool(rng.integers(2))
    if kind == "string":
        allowed = list(attr.allowed_values.list.s)
        return pick(rng, allowed if allowed and rng.integers(8) else values.STRINGS)
    if kind == "shape":
        sizes = [[], [1], [2], [0], [-1], [2, 3], None, [2**40, 2**40], [-5], [1] * 300]
        return pick(rng, sizes)
    if kind == "tensor":
        return values.array(rng, pick(rng, values.TYPES), pick(rng, values.SHAPES))
    return "nobody"  # a function


def _attr(rng, attr, default):
    if attr.HasField("default_value") and rng.integers(10) < 6:
        return default
    if not attr.type.startswith("list("):
        return _scalar_attr(rng, attr, attr.type)
    kind = attr.type[5:-1]
    small = [1, 1, 2] if kind == "int" and rng.integers(3) else None
    return [
        pick(rng, small) if small else _scalar_attr(rng, attr, kind)
        for _ in range(pick(rng, _LIST_LENGTHS))
    ]


def _tensor(rng, dtype, shape, keep):
    if dtype == tf.resource:
        return values.resource(rng, keep)
    if dtype == tf.variant:
        return values.variant(rng)
    return values.array(rng, dtype, shape)


def _shape(rng, main):
    return main if rng.integers(10) < 5 else pick(rng, values.SHAPES)


def random_case(rng, op, keep):
    """Keyword arguments for the op."""
    kwargs, chosen = {}, {}
    implied = {a.type_attr for a in op.input_arg}
    implied |= {a.number_attr for a in op.input_arg}
    implied |= {a.type_list_attr for a in op.input_arg}
    for attr in op.attr:
        value = _attr(rng, attr, None)
        if attr.name not in implied:
            if value is not None:
                kwargs[attr.name] = value
            continue
        if value is None and attr.type == "type":
            value = pick(rng, _types(attr))
        chosen[attr.name] = value
    main = pick(rng, values.SHAPES)
    for arg in op.input_arg:
        if arg.type_list_attr:
            types = chosen[arg.type_list_attr] or [tf.float32]
        else:
            one = chosen[arg.type_attr] if arg.type_attr else tf.as_dtype(arg.type)
            types = [one] * (pick(rng, _LIST_LENGTHS) if arg.number_attr else 1)
        parts = [_tensor(rng, t, _shape(rng, main), keep) for t in types]
        is_list = arg.type_list_attr or arg.number_attr
        kwargs[arg.name] = parts if is_list else parts[0]
    return kwargs


# --- A case made from one that works, with one or two things changed.


def _other_tensor(rng, t):
    shape = list(t.shape)
    how = int(rng.integers(8))
    if how <= 3 or t.dtype in (tf.resource, tf.variant):
        changed = shape  # other values
    elif how == 4:
        changed = [0, *shape[1:]]
    elif how == 5:
        changed = shape[1:]
    elif how == 6:
        changed = [*shape, pick(rng, [0, 1, 2])]
    else:
        changed = [s + int(rng.integers(-1, 2)) for s in shape]
    changed = [max(int(s), 0) for s in changed]
    dtype = pick(rng, values.TYPES) if rng.integers(12) == 0 else t.dtype
    made = values.array(rng, dtype, changed)
    return t if made is None else made


def _other_attr(rng, attr, value):
    if attr.type.startswith("list(") and isinstance(value, (list, tuple)) and value:
        changed = list(value)
        how = int(rng.integers(4))
        if how == 0:
            changed.pop()
        elif how == 1:
            changed.append(changed[0])
        else:
            at = int(rng.integers(len(changed)))
            changed[at] = _scalar_attr(rng, attr, attr.type[5:-1])
        return changed
    if attr.type.startswith("list("):
        return _attr(rng, attr, value)
    return _scalar_attr(rng, attr, attr.type)


def _is_tensor(value):
    """A tensor or a list of them, maybe under an alias of the argument's name."""
    first = value[0] if isinstance(value, (list, tuple)) and value else value
    return isinstance(first, tf.Tensor)


def changed_case(rng, op, kwargs):
    kwargs = dict(kwargs)
    attrs = {a.name: a for a in op.attr}
    free = [a for a in attrs if a in kwargs or attrs[a].HasField("default_value")]
    inputs = {a.name for a in op.input_arg}
    keys = [k for k, v in kwargs.items() if k in inputs or _is_tensor(v)] + free
    for _ in range(int(rng.integers(1, 3))):
        key = pick(rng, keys)
        value = kwargs.get(key)
        if key in attrs:
            kwargs[key] = _other_attr(rng, attrs[key], value)
        elif isinstance(value, (list, tuple)):
            kwargs[key] = [_other_tensor(rng, tf.convert_to_tensor(t)) for t in value]
        else:
            kwargs[key] = _other_tensor(rng, tf.convert_to_tensor(value))
    return kwargs


# --- Each input of a case that works, wrong in turn.


def _wrong(t):
    """Empty ones, ones of another rank with its elements, and its dtype's limits."""
    if t.dtype in (tf.resource, tf.variant) or t.dtype.is_quantized:
        return
    shape = list(t.shape)
    array = np.asarray(t.numpy(), t.dtype.as_numpy_dtype)
    flat = array.reshape([-1])
    shapes = [0, *shape], [*shape, 0], [1, *shape], [2], shape[1:], [0, 3], []
    for wrong in shapes:
        if wrong != shape and (flat.size or 0 in wrong):
            yield tf.constant(np.resize(flat, wrong), t.dtype, shape=wrong)
    if t.dtype.is_integer and flat.size:
        for limit in (t.dtype.max, t.dtype.min, -1 if t.dtype.min else 7):
            changed = flat.copy()
            changed[0] = limit
            yield tf.constant(changed.reshape(shape), t.dtype)


def wrong_cases(bases):
    """Those of the first two: (number, way, kwargs, no generator)."""
    numbers = itertools.count()
    for base in bases[:2]:
        for key in [k for k, v in base.items() if _is_tensor(v)]:
            value = base[key]
            parts = value if isinstance(value, (list, tuple)) else [value]
            for wrong in _wrong(parts[0]):
                case = {**base, key: [wrong, *parts[1:]] if parts is value else wrong}
                for way in ("eager", "traced"):
                    yield next(numbers), way, case, None


# --- Running.


def text(kwargs):
    def one(v):
        if isinstance(v, (list, tuple)):
            return "[" + ", ".join(one(x) for x in v) + "]"
        if isinstance(v, tf.Tensor):
            shown = "" if v.dtype in (tf.resource, tf.variant) else f" {v.numpy()!r}"
            return f"<{v.dtype.name} {list(v.shape)}{shown[:300]}>"
        return repr(v)[:200]

    shown = ", ".join(f"{k}={one(v)}" for k, v in kwargs.items())
    return " ".join(shown.split())


def attempt(call, kwargs, way, rng):
    """What went wrong, or None."""
    try:
        call_in(way, call, kwargs, rng)
    except ALLOWED:
        return None
    except Exception as e:
        return f"{type(e).__module__}.{type(e).__name__}: {str(e)[:300]}"
    return None


def _fewer_outputs(op, kwargs):
    """10,000 outputs at most, of those that can be made at all: a million take minutes
    under sanitizers, and then there is nothing to see."""
    for name in {a.number_attr for a in op.output_arg} & kwargs.keys():
        if 10**4 < kwargs[name] <= 10**6:
            kwargs[name] = 10**4
    return kwargs


def cases(name, seed, count, rows):
    """(way, kwargs, generator) of an op: from its rows if it has some, and at random."""
    op = op_def(name)
    keep = []
    for i in range(count):
        rng = np.random.default_rng([zlib.crc32(name.encode()), seed, i])
        try:
            if rows and i % 4:
                kwargs = changed_case(rng, op, pick(rng, rows))
            else:
                kwargs = random_case(rng, op, keep)
        except ALLOWED as e:  # the values themselves cannot be made
            raise AssertionError(f"{name} case {i}") from e
        if not any(v is None for v in kwargs.values()):
            yield i, WAYS[i % len(WAYS)], _fewer_outputs(op, kwargs), rng


def limit_memory():
    with open("/proc/self/statm") as f:
        used = int(f.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY,) * 2)


def main(journal, seed, count, *ops):
    sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "ops"))
    import hostile_rows

    rows = hostile_rows.by_op()
    if not os.environ.get("LD_PRELOAD"):
        limit_memory()
    failed = False
    with open(journal, "w") as log:
        for name in ops:
            call = getattr(tf.raw_ops, name)
            bases = rows.get(name, []) + hostile_rows.drawn(name, int(seed))
            if count == "each":
                tried = wrong_cases(bases)
            else:
                tried = cases(name, int(seed), int(count), bases)
            for i, way, kwargs, rng in tried:
                log.write(f"{name} {seed}/{i} {way}: {text(kwargs)}\n")
                log.flush()
                wrong = attempt(call, kwargs, way, rng)
                if wrong:
                    failed = True
                    print(f"{name} {seed}/{i} {way}: {wrong}\n  {text(kwargs)}")
    return 1 if failed else 0


if __name__ == "__main__":
    status = main(*sys.argv[1:])
    sys.stdout.flush()
    os._exit(status)
