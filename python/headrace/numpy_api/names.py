"""What tf.experimental.numpy has of NumPy's own: constants, types and their kinds."""

import numpy as np

from headrace._load import _headrace

e, inf, newaxis, pi = np.e, np.inf, np.newaxis, np.pi
iinfo, inexact, issubdtype = np.iinfo, np.inexact, np.issubdtype
bool_, object_, string_, unicode_ = np.bool_, np.object_, np.bytes_, np.str_
int8, int16, int32, int64, int_ = np.int8, np.int16, np.int32, np.int64, np.int64
uint8, uint16, uint32, uint64 = np.uint8, np.uint16, np.uint32, np.uint64
float16, float32, float64, float_ = np.float16, np.float32, np.float64, np.float64
complex64, complex128, complex_ = np.complex64, np.complex128, np.complex128
ndarray = _headrace.Tensor
