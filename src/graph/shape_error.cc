#include "graph/shape_error.h"

#include "absl/strings/str_join.h"
#include "op/op_text.h"

namespace headrace {
namespace {

// A text for people: more numbers help nobody.
constexpr int64_t kMostValues = 256;

// An integer constant as upstream lists it: "0", "1 2", "[0 0][1 1]".
std::string Values(const Tensor& t) {
  const int64_t n = std::min(t.num_elements(), kMostValues);
  const int64_t row = t.rank() == 2 ? t.shape()[1] : n;
  std::string out;
  for (int64_t i = 0; i < n; ++i) {
    const bool starts = row > 0 && i % row == 0;
    if (t.rank() == 2 && starts) out += i ? "][" : "[";
    absl::StrAppend(&out, starts ? "" : " ", t.IntAt(i));
  }
  if (t.rank() == 2) out += "]";
  return n < t.num_elements() ? out + "..." : out;
}

bool IsListed(const Tensor* t) {
  return t != nullptr && t->rank() <= 2 &&
         (t->dtype() == DType::kInt32 || t->dtype() == DType::kInt64);
}

// " and with computed input tensors: input[1] = <0 2>", if any.
std::string ValuesText(const ShapeContext& c, uint32_t mask) {
  std::string out;
  for (int i = 0; i < c.num_inputs() && i < 32; ++i) {
    if (!(mask >> i & 1) || !IsListed(c.value(i))) continue;
    absl::StrAppend(&out,
                    out.empty() ? " and with computed input tensors: " : ", ",
                    "input[", i, "] = <", Values(*c.value(i)), ">");
  }
  return out;
}

std::string PartialText(const ShapeContext& c, uint32_t mask) {
  std::string out;
  for (int i = 0; i < c.num_inputs() && i < 32; ++i) {
    if (!(mask >> i & 1)) continue;
    absl::InlinedVector<int64_t, 8> dims;
    if (!c.IntValues(i, &dims)) continue;
    absl::StrAppend(
        &out,
        out.empty() ? " and with input tensors computed as partial shapes: "
                    : ",",
        "input[", i, "] = [",
        absl::StrJoin(dims, ",",
                      [](std::string* s, int64_t d) {
                        absl::StrAppend(s, d < 0 ? "?" : absl::StrCat(d));
                      }),
        "]");
  }
  return out;
}

}  // namespace

std::string NodeSummary(const Node& n) {
  std::string out =
      absl::StrCat("{{node ", n.name(), "}} = ", n.op().name(), "[");
  bool first = true;
  for (const auto& [name, value] : n.op().attrs()) {
    absl::StrAppend(&out, first ? "" : ", ", name, "=", AttrValueText(value));
    first = false;
  }
  if (!n.device().empty()) {
    absl::StrAppend(&out, first ? "" : ", ", "_device=\"", n.device(), "\"");
  }
  out += "](";
  for (int i = 0; i < n.num_inputs(); ++i) {
    const Edge& e = n.input(i);
    absl::StrAppend(&out, i ? ", " : "", e.node->name());
    if (e.index > 0) absl::StrAppend(&out, ":", e.index);
  }
  return out + ")";
}

Status ShapeErrorInGraph(const Node& n, const ShapeContext& c,
                         const Status& s) {
  if (s.code() != absl::StatusCode::kInvalidArgument &&
      s.code() != absl::StatusCode::kFailedPrecondition) {
    return s;
  }
  std::string shapes;
  for (int i = 0; i < c.num_inputs(); ++i) {
    const Shape& shape = c.input(i);
    absl::StrAppend(&shapes, i ? ", " : "",
                    shape.known_rank() ? shape.ToString() : "?");
  }
  const ShapeRefusal& refusal = c.refusal();
  return InvalidArgument(
      refusal.text.empty() ? s.message() : StringView(refusal.text), " for '",
      NodeSummary(n), "' with input shapes: ", shapes,
      ValuesText(c, refusal.values), PartialText(c, refusal.partial_shapes),
      ".");
}

}  // namespace headrace
