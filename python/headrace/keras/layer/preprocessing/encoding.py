"""Class numbers as rows of ones or counts: what layers of categories give."""

from headrace import _api as tf
from headrace.keras.layer.parts import takes
from headrace.keras.layer.preprocessing.adapting import PreprocessingLayer, as_tensor

MODES = ("int", "one_hot", "multi_hot", "count", "tf_idf")
OTHER_MODES = {"binary": "multi_hot", "tf-idf": "tf_idf"}  # older names


def check_mode(layer, mode, allowed):
    if mode not in allowed:
        raise ValueError(
            f"Unkown value for `output_mode` argument of layer {layer}. Allowed values "
            f"are: or one of the following values: {allowed}. Received: {mode}"
        )


def encode(ids, mode, depth, dtype, sparse=False, weights=None, idf=None):
    """Numbers below `depth` in the layout of an output mode; of the last axis."""
    if mode == "int":
        return ids if ids.dtype == dtype else tf.cast(ids, dtype)
    plain = isinstance(ids, tf.Tensor)
    shape = ids.shape
    if plain and ids.shape.rank == 0:
        ids = tf.expand_dims(ids, -1)
    if plain and mode == "one_hot" and ids.shape[-1] != 1:
        ids = tf.expand_dims(ids, -1)
    if ids.shape.rank > 2:
        raise ValueError(
            "When output_mode is not `'int'`, maximum supported output rank is 2. "
            f"Received output_mode {mode} and input shape {shape}, which would result "
            f"in output rank {ids.shape.rank}."
        )
    binary = mode in ("one_hot", "multi_hot")
    count = tf.sparse.bincount if sparse else tf.math.bincount
    options = {"minlength": depth, "maxlength": depth, "binary_output": binary}
    if not sparse:
        options["dtype"] = dtype
    out = count(ids, weights=weights, axis=-1, **options)
    if sparse:
        out = tf.cast(out, dtype)
    elif out.shape.rank is not None:
        known = out.shape.as_list()[:-1]
        out = tf.ensure_shape(tf.cast(out, dtype), [*known, depth])
    if mode != "tf_idf":
        return out
    if sparse:
        return out.with_values(out.values * tf.gather(idf, out.indices[:, -1]))
    return out * idf


def take_older(given, **names):
    """Takes arguments under the names that they had before (older="newer"): these win."""
    for older, newer in names.items():
        if older in given:
            given[newer] = given.pop(older)


@takes("output_mode='int', sparse=False, **kwargs")
class Encoded(PreprocessingLayer):
    """Gives numbers, or what `output_mode` says of them."""

    _modes = MODES[:-1]

    def _before(self, given):
        mode = given["output_mode"]
        check_mode(type(self).__name__, mode, self._modes)
        if given["sparse"] and mode == "int":
            raise ValueError(
                "`sparse` may only be true if `output_mode` is `'one_hot'`, "
                "`'multi_hot'`, `'count'` or `'tf_idf'`. Received: sparse=True and "
                "output_mode=int"
            )
        if given.get("dtype") is None:
            given["dtype"] = tf.int64 if mode == "int" else "float32"

    def _encoded(self, ids, depth, **more):
        return encode(ids, self.output_mode, depth, self._computed, self.sparse, **more)


@takes("num_tokens=None, output_mode='multi_hot', sparse=False, **kwargs")
class CategoryEncoding(PreprocessingLayer):
    """Numbers below `num_tokens` as rows of ones or counts."""

    _signature_dtype = tf.int64  # as upstream has it, whatever the outputs are

    def _before(self, given):
        take_older(given, max_tokens="num_tokens")

    def _begin(self):
        if self.output_mode == "binary":
            self.output_mode = "multi_hot"
        modes = ("count", "one_hot", "multi_hot")
        check_mode("CategoryEncoding", self.output_mode, modes)
        if self.num_tokens is None:
            raise ValueError(
                "num_tokens must be set to use this layer. If the number of tokens is "
                "not known beforehand, use the IntegerLookup layer instead."
            )
        if self.num_tokens < 1:
            raise ValueError(
                f"`num_tokens` must be >= 1. Received: num_tokens={self.num_tokens}."
            )

    def call(self, inputs, count_weights=None):
        if count_weights is not None:
            if self.output_mode != "count":
                raise ValueError(
                    "`count_weights` is not used when `output_mode` is not `'count'`. "
                    f"Received `count_weights={count_weights}`."
                )
            count_weights = as_tensor(count_weights, self._computed)
        values = inputs if isinstance(inputs, tf.Tensor) else _values(inputs)
        text = (
            "Input values must be in the range 0 <= values < num_tokens with "
            f"num_tokens={self.num_tokens}"
        )
        low, high = tf.reduce_min(values), tf.reduce_max(values)
        fits = tf.logical_and(high < tf.cast(self.num_tokens, high.dtype), low >= 0)
        fits = tf.logical_or(fits, tf.equal(tf.size(values), 0))
        with tf.control_dependencies([tf.debugging.Assert(fits, [text])]):
            inputs = tf.nest.map_structure(tf.identity, inputs, expand_composites=True)
        how = (self.output_mode, self.num_tokens, self._computed, self.sparse)
        return encode(inputs, *how, count_weights)


def _values(x):
    return x.flat_values if hasattr(x, "flat_values") else x.values


def on_values(function, x):
    """`function` of a tensor, or of the values of a sparse or ragged one."""
    if isinstance(x, tf.SparseTensor):
        return x.with_values(function(x.values))
    if isinstance(x, tf.RaggedTensor):
        return x.with_flat_values(function(x.flat_values))
    return function(x)
