"""tf.experimental.BatchableExtensionType: extension types that datasets batch."""

from headrace.framework import nest
from headrace.framework.extension.extension_type import ExtensionType, ExtensionTypeSpec
from headrace.framework.type_spec import TensorSpec


class ExtensionTypeBatchEncoder:
    """How objects of a BatchableExtensionType are stacked and taken apart.

    Objects are encoded as structures of tensors, ragged and sparse tensors, and it is these
    that are stacked, cut into rows and joined. A class says how, where the encoding is not
    that of its fields: `__batch_encoder__ = MyEncoder()`.
    """

    def batch(self, spec, batch_size):
        """The spec of `batch_size` (None: any number of) stacked objects of `spec`."""
        parts = [s._batch(batch_size) for s in spec._component_specs]
        return spec._tf_extension_type_with_specs(parts)

    def unbatch(self, spec):
        """The spec of the rows of objects of `spec`."""
        parts = [s._unbatch() for s in spec._component_specs]
        return spec._tf_extension_type_with_specs(parts)

    def encoding_specs(self, spec):
        """The structure of TypeSpecs of what `encode` gives for objects of `spec`."""
        return spec._component_specs

    def encode(self, spec, value, minimum_rank=0):
        """The encoding of an object: a structure of tensors, each of at least that rank."""
        return spec._to_components(value)

    def decode(self, spec, encoded_value):
        """The object of `spec` with that encoding."""
        return spec._from_components(encoded_value)


class BatchableExtensionTypeSpec(ExtensionTypeSpec):
    """The specs of a BatchableExtensionType: datasets hold the encoding of objects."""

    __batch_encoder__ = ExtensionTypeBatchEncoder()

    def _batch(self, batch_size):
        return self.__batch_encoder__.batch(self, batch_size)

    def _unbatch(self):
        return self.__batch_encoder__.unbatch(self)

    @property
    def _flat_tensor_specs(self):
        return [t for s in nest.flatten(_encoding(self)) for t in _tensor_specs(s)]

    def _to_tensor_list(self, value):
        encoded = self.__batch_encoder__.encode(self, value)
        return _tensors(self, encoded, "_to_tensor_list")

    def _to_batched_tensor_list(self, value):
        encoded = self.__batch_encoder__.encode(self, value, minimum_rank=1)
        return _tensors(self, encoded, "_to_batched_tensor_list")

    def _from_tensor_list(self, tensor_list):
        rest, encoding = iter(tensor_list), _encoding(self)
        leaves = [
            next(rest)
            if isinstance(s, TensorSpec)
            else s._from_tensor_list([next(rest) for _ in _tensor_specs(s)])
            for s in nest.flatten(encoding)
        ]
        encoded = nest.pack_sequence_as(encoding, leaves)
        return self.__batch_encoder__.decode(self, encoded)

    _from_compatible_tensor_list = _from_tensor_list


def _encoding(spec):
    return spec.__batch_encoder__.encoding_specs(spec)


def _tensors(spec, encoded, method):
    out = []
    for s, x in zip(nest.flatten(_encoding(spec)), nest.flatten(encoded)):
        out += [x] if isinstance(s, TensorSpec) else getattr(s, method)(x)
    return out


def _tensor_specs(spec):
    return [spec] if isinstance(spec, TensorSpec) else spec._flat_tensor_specs


class BatchableExtensionType(ExtensionType):
    """An ExtensionType whose objects datasets batch and unbatch, and tf.map_fn maps over.

    Its tensors are stacked, one by one, unless the class has a `__batch_encoder__`, an
    ExtensionTypeBatchEncoder, that does it otherwise.
    """

    _tf_extension_type_do_not_transform_this_class = True
    _tf_extension_type_spec_base = BatchableExtensionTypeSpec

    @classmethod
    def _tf_extension_type_check_encoder(cls, namespace):
        pass  # any object with an encoder's methods
