"""Recipes of ops that move, cut, join and index tensors."""

import numpy as np
from draw import FLOATS, INDEX, INTEGERS, NUMBERS, REALS, WIDE, Type

RECIPES = {}
ANY = (*NUMBERS, "bool", "string")


def recipe(ops):
    def register(make):
        RECIPES.update(dict.fromkeys(ops.split(), make))
        return make

    return register


@recipe("Reshape")
def reshape(d, op):
    shape = d.shape(empty=0.3)
    sizes = [shape[i] for i in d.permutation(len(shape))]
    if len(sizes) > 1 and d.maybe():
        sizes[:2] = [sizes[0] * sizes[1]]
    if d.maybe(0.3):
        sizes.insert(d.integer(0, len(sizes)), 1)
    if sizes and d.maybe():
        sizes[d.integer(0, len(sizes) - 1)] = -1
    if d.maybe(0.1):
        sizes.append(d.pick(2, -1, 0, -2))
    return {
        "tensor": d.array(d.pick(*ANY), shape),
        "shape": np.asarray(sizes, d.pick(*INDEX)),
    }


@recipe("Identity ZerosLike OnesLike Shape Size Rank StopGradient PreventGradient")
def as_it_is(d, op):
    x = d.array(d.pick(*NUMBERS, "bool"), d.shape())
    return {"x" if op in ("ZerosLike", "OnesLike") else "input": x}


@recipe("Transpose ConjugateTranspose InvertPermutation")
def transpose(d, op):
    shape = d.shape(most=5)
    order = np.asarray(d.permutation(len(shape)), d.pick(*INDEX))
    if op == "InvertPermutation":
        return {"x": order}
    return {"x": d.array(d.pick(*ANY), shape), "perm": order}


@recipe("ExpandDims")
def expand(d, op):
    shape = d.shape()
    axis = np.asarray(d.integer(-len(shape) - 1, len(shape)), d.pick(*INDEX))
    return {"input": d.array(d.pick(*ANY), shape), "axis": axis}


@recipe("Squeeze")
def squeeze(d, op):
    shape = tuple(1 if d.maybe(0.4) else n for n in d.shape())
    axes = [i for i, n in enumerate(shape) if n == 1 and d.maybe()]
    axes = [a - len(shape) if d.maybe(0.3) else a for a in axes]
    return {"input": d.array(d.pick(*ANY), shape), "axis": axes}


@recipe("ConcatV2 Concat")
def concat(d, op):
    shape, dtype = d.shape(least=1), d.pick(*ANY)
    axis = d.integer(0, len(shape) - 1)
    parts = []
    for _ in range(d.integer(2, 4)):
        own = list(shape)
        own[axis] = d.integer(0, 4)
        parts.append(d.array(dtype, tuple(own)))
    if op == "Concat":
        return {"concat_dim": np.asarray(axis, "int32"), "values": parts}
    axis = axis - len(shape) if d.maybe(0.3) else axis
    return {"values": parts, "axis": np.asarray(axis, d.pick(*INDEX))}


@recipe("Pack")
def pack(d, op):
    shape, dtype = d.shape(), d.pick(*ANY)
    values = [d.array(dtype, shape) for _ in range(d.integer(1, 4))]
    return {"values": values, "axis": d.integer(-len(shape) - 1, len(shape))}


@recipe("Unpack")
def unpack(d, op):
    shape = d.shape(least=1, empty=0)
    axis = d.integer(-len(shape), len(shape) - 1)
    return {"value": d.array(d.pick(*ANY), shape), "num": shape[axis], "axis": axis}


@recipe("Split")
def split(d, op):
    shape = list(d.shape(least=1))
    axis, parts = d.integer(0, len(shape) - 1), d.integer(1, 3)
    shape[axis] = parts * d.integer(0, 3)
    at = np.asarray(axis - len(shape) if d.maybe(0.3) else axis, "int32")
    value = d.array(d.pick(*ANY), tuple(shape))
    return {"axis": at, "value": value, "num_split": parts}


@recipe("SplitV")
def split_v(d, op):
    shape = list(d.shape(least=1))
    sizes = [d.integer(0, 3) for _ in range(d.integer(1, 4))]
    axis = d.integer(0, len(shape) - 1)
    shape[axis] = sum(sizes)
    if d.maybe(0.3):
        sizes[d.integer(0, len(sizes) - 1)] = -1
    made = {"value": d.array(d.pick(*ANY), tuple(shape)), "num_split": len(sizes)}
    made["size_splits"] = np.asarray(sizes, d.pick(*INDEX))
    return {**made, "axis": np.asarray(axis, "int32")}


@recipe("Tile")
def tile(d, op):
    shape = d.shape(most=3)
    times = np.asarray(
        [d.integer(0 if d.maybe(0.1) else 1, 3) for _ in shape], d.pick(*INDEX)
    )
    return {"input": d.array(d.pick(*ANY), shape), "multiples": times}


@recipe("Pad PadV2 MirrorPad")
def pad(d, op):
    shape = d.shape(most=3, empty=0.03)
    mode = d.pick("REFLECT", "SYMMETRIC")
    most = [3 if op != "MirrorPad" else max(n - (mode == "REFLECT"), 0) for n in shape]
    sizes = [[d.integer(0, m), d.integer(0, m)] for m in most]
    dtype = d.pick(*NUMBERS) if op != "MirrorPad" else d.pick(*REALS)
    made = {"input": d.array(dtype, shape)}
    made["paddings"] = np.asarray(sizes, d.pick(*INDEX)).reshape(len(shape), 2)
    if op == "PadV2":
        made["constant_values"] = d.array(dtype, ())
    return {**made, "mode": mode} if op == "MirrorPad" else made


@recipe("ReverseV2")
def reverse(d, op):
    shape = d.shape()
    axes = np.asarray(d.axes(len(shape)), d.pick(*INDEX))
    return {"tensor": d.array(d.pick(*ANY), shape), "axis": axes}


@recipe("ReverseSequence")
def reverse_sequence(d, op):
    shape = d.shape(least=2, empty=0)
    batch, seq = d.permutation(len(shape))[:2]
    lengths = d.between(d.pick(*INDEX), (shape[batch],), 0, shape[seq])
    made = {"input": d.array(d.pick(*NUMBERS, "bool"), shape), "seq_lengths": lengths}
    return {**made, "seq_dim": seq, "batch_dim": batch}


@recipe("Roll")
def roll(d, op):
    shape, index = d.shape(least=1), d.pick(*INDEX)
    axes = d.permutation(len(shape))[: d.integer(1, len(shape))]
    shift = d.between(index, (len(axes),), -6, 6)
    made = {"input": d.array(d.pick(*NUMBERS, "bool"), shape), "shift": shift}
    return {**made, "axis": np.asarray(axes, index)}


@recipe("Slice")
def slice_of(d, op):
    shape, index = d.shape(), d.pick(*INDEX)
    begin = [d.integer(0, n) for n in shape]
    size = [
        -1 if d.maybe(0.2) else d.integer(0, n - b)
        for n, b in zip(shape, begin, strict=True)
    ]
    made = {"input": d.array(d.pick(*ANY), shape), "begin": np.asarray(begin, index)}
    return {**made, "size": np.asarray(size, index)}


def _strides(d, shape):
    index, rank = d.pick(*INDEX), d.integer(0, len(shape))
    step = [d.pick(1, 1, 2, -1, -2, 3) for _ in range(rank)]
    begin = [d.integer(-n - 1, n + 1) for n in shape[:rank]]
    end = [d.integer(-n - 1, n + 1) for n in shape[:rank]]
    shrink = 0
    for i in range(rank):
        if d.maybe(0.2) and shape[i]:
            shrink |= 1 << i
            begin[i], step[i] = d.integer(-shape[i], shape[i] - 1), 1
            end[i] = begin[i] + 1
    made = {"begin": np.asarray(begin, index), "end": np.asarray(end, index)}
    made["strides"] = np.asarray(step, index)
    most = (1 << rank) - 1
    made["begin_mask"] = d.integer(0, most) & ~shrink
    made["end_mask"] = d.integer(0, most) & ~shrink
    return {**made, "shrink_axis_mask": shrink}


@recipe("StridedSlice")
def strided(d, op):
    shape = d.shape()
    made = {"input": d.array(d.pick(*ANY), shape), **_strides(d, shape)}
    rank = len(made["begin"])
    if rank and d.maybe(0.3):
        at = d.integer(0, rank - 1)
        if not made["shrink_axis_mask"] >> at & 1:
            made[d.pick("ellipsis_mask", "new_axis_mask")] = 1 << at
    return made


@recipe("Gather GatherV2")
def gather(d, op):
    shape, index = d.shape(least=1, empty=0), d.pick(*INDEX)
    made = {"params": d.array(d.pick(*ANY), shape)}
    if op == "Gather":
        return {**made, "indices": d.between(index, d.shape(most=2), 0, shape[0] - 1)}
    axis = d.integer(0, len(shape) - 1)
    batch = d.integer(0, axis) if d.maybe(0.4) else 0
    inner = shape[:batch] + d.shape(most=2)
    made["indices"] = d.between(index, inner, 0, shape[axis] - 1)
    made["axis"] = np.asarray(
        axis - len(shape) if d.maybe(0.3) else axis, d.pick(*INDEX)
    )
    return {**made, "batch_dims": batch}


def _places(d, shape, count, index):
    """Places [.., depth] within the first `depth` sizes of a shape."""
    depth = d.integer(1, len(shape))
    columns = [d.between(index, count, 0, shape[i] - 1) for i in range(depth)]
    return np.stack(columns, -1), depth


@recipe("GatherNd")
def gather_nd(d, op):
    shape = d.shape(least=1, empty=0)
    places, _ = _places(d, shape, d.shape(most=2), d.pick(*INDEX))
    return {"params": d.array(d.pick(*ANY), shape), "indices": places}


@recipe("ScatterNd")
def scatter_nd(d, op):
    shape, index = d.shape(least=1, empty=0), d.pick(*INDEX)
    count = d.shape(least=1, most=2)
    places, depth = _places(d, shape, count, index)
    updates = d.array(d.pick(*NUMBERS, "string", "bool"), count + shape[depth:])
    return {"indices": places, "updates": updates, "shape": np.asarray(shape, index)}


@recipe(
    "TensorScatterAdd TensorScatterSub TensorScatterMax TensorScatterMin "
    "TensorScatterUpdate"
)
def tensor_scatter(d, op):
    shape, index = d.shape(least=1, empty=0), d.pick(*INDEX)
    count = (d.integer(0, 4),)
    places, depth = _places(d, shape, count, index)
    if op == "TensorScatterUpdate":
        places = np.unique(places.reshape(count[0], depth), axis=0)
        count = places.shape[:1]
    dtype = d.pick(*(REALS if op[13:] in ("Max", "Min") else NUMBERS))
    made = {"tensor": d.array(dtype, shape), "indices": places}
    return {**made, "updates": d.array(dtype, count + shape[depth:])}


@recipe("OneHot")
def one_hot(d, op):
    shape, dtype = d.shape(most=3), d.pick(*NUMBERS, "bool", "string")
    made = {"indices": d.between(d.pick("int32", "int64", "uint8"), shape, 0, 5)}
    made["depth"] = np.asarray(d.integer(0, 5), "int32")
    made["on_value"], made["off_value"] = d.array(dtype, ()), d.array(dtype, ())
    return {**made, "axis": d.integer(-1, len(shape))}


@recipe("Fill")
def fill(d, op):
    dims = np.asarray(d.shape(), d.pick(*INDEX))
    return {"dims": dims, "value": d.array(d.pick(*ANY), ())}


@recipe("BroadcastTo")
def broadcast(d, op):
    shape = d.shape(most=4)
    x = d.array(d.pick(*ANY), d.like(shape))
    return {"input": x, "shape": np.asarray(shape, d.pick(*INDEX))}


@recipe("BroadcastArgs")
def broadcast_args(d, op):
    index, shape = d.pick(*INDEX), d.shape(least=1)
    other = d.like(shape)
    return {"s0": np.asarray(shape, index), "s1": np.asarray(other, index)}


@recipe("Where")
def where(d, op):
    return {"condition": d.array(d.pick(*REALS, "bool", "complex64"), d.shape(least=1))}


@recipe("Unique UniqueWithCounts")
def unique(d, op):
    x = d.array(d.pick(*INTEGERS, "string"), (d.integer(0, 9),))
    return {"x": x, "out_idx": Type(d.pick(*INDEX))}


@recipe("UniqueV2 UniqueWithCountsV2")
def unique_v2(d, op):
    shape = d.shape(least=1, most=3, largest=3)
    axis = np.asarray([d.integer(0, len(shape) - 1)], d.pick(*INDEX))
    x = d.between(d.pick("int32", "int64", "uint8"), shape, 0, 2)
    return {"x": x, "axis": axis, "out_idx": Type(d.pick(*INDEX))}


@recipe("ListDiff")
def list_diff(d, op):
    dtype = d.pick(*INTEGERS, "string")
    x, y = d.array(dtype, (d.integer(0, 9),)), d.array(dtype, (d.integer(0, 5),))
    return {"x": x, "y": y, "out_idx": Type(d.pick(*INDEX))}


@recipe("TopKV2")
def top_k(d, op):
    shape = d.shape(least=1, most=3, empty=0.02)
    dtype = d.pick(*REALS)
    k = np.asarray(d.integer(0, shape[-1] + (2 if d.maybe(0.1) else 0)), "int32")
    x = d.distinct(dtype, shape) if dtype in FLOATS else d.array(dtype, shape)
    return {"input": x, "k": k, "sorted": True}


@recipe("InTopKV2")
def in_top_k(d, op):
    rows, classes = d.integer(1, 4), d.integer(1, 5)
    index = d.pick(*INDEX)
    made = {"predictions": d.array("float32", (rows, classes))}
    made["targets"] = d.between(index, (rows,), 0, classes)
    return {**made, "k": np.asarray(d.integer(1, 3), index)}


@recipe("LowerBound UpperBound")
def bounds(d, op):
    dtype, rows = d.pick("float32", "float64", "int32", "int64"), d.integer(1, 3)
    ordered = np.sort(d.array(dtype, (rows, d.integer(1, 6))), -1)
    made = {"sorted_inputs": ordered, "values": d.array(dtype, (rows, d.integer(0, 5)))}
    return {**made, "out_type": Type(d.pick(*INDEX))}


@recipe("DynamicPartition")
def dynamic_partition(d, op):
    shape, inner = d.shape(least=1, most=2), d.shape(most=1)
    made = {"data": d.array(d.pick(*ANY), shape + inner)}
    return {**made, "partitions": d.between("int32", shape, 0, 2), "num_partitions": 3}


@recipe("DynamicStitch ParallelDynamicStitch")
def dynamic_stitch(d, op):
    dtype, inner, parts = d.pick(*ANY), d.shape(most=2, empty=0), d.integer(1, 3)
    sizes = [d.integer(0, 4) for _ in range(parts)]
    order = d.permutation(sum(sizes))
    indices, at = [], 0
    for size in sizes:
        indices.append(np.asarray(order[at : at + size], "int32"))
        at += size
    return {"indices": indices, "data": [d.array(dtype, (n, *inner)) for n in sizes]}


@recipe("MatrixBandPart")
def band(d, op):
    index = d.pick(*INDEX)
    low, high = d.between(index, (), -1, 3), d.between(index, (), -1, 3)
    x = d.array(d.pick(*NUMBERS), d.shape(least=2))
    return {"input": x, "num_lower": low, "num_upper": high}


@recipe("Diag DiagPart MatrixDiag MatrixDiagPart")
def diagonal(d, op):
    shape = d.shape(least=1, most=2, empty=0.02)
    if op == "DiagPart":
        shape = shape * 2
    if op == "MatrixDiagPart":
        shape = (*shape, d.integer(1, 4))
    x = d.array(d.pick(*NUMBERS), shape)
    return {"diagonal" if op in ("Diag", "MatrixDiag") else "input": x}


@recipe("MatrixDiagPartV2 MatrixDiagPartV3")
def diag_part(d, op):
    shape, dtype = d.shape(least=2, most=3, empty=0), d.pick(*NUMBERS)
    k = sorted(d.integer(1 - shape[-2], shape[-1] - 1) for _ in range(d.integer(1, 2)))
    made = {"input": d.array(dtype, shape), "k": np.asarray(k, "int32")}
    made["padding_value"] = d.array(dtype, ())
    if op[-1] == "3":
        made["align"] = d.pick("LEFT_RIGHT", "RIGHT_LEFT", "LEFT_LEFT", "RIGHT_RIGHT")
    return made


@recipe("MatrixSetDiag MatrixSetDiagV3")
def set_diag(d, op):
    shape, dtype = d.shape(least=2, most=3, empty=0), d.pick(*NUMBERS)
    size = min(shape[-2:])
    made = {"input": d.array(dtype, shape)}
    made["diagonal"] = d.array(dtype, (*shape[:-2], size))
    return {**made, "k": np.asarray(0, "int32")} if op[-1] == "3" else made


@recipe("SpaceToBatchND BatchToSpaceND")
def space_batch(d, op):
    block = [d.integer(1, 2), d.integer(1, 3)]
    crops = [[d.integer(0, 1), d.integer(0, 1)] for _ in block]
    shape = [d.integer(1, 2), *(b * d.integer(1, 3) for b in block), d.integer(1, 2)]
    if op[0] == "S":
        for i, b in enumerate(block):
            shape[i + 1] += (-shape[i + 1] - sum(crops[i])) % b
    else:
        shape[0] *= block[0] * block[1]
        shape[1:3] = [d.integer(2, 4), d.integer(2, 4)]
    index = d.pick(*INDEX)
    made = {"input": d.array(d.pick(*NUMBERS), tuple(shape))}
    made["block_shape"] = np.asarray(block, index)
    made["paddings" if op[0] == "S" else "crops"] = np.asarray(crops, index)
    return made


@recipe("SpaceToDepth DepthToSpace")
def space_depth(d, op):
    block = d.integer(2, 3)
    h, w, c = d.integer(1, 3), d.integer(1, 3), d.integer(1, 3)
    shape = (2, h * block, w * block, c) if op[0] == "S" else (2, h, w, c * block**2)
    return {"input": d.array(d.pick(*FLOATS, "int32"), shape), "block_size": block}


@recipe("ExtractImagePatches")
def patches(d, op):
    h, w = d.integer(3, 7), d.integer(3, 7)
    k, s, r = (d.integer(1, 2) for _ in range(3))
    made = {"images": d.array(d.pick(*FLOATS), (2, h, w, 2)), "ksizes": [1, k, k, 1]}
    made.update(strides=[1, s, s, 1], rates=[1, r, r, 1])
    return {**made, "padding": d.pick("SAME", "VALID")}


@recipe("EditDistance")
def edit_distance(d, op):
    def words(rows):
        sizes = [d.integer(0, 4) for _ in range(rows)]
        places = [[r, i] for r, n in enumerate(sizes) for i in range(n)]
        values = d.between("int64", (len(places),), 0, 2)
        shape = np.asarray([rows, max(4, *sizes)], "int64")
        return np.asarray(places, "int64").reshape(-1, 2), values, shape

    hypothesis, truth = words(3), words(3)
    names = ("hypothesis_indices", "hypothesis_values", "hypothesis_shape")
    made = dict(zip(names, hypothesis, strict=True))
    names = ("truth_indices", "truth_values", "truth_shape")
    return {**made, **dict(zip(names, truth, strict=True)), "normalize": d.maybe()}


@recipe("InplaceAdd InplaceSub InplaceUpdate")
def inplace(d, op):
    shape = d.shape(least=1, most=3, empty=0)
    places = np.asarray(d.permutation(shape[0])[: d.integer(1, shape[0])], "int32")
    dtype = d.pick(*WIDE, "int32", "int64")
    made = {"x": d.array(dtype, shape), "i": places}
    return {**made, "v": d.array(dtype, (len(places), *shape[1:]))}


@recipe("UnravelIndex")
def unravel(d, op):
    index = d.pick(*INDEX)
    shape = d.shape(least=1, most=3, empty=0)
    places = d.between(index, (d.integer(1, 4),), 0, int(np.prod(shape)) - 1)
    return {"indices": places, "dims": np.asarray(shape, index)}


@recipe("Bitcast")
def bitcast(d, op):
    pairs = (("float32", "int32"), ("int64", "float64"), ("int32", "uint8"))
    source, to = d.pick(*pairs, ("float16", "int16"), ("float64", "float32"))
    return {"input": d.array(source, d.shape()), "type": Type(to)}


@recipe("CheckNumerics")
def check_numerics(d, op):
    x = d.array(d.pick(*FLOATS), d.shape(), special=0.05 if d.maybe(0.3) else 0)
    return {"tensor": x, "message": "said"}


@recipe("EnsureShape")
def ensure_shape(d, op):
    shape = d.shape()
    claim = [None if d.maybe(0.3) else n for n in shape]
    if claim and d.maybe(0.2):
        claim[0] = 9
    return {"input": d.array(d.pick(*ANY), shape), "shape": claim}


@recipe("L2Loss")
def l2_loss(d, op):
    return {"t": d.array(d.pick(*FLOATS), d.shape())}
