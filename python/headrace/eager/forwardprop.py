"""tf.autodiff.ForwardAccumulator: derivatives along with the computation."""

import threading

from headrace._load import _headrace, raw
from headrace.eager.backprop import UnconnectedGradients
from headrace.framework import conversion, nest
from headrace.framework.indexed_slices import from_gradient
from headrace.framework.settings import logging

_thread = threading.local()


def _recording():
    """The accumulators of this thread whose contexts are open, outermost first."""
    if not hasattr(_thread, "recording"):
        _thread.recording = []
    return _thread.recording


class ForwardAccumulator:
    """Computes Jacobian-vector products of what runs in its context.

    It records the computation and, when asked for a product, differentiates the
    gradient with respect to its seed: the derivative of v -> vJ in direction t is Jt.
    """

    def __init__(self, primals, tangents):
        nest.assert_same_structure(primals, tangents)
        flat_primals = nest.flatten(primals, expand_composites=True)
        flat_tangents = nest.flatten(tangents, expand_composites=True)
        self._primals, self._tangents = [], []
        for p, t in zip(flat_primals, flat_tangents):
            if not p.dtype.is_floating and not p.dtype.is_complex:
                logging.warn(
                    "The dtype of the watched primal must be floating (e.g. "
                    "tf.float32), got %r",
                    p.dtype,
                )
            t = conversion.convert_to_tensor(t, dtype=p.dtype)
            if not t.shape.is_compatible_with(p.shape):
                raise ValueError(f"Tangent {t} shape must match primal shape {p.shape}")
            if any(p is q for q in self._primals):
                raise ValueError(
                    f"Tensor {p} was specified as a primal multiple times. Add up its "
                    "tangents where that is intended."
                )
            self._primals.append(p)
            self._tangents.append(t)
        self._tape = None
        self._recording = False
        self._enclosing = []

    def __enter__(self):
        if self._recording:
            raise ValueError("Accumulator is already recording.")
        if self._tape is None:
            self._tape = _headrace.Tape(True, False)
            for p in self._primals:
                self._tape.watch(p)
        self._enclosing = list(_recording())
        self._tape.start()
        self._recording = True
        _recording().append(self)
        return self

    def __exit__(self, *error):
        if self._recording:
            self._tape.stop()
            self._recording = False
            _recording().remove(self)
        return False

    def jvp(self, primals, unconnected_gradients=UnconnectedGradients.NONE):
        """The products for tensors computed inside, in their structure."""
        if self._tape is None:
            raise ValueError("Called jvp() without first tracing anything.")
        zero = UnconnectedGradients(unconnected_gradients) == UnconnectedGradients.ZERO
        out = []
        for target in nest.flatten(primals, expand_composites=True):
            value = (
                target._read() if isinstance(target, _headrace.VariableBase) else target
            )
            product = self._product(target)
            if product is None and zero:
                product = raw.ZerosLike(value)
            out.append(product)
        if len(out) == len(nest.flatten(primals)):
            return nest.pack_sequence_as(primals, out)
        return nest.pack_sequence_as(primals, out, expand_composites=True)

    def _product(self, target):
        """Also part of what the accumulators around this one have recorded, when
        it is asked for after their contexts."""
        ended = [a._tape for a in self._enclosing if not a._recording]
        for tape in ended:
            tape.start()
        try:
            return self._product_here(target)
        finally:
            for tape in reversed(ended):
                tape.stop()

    def _product_here(self, target):
        for p, t in zip(self._primals, self._tangents):
            if target is p:
                return t
        value = target._read() if isinstance(target, _headrace.VariableBase) else target
        if value.dtype.is_integer or value.dtype.is_bool:  # no gradient flows there
            return None
        seed = raw.ZerosLike(value)
        second = _headrace.Tape(True, False)
        second.watch(seed)
        resumed = self._recording
        if resumed:
            self._tape.stop()
        second.start()
        try:
            found = self._tape.gradients([target], self._primals, [seed])
        finally:
            second.stop()
            if resumed:
                self._tape.start()
        grads, tangents = [], []
        for g, t in zip(found, self._tangents):
            if g is not None:
                second.start()
                grads.append(conversion.convert_to_tensor(from_gradient(g)))
                second.stop()
                tangents.append(t)
        if not grads:
            return None
        (product,) = second.gradients(grads, [seed], tangents)
        return None if product is None else from_gradient(product)
