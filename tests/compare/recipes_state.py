"""Recipes of random ops that are told their seeds; the stream is upstream's."""

import numpy as np
from draw import INDEX, WIDE, Type

RECIPES = {}


def recipe(ops):
    def register(make):
        RECIPES.update(dict.fromkeys(ops.split(), make))
        return make

    return register


def _seed(d):
    return np.asarray([d.integer(0, 2**40), d.integer(0, 99)], "int64")


@recipe("StatelessRandomUniform StatelessRandomNormal StatelessTruncatedNormal")
def floats(d, op):
    shape = np.asarray(d.shape(), d.pick(*INDEX))
    return {
        "shape": shape,
        "seed": _seed(d),
        "dtype": Type(d.pick(*WIDE, "float16", "bfloat16")),
    }


@recipe("StatelessRandomUniformInt")
def integers(d, op):
    dtype = d.pick(*INDEX)
    made = {"shape": np.asarray(d.shape(), d.pick(*INDEX)), "seed": _seed(d)}
    low, high = d.integer(-99, 0), d.integer(1, 2**20)
    return {**made, "minval": np.asarray(low, dtype), "maxval": np.asarray(high, dtype)}


@recipe("StatelessRandomBinomial")
def binomial(d, op):
    made = {"shape": np.asarray([3, 2], "int32"), "seed": _seed(d)}
    made["counts"] = d.between("float32", (2,), 1, 30)
    made["probs"] = d.between("float32", (2,), 0, 1)
    return {**made, "dtype": Type(d.pick("int32", "int64", *WIDE))}


@recipe("StatelessRandomPoisson")
def poisson(d, op):
    made = {"shape": np.asarray([3, 2], "int32"), "seed": _seed(d)}
    made["lam"] = d.between("float32", (2,), 0, 20)
    return {**made, "dtype": Type(d.pick("int32", "int64", *WIDE))}


@recipe("StatelessRandomGammaV2")
def gamma(d, op):
    made = {"shape": np.asarray([3, 2], "int32"), "seed": _seed(d)}
    return {**made, "alpha": d.between(d.pick(*WIDE), (2,), 0.2, 4)}


@recipe("StatelessMultinomial")
def multinomial(d, op):
    made = {"logits": d.array("float32", (d.integer(1, 3), d.integer(1, 4)))}
    made.update(num_samples=np.asarray(d.integer(0, 5), "int32"), seed=_seed(d))
    return {**made, "output_dtype": Type(d.pick(*INDEX))}


@recipe("RandomIndexShuffle")
def index_shuffle(d, op):
    most = d.integer(1, 40)
    made = {
        "index": d.between("int64", (), 0, most),
        "max_index": np.asarray(most, "int64"),
    }
    return {**made, "seed": np.asarray([1, d.integer(0, 9), 5], "uint32")}


@recipe("RandomShuffle")
def shuffle(d, op):
    x = d.array(
        d.pick("float32", "int8", "int64", "string", "float16", "complex128"),
        d.shape(least=1),
    )
    return {"value": x, "seed": d.integer(1, 99), "seed2": d.integer(0, 9)}


@recipe("RandomUniform RandomStandardNormal TruncatedNormal")
def seeded(d, op):
    made = {"shape": np.asarray(d.shape(), d.pick(*INDEX)), "seed": d.integer(1, 99)}
    return {
        **made,
        "seed2": d.integer(0, 9),
        "dtype": Type(d.pick(*WIDE, "float16", "bfloat16")),
    }


@recipe("Multinomial")
def seeded_multinomial(d, op):
    made = {"logits": d.array("float32", (2, 3)), "num_samples": np.asarray(4, "int32")}
    return {**made, "seed": d.integer(1, 99), "seed2": d.integer(0, 9)}


@recipe("UniformCandidateSampler LogUniformCandidateSampler")
def candidates(d, op):
    made = {
        "true_classes": d.between("int64", (d.integer(1, 3), 2), 0, 8),
        "num_true": 2,
    }
    made.update(num_sampled=d.integer(1, 5), unique=d.maybe(), range_max=9)
    return {**made, "seed": d.integer(1, 99), "seed2": d.integer(0, 9)}
