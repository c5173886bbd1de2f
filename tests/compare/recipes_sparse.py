"""Recipes of ops on sparse and ragged tensors."""

import numpy as np
from draw import INDEX, NUMBERS, REALS, WIDE, Type

RECIPES = {}


def recipe(ops):
    def register(make):
        RECIPES.update(dict.fromkeys(ops.split(), make))
        return make

    return register


def _sparse(d, dtype, shape, prefix="", name=("indices", "values", "shape")):
    """A sparse tensor's three parts under the op's names."""
    total = int(np.prod(shape))
    chosen = sorted(d.permutation(total)[: d.integer(0, total)])
    places = np.stack(np.unravel_index(np.asarray(chosen, "int64"), shape), -1)
    parts = (
        places.astype("int64").reshape(-1, len(shape)),
        d.array(dtype, (len(chosen),)),
    )
    parts += (np.asarray(shape, "int64"),)
    return {prefix + n: p for n, p in zip(name, parts, strict=True)}


@recipe("SparseToDense")
def to_dense(d, op):
    index, dtype = d.pick(*INDEX), d.pick(*NUMBERS, "bool", "string")
    made = _sparse(d, dtype, d.shape(least=1, most=3, empty=0))
    return {
        "sparse_indices": made["indices"].astype(index),
        "output_shape": made["shape"].astype(index),
        "sparse_values": made["values"],
        "default_value": d.array(dtype, ()),
    }


@recipe("SparseAdd")
def add(d, op):
    shape, dtype = (
        d.shape(least=1, most=3, empty=0),
        d.pick(*WIDE, "int32", "complex64"),
    )
    a, b = (
        _sparse(d, dtype, shape, p, ("_indices", "_values", "_shape")) for p in "ab"
    )
    real = (
        "float64" if dtype == "float64" else "int32" if dtype == "int32" else "float32"
    )
    return {**a, **b, "thresh": np.asarray(d.pick(0, 1), real)}


@recipe("SparseReduceSum SparseReduceMax")
def reduce(d, op):
    shape = d.shape(least=1, most=3, empty=0)
    names = ("input_indices", "input_values", "input_shape")
    made = _sparse(d, d.pick(*WIDE, "int32"), shape, "", names)
    made["reduction_axes"] = np.asarray(d.axes(len(shape)), "int32")
    return {**made, "keep_dims": d.maybe()}


@recipe("SparseTensorDenseMatMul")
def product(d, op):
    m, k, n, dtype = (
        d.integer(1, 4),
        d.integer(1, 4),
        d.integer(1, 4),
        d.pick(*WIDE, "complex64"),
    )
    ta, tb = d.maybe(), d.maybe()
    names = ("a_indices", "a_values", "a_shape")
    made = _sparse(d, dtype, (k, m) if ta else (m, k), "", names)
    made["b"] = d.array(dtype, (n, k) if tb else (k, n))
    return {**made, "adjoint_a": ta, "adjoint_b": tb}


@recipe("SparseReorder")
def reorder(d, op):
    made = _sparse(d, d.pick(*NUMBERS), d.shape(least=1, most=3, empty=0), "input_")
    order = d.permutation(len(made["input_values"]))
    made["input_indices"], made["input_values"] = (
        made["input_indices"][order],
        made["input_values"][order],
    )
    return made


@recipe("SparseReshape")
def reshape(d, op):
    shape = d.shape(least=1, most=3, empty=0)
    made = _sparse(d, "float32", shape, "input_")
    made.pop("input_values")
    new = [shape[i] for i in d.permutation(len(shape))]
    if d.maybe():
        new[0] = -1
    return {**made, "new_shape": np.asarray(new, "int64")}


@recipe("SparseSlice")
def cut(d, op):
    shape = d.shape(least=1, most=3, empty=0)
    made = _sparse(d, d.pick(*NUMBERS), shape)
    made["start"] = np.asarray([d.integer(0, n) for n in shape], "int64")
    return {**made, "size": np.asarray([d.integer(0, n) for n in shape], "int64")}


@recipe("SparseConcat")
def concat(d, op):
    shape, axis = d.shape(least=2, most=3, empty=0), d.integer(0, 1)
    parts = [_sparse(d, "float32", shape) for _ in range(2)]
    made = {n: [p[n] for p in parts] for n in ("indices", "values")}
    return {**made, "shapes": [p["shape"] for p in parts], "concat_dim": axis}


@recipe("SparseSplit")
def split(d, op):
    shape = d.shape(least=1, most=3, empty=0)
    axis = d.integer(0, len(shape) - 1)
    made = _sparse(d, d.pick(*NUMBERS), shape)
    return {
        "split_dim": np.asarray(axis, "int64"),
        **made,
        "num_split": d.integer(1, shape[axis]),
    }


@recipe("SparseDenseCwiseMul SparseDenseCwiseDiv SparseDenseCwiseAdd")
def dense_cwise(d, op):
    shape, dtype = d.shape(least=1, most=3, empty=0), d.pick(*WIDE)
    made = _sparse(d, dtype, shape, "sp_")
    return {**made, "dense": d.array(dtype, d.like(shape))}


@recipe("SparseSparseMaximum SparseSparseMinimum")
def pairwise(d, op):
    shape, dtype = d.shape(least=1, most=3, empty=0), d.pick(*WIDE, "int32")
    a, b = (
        _sparse(d, dtype, shape, p, ("_indices", "_values", "_shape")) for p in "ab"
    )
    return {**a, **b}


@recipe("SparseSoftmax")
def softmax(d, op):
    return _sparse(d, d.pick(*WIDE), d.shape(least=2, most=3, empty=0), "sp_")


@recipe("SparseFillEmptyRows")
def fill_rows(d, op):
    dtype = d.pick(*REALS, "string")
    made = _sparse(d, dtype, d.shape(least=2, most=2, empty=0))
    made["dense_shape"] = made.pop("shape")
    return {**made, "default_value": d.array(dtype, ())}


@recipe("DenseToDenseSetOperation")
def sets(d, op):
    rows = d.integer(1, 3)
    dtype = d.pick("int32", "int64", "uint8")
    made = {"set1": d.between(dtype, (rows, d.integer(0, 4)), 0, 4)}
    made["set2"] = d.between(dtype, (rows, d.integer(0, 4)), 0, 4)
    return {**made, "set_operation": d.pick("a-b", "b-a", "intersection", "union")}


def _splits(d, rows, least=0):
    return np.cumsum([0] + [d.integer(least, 3) for _ in range(rows)])


@recipe("RaggedRange")
def ragged_range(d, op):
    dtype, shape = d.pick("int32", "int64", *WIDE), (d.integer(0, 4),)
    made = {
        "starts": d.between(dtype, shape, -3, 3),
        "limits": d.between(dtype, shape, -3, 6),
    }
    return {
        **made,
        "deltas": d.between(dtype, shape, 1, 3),
        "Tsplits": Type(d.pick(*INDEX)),
    }


@recipe("RaggedGather")
def ragged_gather(d, op):
    index, rows = d.pick(*INDEX), d.integer(1, 4)
    splits = _splits(d, rows)
    made = {"params_nested_splits": [splits.astype(index)]}
    inner = d.shape(most=1, empty=0)
    made["params_dense_values"] = d.array(
        d.pick(*NUMBERS, "string"), (int(splits[-1]), *inner)
    )
    made["indices"] = d.between(d.pick(*INDEX), d.shape(least=1, most=2), 0, rows - 1)
    return {**made, "OUTPUT_RAGGED_RANK": made["indices"].ndim}


@recipe("RaggedTensorToTensor")
def ragged_to_tensor(d, op):
    index, dtype = d.pick(*INDEX), d.pick(*NUMBERS, "string")
    splits = _splits(d, d.integer(1, 4))
    made = {"shape": np.asarray([d.pick(-1, 3), d.pick(-1, 2, 4)], index)}
    made["values"] = d.array(dtype, (int(splits[-1]),))
    made["default_value"] = d.array(dtype, ())
    made["row_partition_tensors"] = [splits.astype(index)]
    return {**made, "row_partition_types": ["ROW_SPLITS"]}


@recipe("RaggedTensorToSparse")
def ragged_to_sparse(d, op):
    splits = _splits(d, d.integer(0, 4))
    made = {"rt_nested_splits": [splits.astype(d.pick(*INDEX))]}
    return {**made, "rt_dense_values": d.array(d.pick(*NUMBERS), (int(splits[-1]),))}
