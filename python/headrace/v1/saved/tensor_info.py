"""TensorInfos: what a SavedModel's signatures say of tensors."""

from headrace._load import _headrace
from headrace.context import stack
from headrace.framework import nest
from headrace.framework.sparse_tensor import SparseTensor
from headrace.framework.support import protos
from headrace.framework.tensor_shape import as_shape
from headrace.elements import structured


def build_tensor_info(tensor):
    """The TensorInfo proto of a tensor or a variable of a graph, or of a sparse, ragged
    or other composite tensor; RuntimeError when executing eagerly."""
    if _headrace.is_eager():
        raise RuntimeError("`build_tensor_info` is not supported in eager execution.")
    if isinstance(tensor, SparseTensor):
        return _sparse(tensor)
    if nest.flatten(tensor, expand_composites=True)[0] is not tensor:
        return _composite(tensor)
    return protos.TensorInfo(
        name=tensor.name,
        dtype=tensor.dtype.as_datatype_enum,
        tensor_shape=tensor.get_shape().as_proto(),
    )


def _sparse(tensor):
    info = protos.TensorInfo(
        dtype=tensor.dtype.as_datatype_enum, tensor_shape=tensor.shape.as_proto()
    )
    info.coo_sparse.values_tensor_name = tensor.values.name
    info.coo_sparse.indices_tensor_name = tensor.indices.name
    info.coo_sparse.dense_shape_tensor_name = tensor.dense_shape.name
    return info


def _composite(tensor):
    info = protos.TensorInfo()
    spec = _headrace.encode_structure(structured.encoded(tensor._type_spec))
    structure = protos.StructuredValue.FromString(spec)
    info.composite_tensor.type_spec.CopyFrom(structure.type_spec_value)
    for component in nest.flatten(tensor, expand_composites=True):
        info.composite_tensor.components.append(build_tensor_info(component))
    return info


def build_tensor_info_from_op(op):
    """The TensorInfo proto that stands for an operation: its name alone."""
    return protos.TensorInfo(name=op.name, tensor_shape=as_shape(None).as_proto())


def _scoped(name, import_scope):
    return f"{import_scope}/{name}" if import_scope else name


def get_element_from_tensor_info(tensor_info, graph=None, import_scope=None):
    """The tensor or operation of a graph that a TensorInfo names."""
    graph = graph or stack.default_graph()
    return graph.as_graph_element(_scoped(tensor_info.name, import_scope))


def get_tensor_from_tensor_info(tensor_info, graph=None, import_scope=None):
    """The tensor, sparse tensor or composite tensor of a graph, the default one unless
    `graph` is given, that a TensorInfo describes; `import_scope` is put before names.
    KeyError where there is no such tensor, ValueError where the TensorInfo names none.
    """
    graph = graph or stack.default_graph()

    def named(name):
        return graph.get_tensor_by_name(_scoped(name, import_scope))

    encoding = tensor_info.WhichOneof("encoding")
    if encoding == "name":
        return named(tensor_info.name)
    if encoding == "coo_sparse":
        parts = tensor_info.coo_sparse
        return SparseTensor(
            named(parts.indices_tensor_name),
            named(parts.values_tensor_name),
            named(parts.dense_shape_tensor_name),
        )
    if encoding == "composite_tensor":
        found = tensor_info.composite_tensor
        structure = protos.StructuredValue(type_spec_value=found.type_spec)
        value = _headrace.decode_structure(structure.SerializeToString())
        components = [
            get_tensor_from_tensor_info(c, graph, import_scope)
            for c in found.components
        ]
        spec = structured.decoded(value)
        return nest.pack_sequence_as(spec, components, expand_composites=True)
    raise ValueError(
        f"Invalid TensorInfo.encoding: {encoding}. Expected `coo_sparse`, "
        "`composite_tensor`, or `name` for a dense tensor."
    )
