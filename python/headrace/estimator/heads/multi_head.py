"""tf.estimator.MultiHead: several heads on one model."""

from headrace import _api as tf
from headrace.estimator.export_outputs import PredictOutput
from headrace.estimator.heads.base import Head
from headrace.saved_model import constants


def _check_has_all(values, heads, what):
    """ValueError unless it is a dict with a value for each head."""
    if not isinstance(values, dict):
        raise ValueError(f"{what} must be a dict. Given: {values}")
    missing = [head.name for head in heads if head.name not in values]
    if missing:
        raise ValueError(f"{what} has missing values for head(s): {missing}")


class MultiHead(Head):
    """Heads with names, whose losses are added.

    Logits are {name: tensor}, or one tensor of all of them side by side; labels are
    {name: tensor}. `head_weights`: numbers that the losses are multiplied by. ValueError
    for no heads, those without a name and another number of weights.
    """

    def __init__(self, heads, head_weights=None):
        if not heads:
            raise ValueError(f"Must specify heads. Given: {heads}")
        if head_weights and len(head_weights) != len(heads):
            raise ValueError(
                "heads and head_weights must have the same size. Given len(heads): "
                f"{len(heads)}. Given len(head_weights): {len(head_weights)}."
            )
        for head in heads:
            if head.name is None:
                raise ValueError(
                    f"All given heads must have name specified. Given: {head}"
                )
        self._heads = tuple(heads)
        self._head_weights = tuple(head_weights or ())
        self.name = "_".join(head.name for head in heads)
        self.logits_dimension = sum(head.logits_dimension for head in heads)
        self.loss_reduction = heads[0].loss_reduction

    def _split(self, logits):
        """{head's name: its logits}."""
        if isinstance(logits, dict):
            _check_has_all(logits, self._heads, "logits")
            return logits
        logits = tf.convert_to_tensor(logits)
        sizes = [head.logits_dimension for head in self._heads]
        if logits.shape[-1] not in (None, sum(sizes)):
            raise ValueError(
                f"Could not split logits of shape {logits.shape.as_list()} among the "
                f"heads with individual logits dimensions: {sizes}. The last dimension "
                f"of the logits tensor should equal {sum(sizes)} but is "
                f"{logits.shape[-1]}."
            )
        parts = tf.split(logits, sizes, axis=-1)
        return {head.name: part for head, part in zip(self._heads, parts)}

    def _loss_of(self, labels, logits, features, mode):
        """{head's name: its loss}."""
        _check_has_all(labels, self._heads, "labels")
        parts = self._split(logits)
        found = {}
        for head in self._heads:
            with tf.name_scope(head.name):
                given = labels[head.name], parts[head.name], features, mode
                found[head.name] = head.loss(*given)
        return found

    def loss(
        self, labels, logits, features=None, mode=None, regularization_losses=None
    ):
        """The sum of the heads' losses, each by its weight, and of the others."""
        losses = list(self._loss_of(labels, logits, features, mode).values())
        if self._head_weights:
            losses = [x * w for x, w in zip(losses, self._head_weights)]
        return tf.add_n([*losses, *(regularization_losses or ())])

    def predictions(self, logits, keys=None):
        """{(head's name, key): tensor}; all of them, whatever `keys` says."""
        parts, found = self._split(logits), {}
        for head in self._heads:
            with tf.name_scope(head.name):
                for key, value in head.predictions(parts[head.name]).items():
                    found[head.name, key] = value
        return found

    def metrics(self, regularization_losses=None):
        mean = tf.keras.metrics.Mean
        made = {}
        if regularization_losses is not None:
            made[self._named("regularization_loss")] = mean()
        made.update({f"loss/{head.name}": mean() for head in self._heads})
        for head in self._heads:
            made.update(head.metrics())
        return made

    def update_metrics(
        self, eval_metrics, features, logits, labels, regularization_losses=None
    ):
        parts = self._split(logits)
        if regularization_losses is not None:
            loss = tf.add_n(regularization_losses)
            eval_metrics[self._named("regularization_loss")].update_state(loss)
        losses = self._loss_of(labels, parts, features, None)
        for head in self._heads:
            name = head.name
            eval_metrics[f"loss/{name}"].update_state(losses[name])
            own = {key: eval_metrics[key] for key in head.metrics()}
            head.update_metrics(own, features, parts[name], labels[name])
        return eval_metrics

    def _export_outputs(self, predictions):
        outputs, default = {}, constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY
        for head in self._heads:
            name = head.name
            own = {k: x for (n, k), x in predictions.items() if n == name}
            for key, output in head._export_outputs(own).items():
                outputs[name if key == default else f"{name}/{key}"] = output
        outputs["predict"] = PredictOutput(predictions)
        return {default: outputs[self._heads[0].name], **outputs}
