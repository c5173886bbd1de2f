"""Functions that give tensors a layout, change it, and take tensors apart."""

from headrace import _api as tf
from headrace._load import _headrace, raw
from headrace.dtensor import gradients, propagation, scopes
from headrace.dtensor.structures import mapped
from headrace.dtensor.layout import MATCH, Layout
from headrace.dtensor.tensors import DTensor, laid, layout_of, no_hook, plain


def _only_eager(name):
    if not _headrace.is_eager():
        raise RuntimeError(f"`{name}` must be called eagerly.")


def _unknown(text):
    raise tf.errors.UnknownError(None, None, text)


def check_fit(layout, shape):
    """UnknownError where a tensor of that shape cannot lie so."""
    if layout.is_single_device():
        return
    if layout.rank != shape.rank:
        _unknown(
            "'tf.DTensorLayout' op requires matching rank for layout and input, but got "
            f"{layout.rank} as suggested rank from layout but {shape.rank} from shape."
        )
    for i, size in enumerate(shape.as_list()):
        shards = layout.num_shards(i)
        if size is not None and size % shards:
            _unknown(
                f"'tf.DTensorLayout' op requires dimension {i} to be divisible by "
                "sharding specified in DTensorLayout, but got dimension "
                f"size={size} is not divisible by number of shards in layout for this "
                f"dimension={shards}."
            )


def _tensor(value):
    """The value as a tensor without a layout, and the layout that it had."""
    if isinstance(value, _headrace.VariableBase):
        value = value.value()
    if not isinstance(value, _headrace.Tensor):
        with no_hook():
            value = tf.convert_to_tensor(value)
    return value


def _matched(layout, old):
    """The layout with the old specs where it says MATCH."""
    if MATCH not in layout._specs:
        return layout
    if list(layout._specs).count(MATCH) > 1:
        raise ValueError(
            "Attempted to shard two or more tensor dimensions over mesh dimension match"
        )
    if old is None or old.rank != layout.rank:
        old = Layout.replicated(layout.mesh, layout.rank)
    specs = [o if s == MATCH else s for s, o in zip(layout._specs, old._specs)]
    return Layout(specs, layout.mesh)


def _check_layout(layout):
    if not isinstance(layout, Layout):
        raise TypeError(f"layout must be a Layout, got {type(layout).__name__}")


def relayout(tensor, layout, name=None):
    """A tensor of the same value with that layout.

    MATCH in the layout keeps what the dimension had. UnknownError where ranks differ or
    a size is not divided evenly.
    """
    _check_layout(layout)
    tensor = _tensor(tensor)
    if isinstance(tensor, _headrace.SymbolicTensor):
        check_fit(layout, tensor.shape)
        made = raw.Identity(tensor, name=name)
        propagation.demand(made, layout)
        return made
    layout = _matched(layout, layout_of(tensor))
    check_fit(layout, tensor.shape)
    made = laid(tensor, layout)
    gradients.note(relayout, (tensor, layout), {}, made)
    return made


def relayout_like(tensor, layout_tensor, name=None):
    """A tensor of the same value with the layout of another; whole where the other has
    none. UnknownError where ranks differ."""
    tensor, other = _tensor(tensor), _tensor(layout_tensor)
    if isinstance(tensor, _headrace.SymbolicTensor) or isinstance(
        other, _headrace.SymbolicTensor
    ):
        made = raw.Identity(tensor, name=name)
        if isinstance(other, _headrace.SymbolicTensor):
            propagation.demand_like(made, other)
        elif layout_of(other) is not None:
            propagation.demand(made, other._layout)
        return made
    layout = layout_of(other)
    if layout is None:
        mesh = layout_of(tensor).mesh if layout_of(tensor) else scopes.current()
        if mesh is None:
            raise tf.errors.InvalidArgumentError(
                None, None, "No default mesh has been registered to DTensor."
            )
        layout = Layout.replicated(mesh, tensor.shape.rank)
    check_fit(layout, tensor.shape)
    made = laid(tensor, layout)
    gradients.note(relayout, (tensor, layout), {}, made)
    return made


def copy_to_mesh(tensor, layout, source_layout=None):
    """A tensor with that layout, of a tensor or data; a layout of another rank makes it
    whole on the layout's mesh. `source_layout` has no effect, as upstream."""
    _check_layout(layout)
    tensor = _tensor(tensor)
    if layout.rank != tensor.shape.rank:
        layout = Layout.replicated(layout.mesh, tensor.shape.rank)
    return relayout(tensor, layout)


def pack(tensors, layout):
    """One tensor of the parts that the mesh's local devices have, in their order.

    Parts of devices that have the same shard are taken as they are: `unpack` gives each
    back. InvalidArgumentError where there are too few or many or their rank is not the
    layout's, UnimplementedError where shapes differ, InternalError where dtypes do.
    """
    _only_eager("pack")
    mesh = layout.mesh
    parts = [_part(t) for t in tensors]
    if any(isinstance(p, (tf.SparseTensor, tf.RaggedTensor)) for p in parts):
        raise tf.errors.UnimplementedError(
            None, None, "pack: parts are dense tensors; sparse ones are not supported"
        )
    count = mesh.num_local_devices()
    if len(parts) != count or not count:
        raise tf.errors.InvalidArgumentError(
            None,
            None,
            f"The dtensor device {scopes.device_name()} expected {count} inputs to "
            f"DTensorPack, but got {len(parts)}",
        )
    _check_parts(parts, layout)
    made = laid(_joined(parts, layout), layout)
    made._parts = parts
    return made


def _part(value):
    if isinstance(value, DTensor):
        raise tf.errors.InvalidArgumentError(
            None,
            None,
            "Does not support packing a Tensor that is already on dtensor device",
        )
    if isinstance(value, (tf.SparseTensor, tf.RaggedTensor)):
        return value
    return _tensor(value)


def _check_parts(parts, layout):
    first = parts[0]
    if any(p.dtype != first.dtype for p in parts):
        raise tf.errors.InternalError(
            None, None, "Components of a PackedTensor must all have the same dtype"
        )
    if any(p.shape != first.shape for p in parts):
        raise tf.errors.UnimplementedError(
            None,
            None,
            "Components of a PackedTensor must currently all have the same shape",
        )
    if first.shape.rank != layout.rank and not layout.is_single_device():
        raise tf.errors.InvalidArgumentError(
            None,
            None,
            "Packed layout should have the same rank as the rank for each component. "
            f"The rank of each component is: {first.shape.rank}, while layout has rank: "
            f"{layout.rank}\nLayout: {layout.to_string()}",
        )


def _joined(parts, layout):
    """The whole of which those are the parts; of several for a place the first."""
    shape = layout.global_shape_from_local_shape(parts[0].shape.as_list())
    by_place = {}
    for part, slices in zip(parts, layout._slices(shape)):
        key = tuple((s.start, s.stop) for s in slices)
        by_place.setdefault(key, (slices, part))
    with no_hook():
        if len(by_place) == 1:
            return raw.Identity(parts[0])
        return _concatenated([by_place[k] for k in sorted(by_place)], len(shape))


def _concatenated(pieces, rank):
    """The pieces, each behind its slices and in their order, joined along the dimensions
    from the last to the first."""
    for axis in reversed(range(rank)):
        rows = {}
        for slices, part in pieces:
            key = tuple((s.start, s.stop) for s in slices[:axis])
            rows.setdefault(key, []).append((slices, part))
        pieces = [
            (
                row[0][0],
                row[0][1] if len(row) == 1 else tf.concat([p for _, p in row], axis),
            )
            for row in rows.values()
        ]
    return pieces[0][1]


def unpack(tensor):
    """The parts of the mesh's local devices, in their order: a list of plain tensors.

    RuntimeError in graphs, TypeError for what is no tensor, InvalidArgumentError for a
    tensor without a layout.
    """
    _only_eager("unpack")
    if not isinstance(tensor, (_headrace.Tensor, _headrace.VariableBase)):
        raise TypeError(f"Expecting a Tensor, got {type(tensor)}")
    if layout_of(tensor) is None:
        raise tf.errors.InvalidArgumentError(
            None,
            None,
            "DTensorUnpack expects a tensor placed on the DTensor device: "
            f"{scopes.device_name()}, but input was placed on device: {tensor.device}",
        )
    tensor = _tensor(tensor)
    parts = []
    with no_hook():
        devices = tensor._layout.mesh.local_devices()
        for device, part in zip(devices, tensor._cut()):
            with tf.device(device):
                parts.append(raw.Identity(part))
    return parts


def fetch_layout(tensor):
    """The layout of a tensor or variable; None of what is no tensor.

    RuntimeError in graphs, InvalidArgumentError for a tensor without one.
    """
    _only_eager("fetch_layout")
    if not isinstance(tensor, (_headrace.Tensor, _headrace.VariableBase)):
        return None
    layout = layout_of(tensor)
    if layout is None:
        raise tf.errors.InvalidArgumentError(
            None, None, "FetchLayout expects a tensor placed on the layout device."
        )
    return layout


def is_dtensor(tensor):
    """Whether the tensor or variable has a layout; RuntimeError in graphs."""
    _only_eager("is_dtensor")
    return layout_of(tensor) is not None


def check_layout(tensor, layout):
    """ValueError unless the tensor has that layout."""
    found = fetch_layout(tensor)
    if found is None or found != layout:
        raise ValueError(
            f"Layout of tensor: {found}, did not match expected layout: {layout}"
        )


def call_with_layout(fn, layout, *args, **kwargs):
    """fn(*args, **kwargs), whose result has that layout; as it is for None.

    Constants stay plain, as upstream.
    """
    if layout is None:
        return fn(*args, **kwargs)
    mesh = layout.mesh
    with scopes.default_mesh(mesh):
        result = fn(*args, **kwargs)

    def place(value):
        if isinstance(value, _headrace.SymbolicTensor) or isinstance(value, DTensor):
            return relayout(value, layout)
        return value

    return mapped(place, result)


def replicated(value, mesh):
    """The tensor or data, whole on all devices of the mesh."""
    tensor = _tensor(value)
    return laid(plain(tensor), Layout.replicated(mesh, tensor.shape.rank))
