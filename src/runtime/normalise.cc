// Normalisation with given statistics is a product and a sum along the
// channels, which fuse with what is around them.
#include "absl/strings/match.h"
#include "op/registry.h"
#include "runtime/program.h"

namespace headrace {
namespace {

// True for a FusedBatchNorm of floats, channels last, that learns nothing and
// whose first result alone is read; all shapes that matter are known.
bool IsPlainNormalisation(const Program& p, const Call& call,
                          const std::vector<bool>& used) {
  const std::string& op = call.op->name();
  if ((op != "FusedBatchNorm" && op != "FusedBatchNormV2" &&
       op != "FusedBatchNormV3") ||
      call.inputs.size() != 5 ||
      call.op->attrs().Find("is_training") == nullptr ||
      call.op->bool_attr("is_training") ||
      call.op->string_attr("data_format") != "NHWC") {
    return false;
  }
  for (ValueId v : call.inputs) {
    if (p.values[v].dtype != DType::kFloat) return false;
  }
  for (size_t o = 1; o < call.outputs.size(); ++o) {
    if (used[call.outputs[o]]) return false;
  }
  const Shape& x = p.values[call.inputs[0]].shape;
  if (x.rank() != 4) return false;
  for (size_t i = 1; i < 5; ++i) {
    const Shape& s = p.values[call.inputs[i]].shape;
    if (s.rank() != 1 || s[0] < 0 || s[0] != x[3]) return false;
  }
  return true;
}

// Appends calls to `calls`, all named as `from`.
class CallWriter {
 public:
  CallWriter(Program& p, const Call& from, std::vector<Call>* calls)
      : p_(p), from_(from), calls_(calls) {}

  ValueId operator()(const char* op, std::initializer_list<ValueId> inputs,
                     const Shape& shape, ValueId out = kNoValue) {
    Call call;
    std::vector<DType> types(inputs.size(), DType::kFloat);
    StatusOr<const OpDef*> def = LookUpOp(op);
    if (!def.ok()) return Fail(def.status());
    auto resolved = ResolveOp(**def, types, {});
    if (!resolved.ok()) return Fail(resolved.status());
    if (out == kNoValue) out = p_.NewValue(DType::kFloat, shape);
    call.op = *std::move(resolved);
    call.inputs.assign(inputs.begin(), inputs.end());
    call.outputs = {out};
    call.name = from_.name;
    calls_->push_back(std::move(call));
    return out;
  }
  ValueId Number(float number) {
    ValueId v = p_.NewValue(DType::kFloat, Shape());
    p_.values[v].constant = Tensor::Scalar(number);
    return v;
  }
  const Status& status() const { return status_; }

 private:
  ValueId Fail(Status s) {
    status_ = std::move(s);
    return 0;
  }
  Program& p_;
  const Call& from_;
  std::vector<Call>* calls_;
  Status status_;
};

// x * k + (offset - mean * k), where k = scale / sqrt(variance + epsilon).
Status WriteNormalisation(Program& p, const Call& call,
                          std::vector<Call>* calls) {
  CallWriter write(p, call, calls);
  const Shape channels = p.values[call.inputs[1]].shape;
  const Shape all = p.values[call.outputs[0]].shape;
  const ValueId epsilon = write.Number(call.op->float_attr("epsilon"));
  ValueId k = write("AddV2", {call.inputs[4], epsilon}, channels);
  k = write("Mul", {write("Rsqrt", {k}, channels), call.inputs[1]}, channels);
  ValueId shift = write("Mul", {call.inputs[3], k}, channels);
  shift = write("Sub", {call.inputs[2], shift}, channels);
  const ValueId scaled = write("Mul", {call.inputs[0], k}, all);
  write("AddV2", {scaled, shift}, all, call.outputs[0]);
  return write.status();
}

}  // namespace

Status ExpandNormalisation(Program& p) {
  std::vector<bool> used(p.values.size());
  bool any = false;
  for (const Call& call : p.calls) {
    for (ValueId v : call.inputs) used[v] = true;
    any = any || absl::StartsWith(call.op->name(), "FusedBatchNorm");
  }
  if (!any) return OkStatus();
  for (ValueId v : p.fetches) used[v] = true;
  std::vector<Call> calls;
  calls.reserve(p.calls.size());
  for (Call& call : p.calls) {
    if (IsPlainNormalisation(p, call, used)) {
      HR_RETURN_IF_ERROR(WriteNormalisation(p, call, &calls));
    } else {
      calls.push_back(std::move(call));
    }
  }
  p.calls = std::move(calls);
  return OkStatus();
}

}  // namespace headrace
