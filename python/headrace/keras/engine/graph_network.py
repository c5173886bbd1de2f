"""A functional model's layers in order, and how its outputs are computed."""

from headrace import _api as tf
from headrace._load import _headrace
from headrace.context import late, stack
from headrace.keras.base.keras_tensor import call_of, history, is_described, key


class _Register:
    """Stands for a value in the arguments of a call."""

    def __init__(self, place):
        self.place = place


def _is_bare(x):
    """Whether x is a tensor of a plain graph that no layer is known to give."""
    return isinstance(x, _headrace.SymbolicTensor) and history(x) is None


class GraphNetwork:
    """The nodes between inputs and outputs.

    Attributes:
      layers: by distance from the outputs, farthest first, as upstream.
      nodes: in the order in which they run.
      beside: the layers that run for no output: those of losses and metrics.
    """

    def __init__(self, inputs, outputs):
        self.inputs, self.outputs = inputs, outputs
        self.flat_inputs = tf.nest.flatten(inputs)
        self.flat_outputs = tf.nest.flatten(outputs)
        if stack.plain_graph() is not None:
            late.describe_operations([x for x in self.flat_outputs if _is_bare(x)])
        for x in self.flat_inputs + self.flat_outputs:
            if not is_described(x):
                raise ValueError(
                    "Found unexpected instance while building a functional model. "
                    "Expecting KerasTensor which is from tf.keras.Input() or output from "
                    f"keras layer call(). Got: {x}"
                )
        if len({key(x) for x in self.flat_inputs}) != len(self.flat_inputs):
            raise ValueError(
                "The list of inputs passed to the model contains the same input multiple "
                f"times. All inputs should only appear once. Received inputs={inputs}"
            )
        self.beside = []
        self._visit_all()
        self._order()
        self._plan()
        self._check_names()

    def _check_names(self):
        names = [layer.name for layer in self.layers]
        for name in names:
            if names.count(name) != 1:
                raise ValueError(
                    f'The name "{name}" is used {names.count(name)} times in the model. '
                    "All layer names should be unique."
                )

    def _visit_all(self):
        """Nodes, each after those that it needs; layers in order of discovery."""
        self._found, self._layer_order = [], {}
        done, given = set(), {id(call_of(x)) for x in self.flat_inputs}
        for out in self.flat_outputs:
            stack = [(call_of(out), False)]
            while stack:
                node, left = stack.pop()
                if left:
                    if id(node) not in done:
                        done.add(id(node))
                        self._found.append(node)
                    continue
                if id(node) in done:
                    continue
                self._layer_order.setdefault(id(node.layer), len(self._layer_order))
                stack.append((node, True))
                if id(node) in given:
                    continue
                if not node.parents:
                    tensor = node.outputs
                    raise ValueError(
                        f"Graph disconnected: cannot obtain value for tensor {tensor} at "
                        f'layer "{history(tensor)[0].name}". The following previous '
                        "layers were accessed without issue: []"
                    )
                stack.extend((call_of(x), False) for x in reversed(node.parents))

    def _order(self):
        """Depths: distances from the outputs, equal for all calls of a layer."""
        depths, layer_depths, layers = {}, {}, {}
        for node in reversed(self._found):
            depth = depths.setdefault(id(node), 0)
            depth = max(depth, layer_depths.get(id(node.layer), 0))
            layer_depths[id(node.layer)] = depths[id(node)] = depth
            layers[id(node.layer)] = node.layer
            for x in node.parents:
                depths[id(call_of(x))] = max(depth + 1, depths.get(id(call_of(x)), 0))
        for x in self.flat_inputs:
            layer = history(x)[0]
            if id(layer) not in layers:
                layers[id(layer)] = layer
                layer_depths[id(layer)] = 0
                self._layer_order[id(layer)] = -1
        order = self._layer_order
        self.layers = sorted(
            layers.values(), key=lambda x: (-layer_depths[id(x)], order[id(x)])
        )
        places = {id(n): i for i, n in enumerate(self._found)}
        self.nodes = sorted(self._found, key=lambda n: (-depths[id(n)], -places[id(n)]))

    def _plan(self):
        """Registers of all tensors, and the calls that fill them."""
        registers = {key(x): i for i, x in enumerate(self.flat_inputs)}

        def register(x):
            return registers.setdefault(key(x), len(registers))

        given = {id(call_of(x)) for x in self.flat_inputs}
        self.steps = []
        for node in self.nodes:
            if id(node) in given:
                continue
            single = None
            if len(node.args) == 1 and not node.kwargs:
                if is_described(node.args[0]):
                    single = register(node.args[0])
            taken = node.mapped(lambda x: _Register(register(x)))
            out = [register(x) for x in tf.nest.flatten(node.outputs)]
            self.steps.append((node.layer, single, taken, out))
        self.results = [register(x) for x in self.flat_outputs]
        self.count = len(registers)

    def add(self, tensor):
        """From now on makes `tensor`, too, whenever it runs.

        ValueError where it is not computed from the inputs.
        """
        more = GraphNetwork(self.inputs, tensor)
        nodes, layers = set(map(id, self.nodes)), set(map(id, self.layers))
        self.nodes += [n for n in more.nodes if id(n) not in nodes]
        added = [x for x in more.layers if id(x) not in layers]
        self.layers += added
        self.beside += added
        self._check_names()
        self._plan()

    def run(self, flat_inputs):
        """The outputs, in their structure, of tensors in place of the inputs."""
        values = [None] * self.count
        values[: len(flat_inputs)] = flat_inputs

        def filled(x):
            return values[x.place] if isinstance(x, _Register) else x

        for layer, single, taken, out in self.steps:
            if single is not None:
                result = layer(values[single])
            else:
                args, kwargs = tf.nest.map_structure(filled, taken)
                result = layer(*args, **kwargs)
            if len(out) == 1 and isinstance(result, tf.Tensor):
                values[out[0]] = result
            else:
                for place, value in zip(out, tf.nest.flatten(result)):
                    values[place] = value
        found = [values[i] for i in self.results]
        if self.outputs is self.flat_outputs[0]:
            return found[0]
        return tf.nest.pack_sequence_as(self.outputs, found)
