"""Recipes of ops that change variables: assignments, scatters, optimizers' updates."""

import numpy as np
from draw import INDEX, INTEGERS, NUMBERS, WIDE, Held, Type

RECIPES = {}


def recipe(ops):
    def register(make):
        RECIPES.update(dict.fromkeys(ops.split(), make))
        return make

    return register


@recipe("AssignVariableOp AssignAddVariableOp AssignSubVariableOp")
def assign(d, op):
    dtype, shape = d.pick(*NUMBERS), d.shape()
    made = {"resource": Held(d.array(dtype, shape))}
    return {**made, "value": d.array(dtype, shape)}


@recipe("ReadVariableOp")
def read(d, op):
    dtype = d.pick(*NUMBERS, "bool", "string")
    return {"resource": Held(d.array(dtype, d.shape())), "dtype": Type(dtype)}


@recipe("VariableShape")
def shape_of(d, op):
    value = d.array(d.pick(*NUMBERS), d.shape())
    return {"input": Held(value), "out_type": Type(d.pick(*INDEX))}


@recipe("ResourceCountUpTo")
def count(d, op):
    dtype = d.pick(*INDEX)
    held = Held(d.between(dtype, (), 0, 5))
    return {"resource": held, "limit": d.integer(1, 9), "T": Type(dtype)}


@recipe("ResourceGather")
def gather(d, op):
    dtype, shape = d.pick(*NUMBERS, "bool"), d.shape(least=1, empty=0)
    batch = d.integer(0, min(1, len(shape) - 1))
    rows = shape[:batch] + d.shape(most=2)
    made = {"resource": Held(d.array(dtype, shape)), "dtype": Type(dtype)}
    made["indices"] = d.between(d.pick(*INDEX), rows, 0, shape[batch] - 1)
    return {**made, "batch_dims": batch}


def _places(d, shape):
    """Indices of slices of `shape`, [n, depth], and the slices' shape."""
    depth, count = d.integer(1, len(shape)), d.integer(0, 4)
    columns = [d.between("int64", (count,), 0, n - 1) for n in shape[:depth]]
    places = np.stack(columns, -1).astype(d.pick(*INDEX))
    return places, (count, *shape[depth:])


@recipe("ResourceGatherNd")
def gather_nd(d, op):
    dtype, shape = d.pick(*NUMBERS), d.shape(least=1, empty=0)
    made = {"resource": Held(d.array(dtype, shape)), "dtype": Type(dtype)}
    return {**made, "indices": _places(d, shape)[0]}


@recipe(
    "ResourceScatterAdd ResourceScatterSub ResourceScatterMul ResourceScatterDiv "
    "ResourceScatterMin ResourceScatterMax ResourceScatterUpdate"
)
def scatter(d, op):
    allowed = NUMBERS if op[15:] in ("Add", "Sub", "Mul", "Update") else (*WIDE, *INDEX)
    dtype, shape = d.pick(*allowed), d.shape(least=1, empty=0)
    rows = d.shape(most=2)
    made = {"resource": Held(d.array(dtype, shape))}
    made["indices"] = d.between(d.pick(*INDEX), rows, 0, shape[0] - 1)
    full = () if d.maybe(0.2) else rows + shape[1:]
    updates = d.array(dtype, full)
    if op.endswith("Div"):
        updates = np.where(updates == 0, np.ones_like(updates), updates)
    return {**made, "updates": updates}


@recipe(
    "ResourceScatterNdAdd ResourceScatterNdSub ResourceScatterNdMin "
    "ResourceScatterNdMax ResourceScatterNdUpdate"
)
def scatter_nd(d, op):
    dtype, shape = d.pick(*WIDE, *INTEGERS), d.shape(least=1, empty=0)
    places, rows = _places(d, shape)
    made = {"ref": Held(d.array(dtype, shape)), "indices": places}
    return {**made, "updates": d.array(dtype, rows)}


@recipe("ResourceStridedSliceAssign")
def slice_assign(d, op):
    dtype, shape = d.pick(*NUMBERS), d.shape(least=1, empty=0)
    index = d.pick(*INDEX)
    begin = [d.integer(0, n - 1) for n in shape]
    end = [d.integer(b, n) for b, n in zip(begin, shape, strict=True)]
    step = [d.integer(1, 2) for _ in shape]
    made = {"ref": Held(d.array(dtype, shape))}
    made.update(begin=np.asarray(begin, index), end=np.asarray(end, index))
    made["strides"] = np.asarray(step, index)
    sizes = [
        -(-(e - b) // s) if e > b else 0
        for b, e, s in zip(begin, end, step, strict=True)
    ]
    return {**made, "value": d.array(dtype, sizes)}


# The slots of each update op (a "+" holds what is not negative), then its inputs; "[]"
# stands where the sparse form, if there is one, has indices.
_UPDATES = {
    "GradientDescent": "var alpha delta",
    "ProximalGradientDescent": "var alpha l1 l2 grad []",
    "Momentum": "var accum! lr grad [] momentum",
    "KerasMomentum": "var accum! lr grad [] momentum",
    "Adam": "var m! v!+ beta1_power beta2_power lr beta1 beta2 epsilon grad",
    "AdamWithAmsgrad": "var m! v!+ vhat!+ beta1_power beta2_power lr beta1 beta2 "
    "epsilon grad",
    "AdaMax": "var m! v!+ beta1_power lr beta1 beta2 epsilon grad",
    "Adagrad": "var accum!+ lr grad []",
    "AdagradV2": "var accum!+ lr epsilon grad []",
    "ProximalAdagrad": "var accum!+ lr l1 l2 grad []",
    "AdagradDA": "var gradient_accumulator! gradient_squared_accumulator!+ grad [] lr "
    "l1 l2 global_step",
    "Adadelta": "var accum!+ accum_update!+ lr rho epsilon grad []",
    "RMSProp": "var ms!+ mom! lr rho momentum epsilon grad []",
    "CenteredRMSProp": "var mg! ms!+ mom! lr rho momentum epsilon grad []",
    "AddSign": "var m! lr alpha sign_decay beta grad",
    "PowerSign": "var m! lr logbase sign_decay beta grad",
    "Ftrl": "var accum!+ linear! grad [] lr l1 l2 lr_power",
    "FtrlV2": "var accum!+ linear! grad [] lr l1 l2 l2_shrinkage lr_power",
}
_FLAGS = {
    "use_nesterov": "Momentum KerasMomentum Adam",
    "update_slots": "Adagrad AdagradV2",
    "multiply_linear_by_lr": "Ftrl FtrlV2",
}
_NO_SPARSE = "GradientDescent Adam AdamWithAmsgrad AdaMax AddSign PowerSign".split()


@recipe(" ".join("ResourceApply" + name for name in _UPDATES))
def update(d, op):
    return _update(d, op.removeprefix("ResourceApply"), None)


@recipe(" ".join("ResourceSparseApply" + n for n in _UPDATES if n not in _NO_SPARSE))
def update_rows(d, op):
    return _update(d, op.removeprefix("ResourceSparseApply"), d.integer(0, 4))


def _update(d, name, rows):
    """A call; `rows`: how many rows change, some of them twice, or None for all."""
    dtype = d.pick(*WIDE, "float16", "bfloat16")
    shape = d.shape(least=0 if rows is None else 1, most=3, empty=0)
    if rows is None:
        changed = shape
    else:
        changed = (rows, *shape[1:])
    made = {}
    for word in _UPDATES[name].split():
        key = word.rstrip("!+")
        if word == "var" or "!" in word:
            # Means are small beside mean squares, as those of one sequence are.
            value = d.array(dtype, shape, 0.3 if key == "mg" else 2.0)
            if "+" in word:
                value = np.abs(value) + np.asarray(1, dtype=value.dtype)
            made[key] = Held(value)
        elif word == "[]":
            if rows is not None:
                made["indices"] = d.between(d.pick(*INDEX), (rows,), 0, shape[0] - 1)
        elif key in ("grad", "delta"):
            alone = name == "ProximalGradientDescent" and rows is None
            made["delta" if alone else key] = d.array(dtype, changed)
        elif key == "global_step":
            made[key] = np.asarray(d.integer(1, 9), "int64")
        elif key == "lr_power":
            made[key] = d.between(dtype, (), -0.9, -0.1)
        elif key == "epsilon":
            made[key] = d.between(dtype, (), 0.001, 0.1)
        else:
            made[key] = d.between(dtype, (), 0.1, 0.9)
    for flag, ops in _FLAGS.items():
        if name in ops.split():
            made[flag] = d.maybe()
    return made
