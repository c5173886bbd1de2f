"""Snippets whose errors tests/golden/errors/traced.json keeps.

Written anew by a Python that has TensorFlow 2.21:
`python traced_error_cases.py tensorflow ../../../tests/golden/errors/traced.json`.
"""

import importlib
import json
import re
import sys

# An expression over p(*sizes), a float argument of a traced function (None: a size
# not known), and over the arguments x (float), y (int), s (string), b (bool).
SHAPES = """
tf.add(p(2,3),p(4))
p(2,3)+p(4,1,2)
tf.math.squared_difference(p(None,3),p(None,4))
tf.matmul(p(2,3),p(2,3))
tf.matmul(p(3),p(3,2))
tf.matmul(p(2,2,3),p(2,2,3))
tf.matmul(p(2,2,3),p(3,3,2))
tf.reshape(p(2,3),[4])
tf.reshape(p(2,3),[-1,4])
tf.concat([p(2,3),p(2,4)],0)
tf.concat([p(2,3),p(2)],0)
tf.concat([p(2,3),p(2,3)],2)
tf.convert_to_tensor([p(2),p(3)])
tf.stack([p(2,3),p(2,3)],5)
tf.unstack(p(2,3),num=3)
tf.split(p(5,3),2)
tf.split(p(5,3),[2,2])
tf.split(p(5,3),2,axis=3)
tf.squeeze(p(2,3),0)
tf.squeeze(p(2,1),5)
tf.expand_dims(p(2),4)
tf.transpose(p(2,3),[0])
tf.transpose(p(2,3),[0,2])
tf.tile(p(2,3),[1])
tf.pad(p(2,3),[[1,1]])
tf.pad(p(2,3),[[1,1],[-3,0]])
tf.slice(p(2,3),[0],[1,1])
p(2,3)[3]
p(2,3)[0,0,0]
tf.gather(p(2,3),[0],axis=3)
tf.gather_nd(p(2,3),[[0,1,2]])
tf.scatter_nd([[0]],p(2),[3])
tf.tensor_scatter_nd_update(p(3),[[0]],p(2))
tf.where(p(2)>0,p(3),p(2))
tf.fill([2,-1],1)
tf.range(0,5,0)
tf.reduce_sum(p(2,3),2)
tf.reduce_mean(p(2,3),[0,-3])
tf.argmax(p(2,3),2)
tf.math.top_k(p(2,3),4)
tf.nn.bias_add(p(2,3),p(4))
tf.nn.conv2d(p(1,4,4,3),p(2,2,4,5),1,'SAME')
tf.nn.conv2d(p(4,4,3),p(2,2,4,5),1,'SAME')
tf.nn.conv2d(p(1,4,4,3),p(5,5,3,5),1,'VALID')
tf.nn.conv2d(p(1,4,4,3),p(2,2,3,5),1,'SOME')
tf.nn.max_pool2d(p(4,4,3),2,1,'VALID')
tf.linalg.inv(p(2,3))
tf.linalg.cholesky(p(2,3))
tf.linalg.solve(p(2,2),p(3,1))
tf.linalg.det(p(2,3))
tf.strings.join([tf.constant(['a','b']),tf.constant(['c','d','e'])])
tf.math.segment_sum(p(3),[[0,1,1]])
tf.math.unsorted_segment_sum(p(3),[0,1],2)
tf.dynamic_partition(p(3),[0,1],2)
tf.add_n([p(2),p(3)])
tf.broadcast_to(p(2,3),[3])
tf.broadcast_to(p(2,3),[2,4])
tf.reverse(p(2,3),[2])
tf.ensure_shape(p(2,3),[3,2])
tf.ensure_shape(p(2,3),[None])
tf.unique(p(2,2))
x+y
y*x
x/y
x@y
b&y
~x
-s
y+1.5
y*1.5
y-[1.5]
y<1.5
1.5+y
x*'a'
b+b
tf.add(y,1.5)
tf.exp(y)
tf.reduce_any(x)
tf.reshape(x,p(2))
tf.gather([1.,2.],x)
tf.add_n([x,y])
tf.stack([x,y])
tf.one_hot(y,2.5)
tf.strings.length(1)
tf.random.uniform([2],dtype=tf.bool)
tf.convert_to_tensor(1.5,tf.int32)
tf.convert_to_tensor([1.5],tf.int32)
tf.convert_to_tensor(None)
tf.convert_to_tensor({1:2})
tf.convert_to_tensor([1,'a'])
tf.convert_to_tensor([[1],[2,3]])
""".strip().split("\n")


def error_of(tf, expression):
    """[class, text] of what tracing a function of this body raises; None: nothing."""
    specs = []

    def name_argument(match):
        sizes = [None if n == "None" else int(n) for n in match[1].split(",") if n]
        specs.append(tf.TensorSpec(sizes, tf.float32))
        return f"p{len(specs) - 1}"

    body = re.sub(r"(?<![\w.])p\(([^()]*)\)", name_argument, expression)
    names = [f"p{i}" for i in range(len(specs))] + ["x", "y", "s", "b"]
    for dtype in (tf.float32, tf.int32, tf.string, tf.bool):
        specs.append(tf.TensorSpec([], dtype))
    space = {"tf": tf}
    exec(f"def f({', '.join(names)}):\n  return {body}", space)
    traced = tf.function(space["f"], autograph=False, input_signature=specs)
    try:
        traced.get_concrete_function()
    except Exception as e:
        text = re.sub(r"^in user code:\n.*?\n    \w+: ", "", str(e), flags=re.S)
        return [type(e).__name__, text.strip()]
    return None


def main():
    tf = importlib.import_module(sys.argv[1])
    golden = {e: error_of(tf, e) for e in SHAPES}
    with open(sys.argv[2], "w", encoding="utf-8") as file:
        json.dump(golden, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main()
