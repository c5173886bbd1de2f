// QuantizedRelu, QuantizedRelu6, QuantizedReluX: levels cut at those of 0 and
// of an upper bound.
#include <algorithm>

#include "ops/math/quantize/quantized.h"

namespace headrace {
namespace {

// The range is in the last two inputs; ReluX's bound stands before it.
int RangeOfRelu(const ResolvedOp& op) { return op.num_inputs() - 2; }

template <typename I>
Status QuantizedRelu(KernelContext& c) {
  const int at = RangeOfRelu(c.op());
  const float min = *c.in<float>(at), max = *c.in<float>(at + 1);
  const PreciseLevels<I> levels(min, max);
  const I low = levels.ToLevel(0);
  // Without a bound: the type's highest level.
  I high = std::numeric_limits<I>::max();
  if (at == 2) {
    high = levels.ToLevel(*c.in<float>(1));
  } else if (c.op().name() == "QuantizedRelu6") {
    high = levels.ToLevel(6);
  }
  const I* x = LevelsIn<I>(c, 0);
  std::transform(x, x + c.input(0).num_elements(), LevelsOut<I>(c, 0),
                 [&](I v) { return std::min(std::max(v, low), high); });
  SetRange(c, min, max);
  return OkStatus();
}

ComputeFn PickRelu(const ResolvedOp& op) {
  const DType type = op.type_attr("Tinput");
  if (op.type_attr("out_type") != type) return nullptr;
  return type == DType::kQuint8   ? QuantizedRelu<uint8_t>
         : type == DType::kQint32 ? QuantizedRelu<int32_t>
                                  : nullptr;
}

Status QuantizedReluShape(ShapeContext& c) {
  HR_RETURN_IF_ERROR(CheckRangesAreScalars(c, 1, c.num_inputs()));
  c.set_output(0, c.input(0));
  SetRangeOutputs(c);
  return OkStatus();
}

void RegisterRelu(const char* name, bool bound, const char* doc) {
  OpBuilder op(name);
  op.Input("features: Tinput");
  if (bound) op.Input("max_value: float");
  op.Input("min_features: float")
      .Input("max_features: float")
      .Output("activations: out_type")
      .Output("min_activations: float")
      .Output("max_activations: float")
      .Attr("Tinput: quantizedtype")
      .Attr("out_type: quantizedtype = DT_QUINT8")
      .Doc(doc)
      .Shape(QuantizedReluShape)
      .Cpu(ComputeFor<PickRelu>)
      .Register();
}

struct QuantizedReluRegistrations {
  QuantizedReluRegistrations() {
    RegisterRelu("QuantizedRelu", false, "max(x, 0) of a quantized tensor.");
    RegisterRelu("QuantizedRelu6", false,
                 "min(max(x, 0), 6) of a quantized tensor.");
    RegisterRelu("QuantizedReluX", true,
                 "min(max(x, 0), max_value) of a quantized tensor.");
  }
};
const QuantizedReluRegistrations quantized_relu_registrations;

}  // namespace
}  // namespace headrace
