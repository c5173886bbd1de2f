"""Functions of tf.experimental.numpy in graphs: the values of eager calls, also where
the graph knows no sizes, and gradients."""

import numpy as np
import pytest

import headrace as tf

n = tf.experimental.numpy
A = np.array([[1.5, -2.0, 0.5], [3.0, 0.25, -1.0]])
B = np.array([[0.5, 2.0, 4.0], [1.0, -3.0, 2.5]])
INTS = np.array([[4, 6, -3], [9, 0, 12]])

# (what is called with x and y, whether a graph must know the rank)
ELEMENTWISE = """
    n.abs(x) n.add(x,y) n.angle(x) n.arccos(x/4) n.arccosh(abs(x)+1) n.arcsin(x/4)
    n.arcsinh(x) n.arctan(x) n.arctan2(x,y) n.arctanh(x/4) n.cbrt(x) n.ceil(x)
    n.clip(x,-1,y) n.cos(x) n.cosh(x) n.deg2rad(x) n.divide(x,y) n.exp(x) n.exp2(x)
    n.expm1(x) n.fix(x) n.float_power(abs(x),y) n.floor(x) n.floor_divide(x,y)
    n.heaviside(x,y) n.hypot(x,y) n.isclose(x,y) n.log(abs(x)) n.log10(abs(x))
    n.log1p(abs(x)) n.log2(abs(x)) n.logaddexp(x,y) n.logaddexp2(x,y) n.logical_and(x,y)
    n.maximum(x,y) n.minimum(x,y) n.mod(x,y) n.multiply(x,y) n.negative(x)
    n.nextafter(x,y) n.power(abs(x),y) n.rad2deg(x) n.reciprocal(x) n.round(x,1)
    n.sign(x) n.signbit(x) n.sin(x) n.sinc(x) n.sinh(x) n.sqrt(abs(x)) n.square(x)
    n.subtract(x,y) n.tan(x) n.tanh(x) n.where(x>0,x,y) n.allclose(x,y)
    n.array_equal(x,y) n.array_equal(x,x) n.isnan(x) n.isinf(x) n.isreal(x)
    n.less(x,y) n.not_equal(x,y) n.select([x>0,y>0],[x,y],7) n.zeros_like(x)
    n.full_like(x,3) n.polyval([1.,2.],x)
"""
WHOLE = """
    n.all(x) n.any(x,axis=0) n.amax(x,axis=1) n.amin(x) n.sum(x,axis=0) n.prod(x,axis=1)
    n.mean(x,axis=1,keepdims=True) n.var(x,axis=0) n.var(x,axis=0,ddof=1) n.std(x)
    n.ptp(x,axis=1) n.nansum(x) n.nanmean(x,axis=0) n.nanprod(x) n.count_nonzero(x,axis=1)
    n.cumsum(x) n.cumprod(x,axis=1) n.argmax(x,axis=1) n.argmin(x) n.argsort(x,axis=0)
    n.sort(x,axis=1) n.ravel(x) n.flatten(x,order="F") n.reshape(x,[3,2])
    n.reshape(x,[3,2],order="F") n.transpose(x) n.expand_dims(x,1) n.roll(x,1)
    n.roll(x,1,axis=1) n.take(x,[0,4]) n.take(x,[1,-1],axis=1,mode="wrap") n.outer(x,y)
    n.vdot(x,y) n.concatenate([x,y]) n.stack([x,y],axis=1) n.append(x,y)
    n.broadcast_to(x,[2,2,3]) n.repeat(x,2,axis=1) n.average(x)
"""
RANKED = """
    n.swapaxes(x,0,1) n.moveaxis(x,0,-1) n.flip(x,0) n.fliplr(x) n.flipud(x) n.rot90(x)
    n.rot90(x,3) n.atleast_3d(x) n.hstack([x,y]) n.vstack([x,y]) n.dstack([x,y])
    n.tile(x,2) n.tile(x,[2,1,2]) n.pad(x,1,"constant") n.diagonal(x,1) n.trace(x)
    n.trace(x,offset=1) n.tril(x) n.triu(x,1) n.diff(x,axis=1) n.dot(x,n.transpose(y))
    n.inner(x,y) n.matmul(x,n.transpose(y)) n.tensordot(x,y,axes=[[1],[1]]) n.kron(x,y)
    n.einsum("ij,kj->ik",x,y) n.average(x,axis=1,weights=[1.,2.,3.])
    n.take_along_axis(x,n.argsort(x,axis=1),1) n.compress([True,False],x,axis=0)
    n.diag(n.ravel(x)) n.nonzero(x>0)[0] n.squeeze(n.expand_dims(x,0),axis=0)
    n.cross(n.reshape(x,[2,3]),n.reshape(y,[2,3])) n.linspace(x,y,3) n.vander(n.ravel(x),3)
    n.broadcast_arrays(x,y[:1])[1]
"""
INTEGERS = """
    n.gcd(x,y) n.lcm(x,y) n.bitwise_and(x,y) n.bitwise_or(x,y) n.bitwise_xor(x,y)
    n.bitwise_not(x) n.mod(x,7) n.sum(x,axis=1) n.exp(x) n.divmod(x,7)[1]
"""


def calls(table):
    return table.split()


def compare(text, x, y, *shapes):
    function = eval(f"lambda x, y: {text}", {"n": n})
    eager = function(tf.constant(x), tf.constant(y))
    for shape in shapes:
        specs = [tf.TensorSpec(shape, x.dtype)] * 2
        traced = tf.function(function, input_signature=specs, autograph=False)(x, y)
        assert traced.dtype == eager.dtype
        np.testing.assert_allclose(traced, eager, rtol=1e-12)


@pytest.mark.parametrize("text", calls(ELEMENTWISE + WHOLE))
def test_where_a_graph_knows_no_shape(text):
    compare(text, A, B, [2, 3], [None, None], None)


@pytest.mark.parametrize("text", calls(RANKED))
def test_where_a_graph_knows_the_rank(text):
    compare(text, A, B, [2, 3], [None, 3] if "cross" in text else [None, None])


@pytest.mark.parametrize("text", calls(INTEGERS))
def test_integers(text):
    compare(text, INTS, INTS[::-1] * 2, [2, 3], None)


SMOOTH = """
    n.add(x,y) n.arctan2(x,y) n.cbrt(abs(x)+1) n.clip(x,-1.,1.) n.divide(x,y) n.exp2(x)
    n.hypot(x,y) n.logaddexp(x,y) n.logaddexp2(x,y) n.maximum(x,y) n.power(abs(x),y)
    n.sinc(x) n.where(x>0,x,y) n.mean(x,axis=0) n.var(x,axis=0,ddof=1) n.std(x)
    n.nansum(x) n.cumprod(x,axis=1) n.diff(x) n.dot(x,n.transpose(y)) n.inner(x,y)
    n.outer(x,y) n.kron(x,y) n.cross(x,y) n.einsum("ij,ij->i",x,y) n.tile(x,2)
    n.take(x,[0,0,4]) n.take_along_axis(x,[[2,0],[1,1]],1) n.rot90(x) n.tril(x)
    n.diagonal(x) n.trace(x) n.vander(n.ravel(x),3) n.average(x,axis=1,weights=[1.,2.,3.])
    n.linspace(x,y,3) n.sort(x,axis=1) n.amax(x,axis=1) n.polyval([1.,2.,3.],x)
    n.append(x,y) n.pad(x,1,"reflect") n.geomspace(abs(x),abs(y),4)
"""


@pytest.mark.parametrize("text", calls(SMOOTH))
def test_gradients(text):
    function = eval(f"lambda x, y: {text}", {"n": n})
    inputs = [tf.constant(A + 0.01), tf.constant(B)]
    theory, numeric = tf.test.compute_gradient(function, inputs)
    for a, b in zip(theory, numeric):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
