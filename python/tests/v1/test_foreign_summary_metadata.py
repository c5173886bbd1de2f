"""What programs say of summaries in messages of classes of their own."""

import headrace as tf

v1 = tf.compat.v1


class Foreign:
    """As tensorboard's class of the message: another one of the same wire format."""

    def SerializeToString(self):  # noqa: N802  (protobuf's name)
        told = v1.SummaryMetadata(display_name="shown")
        told.plugin_data.plugin_name = "mesh"
        return told.SerializeToString()


def test_metadata_of_another_class():
    with tf.Graph().as_default(), v1.Session() as session:
        node = v1.summary.tensor_summary("t", tf.zeros([2]), summary_metadata=Foreign())
        written = v1.Summary.FromString(session.run(node))
    metadata = written.value[0].metadata
    assert metadata.plugin_data.plugin_name == "mesh"
    assert metadata.display_name == "shown"
