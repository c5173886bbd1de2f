// cuDNN's recurrent layers and loss, NCCL, proposals of boxes, pinned memory.
#include "op/no_such_gradient.h"
#include "ops/graph_only/text_ops.h"

namespace headrace {
namespace {

constexpr char kRnnTypes[] = "T: {bfloat16, half, float, double}";

// The attributes of all recurrent ops, behind those of the op's own.
OpBuilder WithModes(OpBuilder b, bool projects) {
  b.Attr("rnn_mode: {'rnn_relu', 'rnn_tanh', 'lstm', 'gru'} = 'lstm'")
      .Attr(
          "input_mode: {'linear_input', 'skip_input', 'auto_select'} = "
          "'linear_input'")
      .Attr("direction: {'unidirectional', 'bidirectional'} = 'unidirectional'")
      .Attr("dropout: float = 0")
      .Attr("seed: int = 0")
      .Attr("seed2: int = 0");
  if (projects) b.Attr("num_proj: int = 0");
  return b;
}

// [time, batch, units of all directions]; states are like those that came in,
// the second is there for LSTMs alone. `own`: it is like its own.
template <bool own>
Status RnnRule(ShapeContext& c) {
  const Shape &x = c.input(0), &h = c.input(1);
  HR_RETURN_IF_ERROR(CheckRank(x, 3));
  HR_RETURN_IF_ERROR(CheckRank(h, 3));
  if (own) HR_RETURN_IF_ERROR(CheckRank(c.input(2), 3));
  HR_RETURN_IF_ERROR(CheckRank(c.input(3), 1));
  if (c.num_inputs() > 4) HR_RETURN_IF_ERROR(CheckRank(c.input(4), 1));
  const bool both = c.op().string_attr("direction") == "bidirectional";
  Shape out = Shape::UnknownOfRank(3);
  for (int i = 0; x.known_rank() && i < 2; ++i) out.set_dim(i, x[i]);
  if (h.known_rank() && h[2] >= 0) out.set_dim(2, both ? 2 * h[2] : h[2]);
  c.set_output(0, std::move(out));
  c.set_output(1, h);
  const bool lstm = c.op().string_attr("rnn_mode") == "lstm";
  c.set_output(2, lstm ? c.input(own ? 2 : 1) : Shape());
  return OkStatus();
}

// The op of the way back takes inputs, results but the last ones, their
// gradients, and what the way there left for it.
Status RnnGradient(GradientContext& g) {
  if (!g.op().bool_attr("is_training")) {
    return InvalidArgument("To use ", g.op().name(),
                           " in gradients, is_training must be set to True.");
  }
  const bool third = g.num_inputs() > 4, first = g.num_outputs() == 4;
  constexpr int kResults = 3;
  ValueList inputs(g.inputs().begin(), g.inputs().end());
  for (int i = 0; i < kResults; ++i) inputs.push_back(g.output(i));
  for (int i = 0; i < kResults; ++i) inputs.push_back(g.grad_or_zeros(i));
  for (int i = kResults; i < g.num_outputs(); ++i)
    inputs.push_back(g.output(i));
  AttrMap attrs = g.op().attrs();
  attrs.Erase("is_training");
  const char* const back = first   ? "CudnnRNNBackprop"
                           : third ? "CudnnRNNBackpropV3"
                                   : "CudnnRNNBackpropV2";
  const ValueList found = g.All(back, inputs, attrs);
  for (size_t i = 0; i < found.size(); ++i) {
    g.set(static_cast<int>(i), found[i]);
  }
  return g.status();
}

OpBuilder RnnForward(const char* name, bool third) {
  OpBuilder b(name);
  b.Input("input: T")
      .Input("input_h: T")
      .Input("input_c: T")
      .Input("params: T");
  if (third) b.Input("sequence_lengths: int32");
  b.Output("output: T")
      .Output("output_h: T")
      .Output("output_c: T")
      .Output("reserve_space: T")
      .Attr(kRnnTypes);
  b = WithModes(std::move(b), third);
  b.Attr("is_training: bool = true")
      .Doc("cuDNN's recurrent layers.")
      .Stateful()
      .Shape(third ? RnnRule<true> : RnnRule<false>)
      .Gradient(RnnGradient);
  return b;
}
const OpRegistrar rnn = RnnForward("CudnnRNN", false);
const OpRegistrar rnn_v2 =
    RnnForward("CudnnRNNV2", false).Output("host_reserved: int8");
const OpRegistrar rnn_v3 = RnnForward("CudnnRNNV3", true)
                               .Output("host_reserved: int8")
                               .Attr("time_major: bool = true");

// Each gradient is like its input.
Status RnnBackRule(ShapeContext& c) {
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, c.input(i));
  return OkStatus();
}

OpBuilder RnnBack(const char* name, bool third) {
  OpBuilder b(name);
  b.Input("input: T")
      .Input("input_h: T")
      .Input("input_c: T")
      .Input("params: T");
  if (third) b.Input("sequence_lengths: int32");
  b.Input("output: T")
      .Input("output_h: T")
      .Input("output_c: T")
      .Input("output_backprop: T")
      .Input("output_h_backprop: T")
      .Input("output_c_backprop: T")
      .Input("reserve_space: T")
      .Output("input_backprop: T")
      .Output("input_h_backprop: T")
      .Output("input_c_backprop: T")
      .Output("params_backprop: T")
      .Attr(kRnnTypes);
  b = WithModes(std::move(b), third);
  b.Doc("The way back through cuDNN's recurrent layers.")
      .Stateful()
      .Shape(RnnBackRule);
  return b;
}
const OpRegistrar rnn_back = RnnBack("CudnnRNNBackprop", false);
const OpRegistrar rnn_back_v2 =
    RnnBack("CudnnRNNBackpropV2", false).Input("host_reserved: int8");
const OpRegistrar rnn_back_v3 = RnnBack("CudnnRNNBackpropV3", true)
                                    .Input("host_reserved: int8")
                                    .Attr("time_major: bool = true");

constexpr TextOp kWeights[] = {
    {"CudnnRNNParamsSize",
     "num_layers: int32; num_units: int32; input_size: int32", "params_size: S",
     "T: {bfloat16, half, float, double}; S: {int32, int64}", "*; *; *", "1",
     false, "How many weights cuDNN's layers have."},
    {"CudnnRNNCanonicalToParams",
     "num_layers: int32; num_units: int32; input_size: int32; weights: "
     "num_params * T; biases: num_params * T",
     "params: T", "T: {bfloat16, half, float, double}; num_params: int >= 1",
     "*; *; *; *; *", "?", false, "Weights and biases in cuDNN's order."},
    {"CudnnRNNCanonicalToParamsV2",
     "num_layers: int32; num_units: int32; input_size: int32; weights: "
     "num_params_weights * T; biases: num_params_biases * T",
     "params: T",
     "T: {bfloat16, half, float, double}; num_params_weights: int >= 1; "
     "num_params_biases: int >= 1",
     "*; *; *; *; *", "?", false, "Weights and biases in cuDNN's order."},
    {"CudnnRNNParamsToCanonical",
     "num_layers: int32; num_units: int32; input_size: int32; params: T",
     "weights: num_params * T; biases: num_params * T",
     "T: {bfloat16, half, float, double}; num_params: int >= 1", "*; *; *; ?",
     "? ?; ?", false, "Weights and biases out of cuDNN's order."},
    {"CudnnRNNParamsToCanonicalV2",
     "num_layers: int32; num_units: int32; input_size: int32; params: T",
     "weights: num_params_weights * T; biases: num_params_biases * T",
     "T: {bfloat16, half, float, double}; num_params_weights: int >= 1; "
     "num_params_biases: int >= 1",
     "*; *; *; ?", "? ?; ?", false, "Weights and biases out of cuDNN's order."},
};
// Those of the second version, and the first row, know of projections.
const bool weights = [] {
  for (const TextOp& op : kWeights) {
    const StringView name = op.name;
    const bool old = name == kWeights[1].name || name == kWeights[3].name;
    WithModes(DefinitionOf(op), !old).Register();
  }
  return true;
}();

// As that of CTCLoss.
Status CtcGradient(GradientContext& g) {
  Value dy = g.grad(0);
  if (!dy) return g.status();
  Value slope = g(
      "PreventGradient", {g.output(1)},
      {{"message", std::string("Currently there is no way to take the second "
                               " derivative of ctc_loss due to the fused "
                               "implementation's interaction with tf.gradients"
                               "()")}});
  Value column =
      g("ExpandDims", {g("ExpandDims", {dy, g.Int32(0)}), g.Int32(2)});
  g.set(0, g("Mul", {column, slope}));
  return g.status();
}

constexpr TextOp kOthers[] = {
    {"CTCLossV2",
     "inputs: float; labels_indices: int64; labels_values: int32; "
     "sequence_length: int32",
     "loss: float; gradient: float",
     "preprocess_collapse_repeated: bool = false; ctc_merge_repeated: bool = "
     "true; ignore_longer_outputs_than_inputs: bool = false",
     "t b k; m ?; m; b", "b; t b k", false,
     "cuDNN's loss of labels that lie somewhere in time; and its gradient."},
    {"GenerateBoundingBoxProposals",
     "scores: float; bbox_deltas: float; image_info: float; anchors: float; "
     "nms_threshold: float; pre_nms_topn: int32; min_size: float",
     "rois: float; roi_probabilities: float", "post_nms_topn: int = 300",
     "n ? ? ?; ? ? ? ?; ? 5; ? ? ?; *; *; *",
     "n @post_nms_topn 4; n @post_nms_topn", false,
     "Boxes that most likely hold something."},
};
const OpRegistrar ctc_loss = DefinitionOf(kOthers[0])
                                 .Gradient(CtcGradient)
                                 .GradientSkips({0, 1, 2, 3}, {0});
const OpRegistrar proposals = DefinitionOf(kOthers[1]).NoGradient();

constexpr char kNcclTypes[] = "T: {half, float, double, int32, int64}";
constexpr char kReductions[] = "reduction: {'min', 'max', 'prod', 'sum'}";

// That of a sum over devices is the sum of the gradients.
Status CheckSum(const GradientContext& g) {
  if (g.op().string_attr("reduction") == "sum") return OkStatus();
  return NoGradient("No gradient defined for ", g.op().name(),
                    " except for reduction=\"sum\".");
}
Status AllReduceGradient(GradientContext& g) {
  HR_RETURN_IF_ERROR(CheckSum(g));
  AttrMap attrs = g.op().attrs();
  attrs.Set("shared_name", g.op().string_attr("shared_name") + "_grad");
  g.set(0, g("NcclAllReduce", {g.grad()}, attrs));
  return g.status();
}
Status NcclReduceGradient(GradientContext& g) {
  HR_RETURN_IF_ERROR(CheckSum(g));
  Value dy = g.grad();
  if (!dy) return g.status();
  const Value spread = g("NcclBroadcast", {dy}, {{"shape", dy.shape()}});
  for (int i = 0; i < g.num_inputs(); ++i) g.set(i, spread);
  return g.status();
}
Status NcclBroadcastGradient(GradientContext& g) {
  g.set(0, g("NcclReduce", {g.grad()}, {{"reduction", std::string("sum")}}));
  return g.status();
}

HR_OP(NcclAllReduce)
    .Input("input: T")
    .Output("data: T")
    .Attr(kReductions)
    .Attr(kNcclTypes)
    .Attr("num_devices: int")
    .Attr("shared_name: string")
    .Doc("Reduces a tensor over GPUs; each gets the result.")
    .Stateful()
    .Shape(UnchangedShape)
    .Gradient(AllReduceGradient);

HR_OP(NcclReduce)
    .Input("input: num_devices * T")
    .Output("data: T")
    .Attr(kReductions)
    .Attr(kNcclTypes)
    .Attr("num_devices: int >= 1")
    .Doc("Reduces tensors of GPUs onto one.")
    .Stateful()
    .Shape(MergeAllInputs)
    .Gradient(NcclReduceGradient);

HR_OP(NcclBroadcast)
    .Input("input: T")
    .Output("output: T")
    .Attr(kNcclTypes)
    .Attr("shape: shape")
    .Doc("Sends a tensor to all GPUs.")
    .Stateful()
    .Shape(UnchangedShape)
    .Gradient(NcclBroadcastGradient);

// Memory is pinned for GPUs alone.
Status NotPinned(KernelContext&) { return InvalidArgument("not pinned"); }

HR_OP(CheckPinned)
    .Input("tensor: T")
    .Output("output: T")
    .Attr("T: type")
    .Doc("Fails where the tensor's memory is not pinned.")
    .Shape(UnchangedShape)
    .Cpu(ComputeOwn<NotPinned>);

}  // namespace
}  // namespace headrace
