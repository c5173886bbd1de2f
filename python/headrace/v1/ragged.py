"""Functions of TensorFlow 1 that take ragged tensors."""

from headrace.framework.support import signatures
from headrace.imaging import ragged_images
from headrace.ragged import functions as ragged_functions
from headrace.v1 import functions, table


def embedding_lookup(
    params,
    ids,
    partition_strategy="mod",
    name=None,
    validate_indices=True,
    max_norm=None,
):
    """The same by TensorFlow 1's function, whose parts may be cut either way."""
    return ragged_functions.looked_up(
        functions.embedding_lookup, params, ids, partition_strategy, max_norm=max_norm
    )


def embedding_lookup_sparse(params, sp_ids, sp_weights, *args, **kwargs):
    """The same by TensorFlow 1's function."""
    return table.nn__embedding_lookup_sparse(
        params,
        ragged_functions.as_sparse(sp_ids),
        ragged_functions.as_sparse(sp_weights),
        *args,
        **kwargs,
    )


def safe_embedding_lookup_sparse(
    embedding_weights, sparse_ids, sparse_weights=None, *args, **kwargs
):
    """The same by TensorFlow 1's function."""
    return table.nn__safe_embedding_lookup_sparse(
        embedding_weights,
        ragged_functions.as_sparse(sparse_ids),
        ragged_functions.as_sparse(sparse_weights),
        *args,
        **kwargs,
    )


@signatures.taking(signatures.parameters_of(functions.resize_images))
def resize(images, size, method=0, **how):
    """The same by the rules of TensorFlow 1."""

    def one(image):
        return functions.resize_images(image, size, method, **how)

    return ragged_images.each_image(one, images, size, method in (1, "nearest"))
