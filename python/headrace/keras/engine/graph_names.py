"""What programs of TensorFlow 1 ask a model in a graph for: its placeholders, its loss, the
functions that run it."""


class GraphNames:
    """Names of models in graphs; elsewhere there are none of them, but for total_loss."""

    @property
    def total_loss(self):
        """What a model in a graph is trained on: a scalar tensor, of the inputs' and
        targets' placeholders; None elsewhere."""
        last = self._keras.graph_training and self._keras.graph_training.last
        return last and last.total_loss

    @property
    def sample_weights(self):
        """The placeholders of weights, one for each output; None for outputs that were
        not given any yet."""
        return list(self._compiled_in_graph("sample_weights").weights)

    @property
    def _feed_inputs(self):
        network = self._network if self._in_graph else None
        if network is None:
            raise AttributeError(
                f"Model {self.name} has no _feed_inputs: it has no placeholders"
            )
        return list(network.flat_inputs)

    @property
    def _feed_targets(self):
        measures = self._compiled_in_graph("_feed_targets")
        return [t for t in measures.targets if t is not None]

    @property
    def _feed_sample_weights(self):
        return [w for w in self.sample_weights if w is not None]

    def _compiled_in_graph(self, name):
        training = self._keras.graph_training
        if training is None or training.last is None:
            raise AttributeError(
                f"Model {self.name} has no {name}: it was not compiled in a graph of "
                "TensorFlow 1"
            )
        return training.last

    @property
    def _make_train_function(self):
        return self._making("train")

    @property
    def _make_test_function(self):
        return self._making("test")

    @property
    def _make_predict_function(self):
        return self._making("predict")

    def _making(self, kind):
        """A function without arguments that makes the nodes of a graph, which programs
        call before threads run the model, and `train_function` and the like."""
        if not self._in_graph:
            raise AttributeError(
                f"_make_{kind}_function is of models in graphs of TensorFlow 1: use "
                f"make_{kind}_function"
            )

        def make():
            if getattr(self, f"{kind}_function", None) is None:
                setattr(self, f"{kind}_function", self._steps(kind).make())

        return make
