"""tf.experimental.numpy.experimental_enable_numpy_behavior: tensors as NumPy's arrays."""

import functools

from headrace._load import _headrace
from headrace.framework.settings import logging
from headrace.numpy_api import indexing, methods, products, promotion, weak_functions
from headrace.numpy_api.weak_tensor import WeakTensor, plain, weakened

_Tensor = _headrace.Tensor


def experimental_enable_numpy_behavior(
    prefer_float32=False, dtype_conversion_mode="legacy"
):
    """Gives tensors NumPy's methods, indexing and promotion of dtypes, for good.

    Args:
      prefer_float32: whether Python's floats are float32 in functions of
        tf.experimental.numpy, not float64.
      dtype_conversion_mode: what operators do with operands of different dtypes. "off":
        they refuse them; "legacy": NumPy's rules; "all": a table of TensorFlow's, where
        values of Python's numbers are weak tensors, whose dtype gives way; "safe": the
        same, but TypeError where a promotion may lose bits. The last two reach the
        functions of tf, too, and are for a program's begin.

    Raises:
      ValueError: there is no such mode.
    """
    if dtype_conversion_mode not in promotion.MODES:
        raise ValueError(
            f"The provided promotion mode {dtype_conversion_mode} does not exist. Make "
            "sure the provided dtype conversion mode is one of the followings: 'off', "
            "'legacy', 'safe' or 'all'."
        )
    promotion.state.mode = dtype_conversion_mode
    promotion.state.prefer_float32 = bool(prefer_float32)
    if promotion.is_new():
        logging.warning(
            "UserWarning: enabling the new type promotion must happen at the beginning of "
            "the program. Please ensure no TF APIs have been used yet."
        )
        weak_functions.install()
    _attach()


@functools.cache
def _attach():
    methods.add_to(_Tensor, WeakTensor)
    native = _Tensor.__getitem__
    _Tensor.__getitem__ = functools.wraps(native)(
        lambda self, key: indexing.getitem(self, key, native)
    )
    for name, (promotes, weak) in _OPERATORS.items():
        for method in (f"__{name}__", f"__r{name}__"):
            own = getattr(_Tensor, method, None)
            if own is not None:
                setattr(_Tensor, method, _promoting(own, promotes, weak))
    for method, turned in (("__matmul__", False), ("__rmatmul__", True)):
        setattr(_Tensor, method, _matrix_product(getattr(_Tensor, method), turned))


# {operator: (modes in which operands are promoted, whether weak operands give a weak
# result)}
_ALWAYS, _LEGACY = ("legacy", "safe", "all"), ("legacy",)
_OPERATORS = {
    **dict.fromkeys("add sub mul truediv floordiv mod pow".split(), (_ALWAYS, True)),
    **dict.fromkeys("and or xor lt le gt ge ne".split(), (_LEGACY, False)),
    "eq": (_ALWAYS, False),
}
_NUMBERS = (bool, int, float, complex)


def _promoting(native, modes, keeps_weak):
    """An operator's method that promotes its operands and goes on with the native one."""

    @functools.wraps(native)
    def operate(self, other):
        if promotion.state.mode not in modes or other is None:
            return native(self, plain(other))
        if isinstance(other, _Tensor) and other.dtype == self.dtype:
            return native(self, other)
        if type(other) in _NUMBERS and not promotion.is_new():
            found = promotion.joined_with_number(self.dtype, type(other)), False
        else:
            found = weak_functions.joined_operands(self, other)
        if found is None:
            return native(self, other)
        dtype, weak = found
        if dtype == self.dtype and type(other) in _NUMBERS:
            return native(self, other)
        of = weak_functions.as_operand
        result = native(of(self, dtype), of(other, dtype))
        return weakened(result) if weak and keeps_weak else result

    return operate


def _matrix_product(native, turned):
    """@ as NumPy has it, also for vectors."""

    @functools.wraps(native)
    def operate(self, other):
        if promotion.state.mode == "off" or not isinstance(
            other, weak_functions.OPERANDS
        ):
            return native(self, other)
        return products.matmul(*((other, self) if turned else (self, other)))

    return operate
