"""Steps of linear models and k-means: what they refuse, in TensorFlow's words, and that
they train."""

import headrace as tf
import numpy as np
import pytest
from rows_of_training import _example

raw = tf.raw_ops
Invalid = tf.errors.InvalidArgumentError


def _sdca(**more):
    return raw.SdcaOptimizerV2(**_example() | {"loss_type": "squared_loss"} | more)


@pytest.mark.parametrize(
    ("more", "text"),
    [
        (
            {"example_labels": np.float32([2]), "loss_type": "hinge_loss"},
            "0.0 or 1.0 are supported right now. Found example with label: 2",
        ),
        (
            {"example_labels": np.float32([-1]), "loss_type": "poisson_loss"},
            "can be used with the Poisson log loss. Found example with label: -1",
        ),
        ({"dense_weights": [np.float32([1])]}, "More dense features than we have par"),
        (
            {"dense_features": [np.float32([1, 2])]},
            "Dense features at index 0 must be rank 2 but is rank 1",
        ),
        ({"dense_features": [np.zeros([3, 2], np.float32)]}, "are of 3 examples but"),
        (
            {"sparse_feature_indices": [np.int64([0, 7])]},
            "Found sparse feature indices out of valid range: 7",
        ),
        (
            {"sparse_feature_indices": [np.int64([1, 1])]},
            "Duplicate index in sparse vector",
        ),
        (
            {"sparse_example_indices": [np.int64([0])]},
            r"mismatched example_indices and feature_indices \[0\] vs \[0 1\]",
        ),
        ({"sparse_example_indices": [np.int64([0, 1])]}, "out of valid range: 1"),
        ({"sparse_example_indices": [np.int64([0, -1])]}, "out of valid range: -1"),
        ({"sparse_feature_values": [np.float32([1])]}, "Expected 2 sparse_feature_val"),
        ({"sparse_indices": [np.int64([0])]}, "Found 1 sparse_indices but 2 sparse_we"),
        ({"example_labels": np.float32([1, 1])}, "Expected 1 example labels but got 2"),
        (
            {"example_state_data": np.zeros([1, 3], np.float32)},
            r"Expected shape \[1,4\] for example_state_data, got \[1,3\]",
        ),
        ({"num_inner_iterations": 0}, "must be at least minimum 1"),
    ],
)
def test_refusals_of_sdca(more, text):
    with pytest.raises(Invalid, match=text):
        _sdca(**more)


def test_no_features_and_no_examples():
    none = {
        "sparse_example_indices": [],
        "sparse_feature_indices": [],
        "sparse_feature_values": [],
        "sparse_indices": [],
        "sparse_weights": [],
    }
    with pytest.raises(Invalid, match="Requires at least one feature to train"):
        _sdca(**none, dense_features=[], dense_weights=[])
    empty = _sdca(
        **none,
        dense_features=[np.zeros([0, 2], np.float32)],
        example_weights=np.float32([]),
        example_labels=np.float32([]),
        example_state_data=np.zeros([0, 4], np.float32),
    )
    assert empty.out_delta_dense_weights[0].numpy().tolist() == [[0, 0]]
    # All values of the first group that has none are 1.
    ones = _sdca(sparse_feature_values=[])
    assert len(set(ones.out_delta_sparse_weights[0].numpy().tolist())) == 1


@pytest.mark.parametrize("adaptive", [False, True])
@pytest.mark.parametrize("loss", ["logistic_loss", "squared_loss", "smooth_hinge_loss"])
def test_passes_close_the_gap(loss, adaptive):
    """Primal and dual objectives meet, as theory has it; the way there is ours."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(40, 3)).astype(np.float32)
    y = (x @ [1, -2, 0.5] > 0).astype(np.float32)
    weights, state, l2 = np.zeros([1, 3], np.float32), np.zeros([40, 4]), 1.0
    for i in range(60):
        found = raw.SdcaOptimizerV2(
            sparse_example_indices=[],
            sparse_feature_indices=[],
            sparse_feature_values=[],
            dense_features=[x],
            example_weights=np.ones(40, np.float32),
            example_labels=y,
            sparse_indices=[],
            sparse_weights=[],
            dense_weights=[weights],
            example_state_data=state.astype(np.float32),
            loss_type=loss,
            adaptive=adaptive and i < 59,  # which leaves some out
            l1=0.0,
            l2=l2,
            num_loss_partitions=1,
            num_inner_iterations=1,
        )
        weights = weights + found.out_delta_dense_weights[0].numpy()
        state = found.out_example_state_data.numpy()
    penalty = 0.5 * l2 * (weights**2).sum()
    gap = state[:, 1].sum() + state[:, 2].sum() + 2 * penalty
    assert abs(gap) < 1e-3 * state[:, 1].sum()


def test_static_shapes():
    with tf.Graph().as_default():
        shapes = {"dense_weights": [[1, 4]], "sparse_weights": [[3]]}
        given = {}
        for name, value in _example().items():
            if isinstance(value, list):
                given[name] = [
                    tf.compat.v1.placeholder(value[0].dtype, *shapes.get(name, [None]))
                ]
            elif isinstance(value, np.ndarray):
                given[name] = tf.compat.v1.placeholder(value.dtype)
            else:
                given[name] = value
        found = raw.SdcaOptimizerV2(loss_type="hinge_loss", **given)
        assert found[0].shape.as_list() == [None, 4]
        assert found[1][0].shape == [3]
        assert found[2][0].shape == [1, 4]


def _remap(tmp_path, **more):
    (tmp_path / "new").write_text("a\nb\nc\n")
    (tmp_path / "old").write_text("c\na\nc\n")
    (tmp_path / "empty").write_text("")
    given = {
        "new_vocab_file": "new",
        "old_vocab_file": "new",
        "new_vocab_offset": 0,
        "num_new_vocab": 3,
    } | more
    for name in ("new_vocab_file", "old_vocab_file"):
        if given[name] and isinstance(given[name], str):
            given[name] = str(tmp_path / given[name])
    return raw.GenerateVocabRemapping(**given)


def test_refusals_of_vocabularies(tmp_path):
    errors = tf.errors
    for kind, more, text in (
        (
            Invalid,
            {"new_vocab_offset": 1},
            "lookup table size must be larger than last",
        ),
        (Invalid, {"new_vocab_offset": 2**62}, "lookup table size must be larger"),
        (errors.OutOfRangeError, {"old_vocab_size": 0}, "Finished reading 0 of lines"),
        (errors.OutOfRangeError, {"new_vocab_file": "empty"}, "Read less bytes than"),
        (
            Invalid,
            {"old_vocab_size": 9},
            "Invalid vocab_size in .*: expected 9 but got 3",
        ),
        (
            errors.FailedPreconditionError,
            {"old_vocab_file": "old"},
            "different value for same key. Key c has 0 and trying to add value 2",
        ),
        (errors.NotFoundError, {"new_vocab_file": "nope"}, "No such file or directory"),
        (Invalid, {"new_vocab_file": ""}, "vocab filename cannot be empty"),
        (
            Invalid,
            {"old_vocab_file": ["x"]},
            r"old_vocab_file should be a single string, but got \[1\]",
        ),
    ):
        with pytest.raises(kind, match=text):
            _remap(tmp_path, **more)


@pytest.fixture
def checkpoint(tmp_path):
    prefix = str(tmp_path / "ck")
    raw.SaveV2(
        prefix=prefix,
        tensor_names=["m", "v", "i"],
        shape_and_slices=["", "", ""],
        tensors=[np.arange(20, dtype=np.float32).reshape(5, 4), [1.0, 2.0], [[1]]],
    )
    return prefix


def test_refusals_of_matrices(checkpoint):
    def load(**more):
        given = {
            "ckpt_path": checkpoint,
            "old_tensor_name": "m",
            "row_remapping": [0],
            "col_remapping": [],
            "initializing_values": [],
            "num_rows": 1,
            "num_cols": 4,
        } | more
        kinds = {"row_remapping": np.int64, "col_remapping": np.int64}
        kinds["initializing_values"] = np.float32
        given |= {k: np.array(given[k], t) for k, t in kinds.items()}
        return raw.LoadAndRemapMatrix(**given)

    errors = tf.errors
    for kind, more, text in (
        (
            Invalid,
            {"num_rows": 2},
            "Size of row_remapping is 1 instead of .* num_rows=2",
        ),
        (Invalid, {"col_remapping": [0]}, "size is 1 instead of .* num_cols=4"),
        (
            errors.UnimplementedError,
            {"row_remapping": [1, 1], "num_rows": 2},
            "Old ID 1 is mapped to both new ID 0 and 1, which is not supported",
        ),
        (Invalid, {"num_cols": 3}, r"m has shape \[5,4\], where the size of its 2nd"),
        (
            Invalid,
            {"old_tensor_name": "v"},
            r"Tensor v has shape \[2\] of invalid rank 1",
        ),
        (Invalid, {"old_tensor_name": "i"}, "Tensor i has invalid type int32 instead"),
        (
            errors.NotFoundError,
            {"old_tensor_name": "z"},
            "Key z not found in checkpoint",
        ),
        (errors.NotFoundError, {"ckpt_path": "/nope"}, "/nope"),
        (Invalid, {"ckpt_path": ["a", "b"]}, r"exactly one element, .* of shape \[2\]"),
        (Invalid, {"row_remapping": [5]}, r"row 5 of tensor m of shape \[5,4\]"),
        (
            Invalid,
            {"col_remapping": [4], "num_cols": 1},
            r"column 4 of tensor m of shape \[5,4\]",
        ),
        (Invalid, {"row_remapping": [-1]}, "contained 0 elements, but more missing"),
        (
            Invalid,
            {"initializing_values": [4]},
            "contained 1 elements, but only 0 elements were used",
        ),
        (
            Invalid,
            {"row_remapping": [[0]]},
            r"must be 1-D, got a tensor of shape \[1,1\]",
        ),
        (
            Invalid,
            {"col_remapping": [[0]]},
            r"must be 1-D, got a tensor of shape \[1,1\]",
        ),
        (
            Invalid,
            {"num_rows": 2**40, "num_cols": 2**40},
            "too large|instead of being equal",
        ),
    ):
        with pytest.raises(kind, match=text):
            load(**more)


def test_refusals_of_clusters():
    def seeds(points, count=1, seed=1, retries=1):
        return raw.KmeansPlusPlusInitialization(
            points=np.float32(points),
            num_to_sample=np.int64(count),
            seed=np.int64(seed),
            num_retries_per_sample=np.int64(retries),
        )

    for arguments, text in (
        (([[1]], 0), "Expected num_to_sample > 0"),
        (([[1]], 2), r"Expected num_to_sample <= points.rows\(\). 2 vs 1"),
        ((np.zeros([0, 2]),), r"Expected points.rows\(\) > 0"),
        (([1],), "Input points should be a matrix"),
        (([[1]], [1]), "Input num_to_sample should be a scalar"),
        (([[1]], 1, [1]), "Input seed should be a scalar"),
        (([[1]], 1, 1, [1]), "Input num_retries_per_sample should be a scalar"),
    ):
        with pytest.raises(Invalid, match=text):
            seeds(*arguments)
    assert seeds(np.zeros([2, 0])).shape == [1, 0]
    for distances, seed, text in (
        ([], 0, r"Expected distances_tensor.size\(\) > 0"),
        ([[1]], 0, "Input distances should be a vector"),
        ([1], [0], "Input seed should be a scalar"),
    ):
        with pytest.raises(Invalid, match=text):
            raw.KMC2ChainInitialization(
                distances=np.float32(distances), seed=np.int64(seed)
            )


def test_fingerprints_of_all_lengths():
    """Sums over texts of 0 to 399 bytes, which TensorFlow gave."""
    text = bytes(i * 7 % 251 for i in range(400))
    found = raw.SdcaFprint(input=[text[:n] for n in range(400)]).numpy()
    assert np.bitwise_xor.reduce(found).tolist() == WANTED
    with pytest.raises(Invalid, match=r"Input must be a vector, got shape \[\]"):
        raw.SdcaFprint(input="a")


WANTED = [1223756184136076058, -1143622674558581906]
