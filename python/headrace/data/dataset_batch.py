"""Several datasets as one value: what a batch of datasets is."""

from headrace.data import dataset
from headrace.data.holder_spec import Holder
from headrace.elements import structure
from headrace.framework import conversion


class DatasetBatch(Holder):
    """A tensor of datasets that have one element_spec.

    It is taken apart again by `Dataset.unbatch`; a dataset's own methods are those of
    its parts.
    """

    def __init__(self, variant_tensor, spec):
        self._variant_tensor = variant_tensor
        self._type_spec = spec

    @classmethod
    def of(cls, datasets):
        """The datasets of a list stacked; TypeError where their elements differ."""
        spec = datasets[0].element_spec
        for other in datasets[1:]:
            spec = structure.common(spec, other.element_spec)
        stacked = conversion.convert_to_tensor([d._variant_tensor for d in datasets])
        return cls(stacked, dataset.DatasetSpec(spec, [len(datasets)]))

    element_spec = property(
        lambda self: self._type_spec.element_spec,
        doc="The nested structure of specs that an element of each dataset has.",
    )
    shape = property(
        lambda self: self._variant_tensor.shape, doc="How the datasets are laid out."
    )

    def __repr__(self):
        return f"<DatasetBatch shape={self.shape} element_spec={self.element_spec}>"
