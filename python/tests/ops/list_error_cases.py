"""Calls of list ops whose outcomes tests/golden/errors/lists.json keeps.

Written anew by a Python that has TensorFlow 2.21:
`python list_error_cases.py tensorflow ../../../tests/golden/errors/lists.json`.
"""

import importlib
import json
import re
import sys

# Expressions over the ops' short names (`_space`), F and I (lists of two floats and of
# two integers), M (a list of two rows of two floats), U (room for three floats of
# shapes not known), V (room for two rows of two floats), N (an empty list of floats).
ROWS = """
get(F,0)
get(F,-1)
get(F,2)
get(F,0,[3])
get(F,0,dtype='int32')
get(F,[0])
get(M,0,[2])
get(M,0,[3])
get(U,0,-1)
get(U,0,[-1])
get(U,0,[2])
get(V,1,-1)
set(F,0,5.)
set(F,-1,5.)
set(F,2,5.)
set(F,4,5.,grow=True)
set(F,0,[5.])
set(F,0,5)
set(M,1,[1.,2.,3.])
push(N,1.)
push(N,[1.])
push(N,1)
push(M,[1.])
push(reserve([],2,max=2),3.)
pop(N)
pop(F)
pop(F,[3])
pop(F,dtype='int32')
pop(U,-1)
pop(V,[3])
stack(F)
stack(F,num=2)
stack(F,num=3)
stack(F,[2])
stack(F,-1)
stack(F,dtype='int32')
stack(M,[3])
stack(M,[-1])
stack(U,-1)
stack(V,-1)
stack(N,[])
stack(N,-1)
stack(push(N,1.),-1)
stack(set(U,0,[1.,2.]),-1)
stack(set(set(U,0,[1.,2.]),1,[1.]),-1)
gather(F,[1,0])
gather(F,[2])
gather(F,[-1])
gather(F,[])
gather(F,[0],[2])
gather(F,[0],dtype='int32')
gather(M,[1],[3])
gather(U,[0],-1)
gather(U,[])
gather(U,[],-1)
gather(set(U,0,[1.]),[0,1],-1)
gather(set(set(U,0,[1.]),1,[1.,2.]),[0,1],-1)
scatter([1.,2.],[0,3],[])
scatter([1.,2.],[0,-1],[])
scatter([1.,2.],[0],[])
scatter([1.,2.],[[0,1]],[])
scatter([1.,2.],[0,1],[2])
scatter(1.,[0],[])
scatter([1.,2.],[0,3],[],num=2)
scatter([1.,2.],[0,3],[],num=6)
scatter([1.,2.],[0,3],[],num=-2)
put(F,[7.],[1])
put(F,[7.],[5])
put(F,[7.],[0,1])
put(F,[7],[1])
split([1.,2.,3.],[1,2],[-1])
split([1.,2.,3.],[1,1],[-1])
split([1.,2.,3.],[1,5],[-1])
split([1.,2.,3.],[1,-1],[-1])
split([1.,2.,3.],[[1,2]],[-1])
split([1.,2.,3.],3,[-1])
split([[1.],[2.]],[1,1],[-1,2])
split([[1.],[2.]],[1,1],[1])
split([1.,2.,3.],[1,2],-1)
split(1.,[1],[-1])
concat(M,[2])
concat(M,[-1])
concat(M,[3])
concat(M,-1)
concat(M,[2],dtype='int32')
concat(F,[])
concat(F,-1)
concat(U,-1)
concat(U,[-1])
concat(U,[2])
concat(V,[-1])
concat(V,[2],lead=[1])
concat(V,[2],lead=[1,1])
concat(V,[2],lead=[2,2])
concat(N,[])
concat(reserve([2],0),[2])
concat(reserve([-1],0),[-1])
concat(reserve([-1,2],0),[-1,3])
concat(split([[1.],[2.],[3.]],[1,2],[-1,1]),[-1,1])
concat(split([[1.],[2.],[3.]],[1,2],[-1,1]),[-1,2])
concat(set(set(U,0,[1.]),1,[[1.]]),-1)
concat(set(set(U,0,[[1.]]),1,[[1.,2.]]),[-1,-1])
join(F,F)
join(F,I)
join(F,M)
join(F,N)
join(F,F,dtype='int32')
resize(F,1)
resize(F,-1)
resize(F,[1])
reserve([],-1)
reserve([],[2])
reserve([[1]],2)
empty([],-1)
empty([],[2])
empty([],-5)
make([1.,2.],[2])
make([1.,2.],[])
make([1.,2.],-1)
make([[1.,2.]],[3])
make([[1.,2.]],[-1,-1])
length(F)
length(tf.constant(1.))
shape(F)
shape(U)
shape(M,'int64')
tf.add_n([F,F])
tf.add_n([F,M])
tf.add_n([F,I])
tf.add_n([set(U,0,1.),U])
tf.zeros_like(F)
tf.stack([F,M])
batch(tf.stack([N,N]),[1.,2.])
batch(tf.stack([N,N]),[1.])
batch(tf.stack([N,N]),[[1.],[2.]])
batch(N,[1.])
batch(tf.stack([N,N]),[1,2])
tf.identity(F)
F[0]
tf.reshape(F,[1])
""".strip().split("\n")


def _ints(tf, value):
    return tf.constant(value, tf.int32)


def _makers(tf):
    """Calls that make lists, and those that want more than a line."""
    raw = tf.raw_ops

    def ints(value):
        return _ints(tf, value)

    def make(values, shape=()):
        return raw.TensorListFromTensor(
            tensor=tf.constant(values), element_shape=ints(shape)
        )

    def empty(shape, size):
        return raw.EmptyTensorList(
            element_shape=ints(shape),
            max_num_elements=ints(size),
            element_dtype=tf.float32,
        )

    def reserve(shape, size, max=None):
        if max is not None:
            filled = empty(shape, max)
            for _ in range(size):
                filled = push(filled, 0.0)
            return filled
        return raw.TensorListReserve(
            element_shape=ints(shape),
            num_elements=ints(size),
            element_dtype=tf.float32,
        )

    def push(handle, tensor):
        return raw.TensorListPushBack(input_handle=handle, tensor=tf.constant(tensor))

    def stack(h, shape=(), num=-1, dtype="float32"):
        return raw.TensorListStack(
            input_handle=h,
            element_shape=ints(shape),
            element_dtype=dtype,
            num_elements=num,
        )

    return {
        "make": make,
        "empty": empty,
        "reserve": reserve,
        "push": push,
        "stack": stack,
    }


def _users(tf):
    """Calls on lists."""
    raw = tf.raw_ops

    def ints(value):
        return _ints(tf, value)

    return dict(
        get=lambda h, i, shape=(), dtype="float32": raw.TensorListGetItem(
            input_handle=h,
            index=ints(i),
            element_shape=ints(shape),
            element_dtype=dtype,
        ),
        set=lambda h, i, item, grow=False: raw.TensorListSetItem(
            input_handle=h,
            index=ints(i),
            item=tf.constant(item),
            resize_if_index_out_of_bounds=grow,
        ),
        pop=lambda h, shape=(), dtype="float32": raw.TensorListPopBack(
            input_handle=h, element_shape=ints(shape), element_dtype=dtype
        )[1],
        gather=lambda h, i, shape=(), dtype="float32": raw.TensorListGather(
            input_handle=h,
            indices=ints(i),
            element_shape=ints(shape),
            element_dtype=dtype,
        ),
        scatter=lambda t, i, shape, num=-1: raw.TensorListScatterV2(
            tensor=tf.constant(t),
            indices=ints(i),
            element_shape=ints(shape),
            num_elements=ints(num),
        ),
        put=lambda h, t, i: raw.TensorListScatterIntoExistingList(
            input_handle=h, tensor=tf.constant(t), indices=ints(i)
        ),
        split=lambda t, lengths, shape: raw.TensorListSplit(
            tensor=tf.constant(t),
            element_shape=ints(shape),
            lengths=tf.constant(lengths, tf.int64),
        ),
        concat=lambda h, shape, lead=(), dtype="float32": raw.TensorListConcatV2(
            input_handle=h,
            element_shape=ints(shape),
            leading_dims=tf.constant(lead, tf.int64),
            element_dtype=dtype,
        )[0],
        join=lambda a, b, dtype="float32": raw.TensorListConcatLists(
            input_a=a, input_b=b, element_dtype=dtype
        ),
        batch=lambda h, t: raw.TensorListPushBackBatch(
            input_handles=h, tensor=tf.constant(t)
        ),
        resize=lambda h, n: raw.TensorListResize(input_handle=h, size=ints(n)),
        length=lambda h: raw.TensorListLength(input_handle=h),
        shape=lambda h, dtype="int32": raw.TensorListElementShape(
            input_handle=h, shape_type=dtype
        ),
    )


def _space(tf):
    """The names that the expressions use, for either package."""
    calls = {"tf": tf, **_makers(tf), **_users(tf)}
    make, reserve, empty = calls["make"], calls["reserve"], calls["empty"]
    return calls | {
        "F": make([1.0, 2.0]),
        "I": make([1, 2]),
        "M": make([[1.0, 2.0], [3.0, 4.0]], [2]),
        "U": reserve(-1, 3),
        "V": reserve([2], 2),
        "N": empty([], -1),
    }


def _told(tf, value):
    """What a result shows: numbers, or the lengths of lists."""
    if value.dtype == tf.variant:
        if value.shape.rank:
            return ["lists", value.shape.as_list()]
        return tf.raw_ops.TensorListLength(input_handle=value)
    return value


def _error(e):
    """The class and the sentence itself, without the places that the package adds."""
    text = re.sub(r"^in user code:\n.*?\n    \w+: ", "", str(e), flags=re.S).strip()
    text = re.split(r"\n\t(?:From| \[\[)", text)[0].split("\n")[-1]
    return [type(e).__name__, re.sub(r"^\{\{.*?\}\} ", "", text)]


def eager(tf, expression):
    try:
        told = _told(tf, eval(expression, _space(tf)))
        return told if isinstance(told, list) else told.numpy().tolist()
    except Exception as e:
        return _error(e)


def traced(tf, expression):
    @tf.function(autograph=False)
    def function():
        told = _told(tf, eval(expression, _space(tf)))
        return tf.constant(str(told)) if isinstance(told, list) else told

    try:
        run = function.get_concrete_function()
    except Exception as e:
        return ["build", *_error(e)]
    shape = run.structured_outputs.shape
    shape = None if shape.rank is None else shape.as_list()
    try:
        result = run().numpy()
        return (
            result.decode() if isinstance(result, bytes) else [shape, result.tolist()]
        )
    except Exception as e:
        return ["run", shape, *_error(e)]


def main():
    tf = importlib.import_module(sys.argv[1])
    golden = {e: [eager(tf, e), traced(tf, e)] for e in ROWS}
    with open(sys.argv[2], "w", encoding="utf-8") as file:
        json.dump(golden, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main()
