"""tf.experimental.dtensor.DTensorDataset: a dataset whose elements have layouts."""

from headrace import _api as tf
from headrace.data.dataset import Dataset
from headrace.dtensor import values


def _batched_layout(layout, spec, already):
    rank = spec.shape.rank if already else spec.shape.rank + 1
    if layout.rank != rank:
        raise ValueError(
            f"Expected layout with rank {rank} for element spec {spec}, got layout "
            f"{layout.sharding_specs}. Check that the dataset is not batched before "
            "passing to DTensorDataset."
        )


def _check_batches(spec, size):
    found = spec.shape[0] if spec.shape.rank else None
    if found is None:
        raise ValueError(
            f"Size of batch dimension of element spec {spec} is None. Ensure "
            "drop_remainder=True when batching the dataset."
        )
    if found != size:
        raise ValueError(
            "per_replica_batch_size does not matched expected size based on the mesh, "
            f"got {found} but expected {size}."
        )


class DTensorDataset(Dataset):
    """The elements of a dataset in batches, each component with a layout.

    `layouts` has a layout of each component, in their structure, with the dimension of
    batches; `global_batch_size` elements are a batch, and a rest is left out. A dataset
    that is batched already gives the batches of one replica: as many as the mesh's
    dimension `batch_dim`, which divides batches, go together. `prefetch` batches are made
    ahead. ValueError where ranks, sizes or structures do not fit.
    """

    def __init__(
        self,
        dataset,
        *,
        mesh,
        layouts,
        global_batch_size,
        dataset_already_batched=False,
        batch_dim=None,
        prefetch=None,
        tf_data_service_config=None,
    ):
        if tf_data_service_config is not None:
            raise NotImplementedError(
                "Multi-client DTensorDataset is currently not supported."
            )
        spec = dataset.element_spec
        tf.nest.assert_same_structure(spec, layouts)
        flat = list(zip(tf.nest.flatten(layouts), tf.nest.flatten(spec)))
        replicas = 1 if batch_dim is None else mesh.dim_size(batch_dim)
        for layout, component in flat:
            _batched_layout(layout, component, dataset_already_batched)
            if batch_dim is not None and batch_dim not in layout.sharding_specs:
                raise ValueError(
                    f"batch_dim {batch_dim} was specified but at least one layout did "
                    f"not contain it: {layout}"
                )
        if dataset_already_batched:
            for _, component in flat:
                _check_batches(component, global_batch_size // replicas)
            made = dataset.unbatch() if replicas > 1 else dataset
        else:
            made = dataset
        if made is dataset and dataset_already_batched:
            batches = dataset
        else:
            batches = made.batch(global_batch_size, drop_remainder=True)
        if prefetch is not None:
            batches = batches.prefetch(prefetch)
        super().__init__(batches._variant_tensor, batches.element_spec, [batches])
        self._layouts, self._given = layouts, dataset

    def cardinality(self):
        """The number of elements of the dataset that it was made of, as upstream."""
        return self._given.cardinality()

    def __iter__(self):
        return _DTensorIterator(super().__iter__(), self._layouts)


class _DTensorIterator:
    """The batches of an iterator, laid out."""

    def __init__(self, iterator, layouts):
        self._iterator, self._layouts = iterator, layouts

    element_spec = property(lambda self: self._iterator.element_spec)

    def __iter__(self):
        return self

    def __next__(self):
        return self._laid_out(next(self._iterator))

    def get_next(self):
        """The next batch; OutOfRangeError at the end."""
        return self._laid_out(self._iterator.get_next())

    def get_next_as_optional(self):
        """The next batch in a tf.experimental.Optional, without layouts."""
        return self._iterator.get_next_as_optional()

    def _laid_out(self, batch):
        return tf.nest.map_structure(
            lambda layout, x: values.copy_to_mesh(x, layout), self._layouts, batch
        )
